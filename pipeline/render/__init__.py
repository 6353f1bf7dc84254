"""The face: what is being said and how the talk stands → poses → pictures.

phonemes → `visemes` → `settling` → `mouth` (shape at audio position p) ─┐
mood, stress and idle life ─────────────────────────────────────────────┴→ `performance` → Pose
Pose → `drawn_face` (painted by `portrait`) → BGR picture
"""
