"""Angles in degrees, and elementary functions that NumPy does not have."""

from __future__ import annotations

import math

from fnad.ops.arithmetic import neg
from fnad.ops.elementary import sin
from fnad.ops.kinds import LINE
from fnad.ops.library import special
from fnad.ops.shape import full_like

DEGREE = math.pi / 180

sindg = special("sindg", "Sine of an angle in degrees.", lambda y, x: cosdg(x) * DEGREE, over=(LINE,))
cosdg = special("cosdg", "Cosine of an angle in degrees.", lambda y, x: sindg(x) * -DEGREE, over=((89.0, 91.0),))
tandg = special("tandg", "Tangent of an angle in degrees.", lambda y, x: (y * y + 1.0) * DEGREE, over=(LINE,))
cotdg = special(
    "cotdg", "Cotangent of an angle in degrees.", lambda y, x: (y * y + 1.0) * -DEGREE, over=((89.0, 91.0),)
)
radian = special(
    "radian",
    "An angle in degrees, minutes and seconds, in radians.",
    lambda y, d, m, s: full_like(y, DEGREE),
    lambda y, d, m, s: full_like(y, DEGREE / 60),
    lambda y, d, m, s: full_like(y, DEGREE / 3600),
)
cosm1 = special("cosm1", "cos(x) - 1, accurate for small x.", lambda y, x: neg(sin(x)), over=(LINE,))
exp10 = special("exp10", "10 to the power x.", lambda y, x: y * math.log(10))
