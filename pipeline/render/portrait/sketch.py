"""Fast painting for what changes from frame to frame: 8 bits, small areas, OpenCV doing the loops."""

from typing import NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

from pipeline.render.portrait.paint import SUBPIXEL_BITS, Canvas, Colour, Layer, Path, fixed_point


class Area(NamedTuple):
    """A rectangle, in design units."""

    left: float
    top: float
    right: float
    bottom: float


class Sketch:
    """Draws on a view of opaque BGRA pixels whose first one lies at `origin` (design units)."""

    def __init__(self, pixels: Layer, scale: float, origin: tuple[float, float]) -> None:
        self.pixels = pixels
        self.scale = scale
        self.origin = origin

    def window(self, area: Area) -> "Sketch":
        """A sketch on the same pixels, of this area as far as it lies inside."""
        height, width = self.pixels.shape[:2]
        left = round((area.left - self.origin[0]) * self.scale)
        top = round((area.top - self.origin[1]) * self.scale)
        right = min(width, left + round((area.right - area.left) * self.scale))
        bottom = min(height, top + round((area.bottom - area.top) * self.scale))
        left, top = max(0, left), max(0, top)
        origin = (self.origin[0] + left / self.scale, self.origin[1] + top / self.scale)
        return Sketch(self.pixels[top : max(top, bottom), left : max(left, right)], self.scale, origin)

    def fill(self, path: Path, colour: Colour) -> None:
        points = fixed_point(path, self.scale, self.origin)
        cv2.fillPoly(self.pixels, [points], (*colour, 255), cv2.LINE_AA, SUBPIXEL_BITS)

    def glaze(self, path: Path, colour: Colour, opacity: float, blur: float = 0.0) -> None:
        """Paint translucently; blur softens the edge (standard deviation in design units)."""
        target = self.window(_around(path, 2.5 * blur + 1))
        if opacity > 0 and target.pixels.size:
            share = target._share(path, opacity, blur)
            ink = cv2.multiply(share, np.array((*colour, 255.0)), scale=1 / 255)
            target._mix(share, np.asarray(ink, np.uint8))

    def reveal(self, picture: "Sketch", path: Path) -> None:
        """Let a picture that covers the same place as this sketch show through inside the path."""
        area = _around(path, 1)
        target = self.window(area)
        share = target._share(path, 1.0, 0.0)
        ink = cv2.multiply(picture.window(area).pixels, share, scale=1 / 255)
        target._mix(share, np.asarray(ink, np.uint8))

    def _share(self, path: Path, opacity: float, blur: float) -> Layer:
        """How much of each pixel is to be covered, 0 … 255, the same in all channels."""
        inside = np.zeros(self.pixels.shape[:2], np.uint8)
        points = fixed_point(path, self.scale, self.origin)
        cv2.fillPoly(inside, [points], round(255 * opacity), cv2.LINE_AA, SUBPIXEL_BITS)
        soft = inside
        if blur:
            # two box blurs of n pixels have the variance (n² - 1) / 6 and cost an eighth of a Gaussian
            side = round(np.sqrt(6 * (blur * self.scale) ** 2 + 1)) | 1
            soft = np.asarray(cv2.blur(cv2.blur(inside, (side, side)), (side, side)), np.uint8)
        return np.asarray(cv2.merge((soft,) * 4), np.uint8)

    def _mix(self, share: Layer, ink: Layer) -> None:
        self.pixels[:] = cv2.add(cv2.multiply(self.pixels, 255 - share, scale=1 / 255), ink)

    def stamp(self, sprite: "Sprite", centre: tuple[float, float]) -> None:
        """Blend a sprite, its middle at `centre`, sub-pixel exact."""
        height, width = sprite.layer.shape[:2]
        half_width, half_height = width / self.scale / 2, height / self.scale / 2
        x, y = centre
        target = self.window(Area(x - half_width, y - half_height, x + half_width, y + half_height))
        across = (x - half_width - target.origin[0]) * self.scale
        down = (y - half_height - target.origin[1]) * self.scale
        shift = np.array([[1, 0, across], [0, 1, down]], np.float64)
        rows, columns = target.pixels.shape[:2]
        ink = cv2.warpAffine(sprite.layer, shift, (columns, rows), flags=cv2.INTER_LINEAR)
        blend(target.pixels, np.asarray(ink, np.uint8))


class Sprite:
    """A small layer painted once and stamped many times; its middle is design point (0, 0)."""

    def __init__(self, canvas: Canvas) -> None:
        self.layer = canvas.layer()
        self.layer.setflags(write=False)


def sprite_canvas(width: float, height: float, scale: float) -> Canvas:
    return Canvas(width, height, scale, origin=(-width / 2, -height / 2))


def blend(below: npt.NDArray[np.uint8], layer: Layer) -> None:
    """Put a premultiplied layer over opaque pixels (BGR or BGRA) of the same height and width."""
    through = 255 - layer[..., 3]
    if below.shape[2] == 3:
        kept = cv2.multiply(below, cv2.merge((through,) * 3), scale=1 / 255)
        below[:] = cv2.add(kept, cv2.cvtColor(layer, cv2.COLOR_BGRA2BGR))
    else:
        kept = cv2.multiply(below, cv2.merge((through,) * 4), scale=1 / 255)
        below[:] = cv2.add(kept, layer)


def stepped(value: float, step: float) -> float:
    """The multiple of `step` that is nearest."""
    return round(value / step) * step


def _around(path: Path, margin: float) -> Area:
    left, top = path.min(axis=0) - margin
    right, bottom = path.max(axis=0) + margin
    return Area(float(left), float(top), float(right), float(bottom))
