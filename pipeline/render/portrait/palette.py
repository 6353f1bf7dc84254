"""The character's colours and proportions. Light falls from the upper left."""

from pipeline.render.portrait.paint import hex_colour

VIEW = (21.0, 17.0)
"""Design point in the picture's upper left corner."""

VIEW_SIZE = 470.0
"""Width and height of the picture in design units."""

AXIS = 256.0
"""x of the face's middle line."""

EYE_LINE = 224.0
EYE_OFFSET = 46.0
BROW_LINE = 194.0
NOSE_TIP = 264.0
MOUTH_LINE = 303.0
CHIN = 358.0
NECK_PIVOT = (AXIS, 372.0)
"""The head turns and tilts about this point."""

# background
SKY = [hex_colour(code) for code in ("#3E7C8C", "#2C5C74", "#1D3F59")]
GLOW = hex_colour("#7FC4BE")

# skin
SKIN = hex_colour("#EFBE9B")
SKIN_LIGHT = hex_colour("#F9D3B4")
SKIN_SHADE = hex_colour("#D79A78")
SKIN_DEEP = hex_colour("#B9745A")
CREASE = hex_colour("#C08468")
BEARD = hex_colour("#6E5A52")
BLUSH = hex_colour("#E58A72")

# hair
HAIR = hex_colour("#4A2F27")
HAIR_DARK = hex_colour("#33201C")
HAIR_LIGHT = hex_colour("#7D5140")
HAIR_GLINT = hex_colour("#A87357")
BROW = hex_colour("#53352B")

# eyes
EYE_WHITE = hex_colour("#FCF8F3")
EYE_SHADE = hex_colour("#D3C2B8")
LASH = hex_colour("#3A231D")
IRIS_RIM = hex_colour("#4B2C18")
IRIS = hex_colour("#7E5129")
IRIS_LIGHT = hex_colour("#C08D49")
PUPIL = hex_colour("#17100D")

# mouth
LIP_UPPER = hex_colour("#BD6C5B")
LIP_LOWER = hex_colour("#D08472")
LIP_GLINT = hex_colour("#EDB5A0")
LIP_LINE = hex_colour("#7A3A33")
MOUTH_INSIDE = hex_colour("#5C1F26")
MOUTH_DEEP = hex_colour("#35111B")
TEETH = hex_colour("#FCF7F0")
TEETH_SHADE = hex_colour("#D9C9C0")
TONGUE = hex_colour("#DC6271")
TONGUE_LIGHT = hex_colour("#F29A9E")

# clothes
KNIT = hex_colour("#E5AC3F")
KNIT_LIGHT = hex_colour("#F4CB6C")
KNIT_DARK = hex_colour("#BC8126")
KNIT_DEEP = hex_colour("#8F5E1A")
SHIRT = hex_colour("#F7F4EF")
SHIRT_SHADE = hex_colour("#CBD3D8")
