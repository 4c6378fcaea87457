"""Elementary functions of one real or complex variable: exponential, logarithm, trigonometric, hyperbolic."""

from __future__ import annotations

import numpy as np

from fnad.ops.arithmetic import neg
from fnad.ops.kinds import INEXACT, elementwise

exp = elementwise(
    "exp", np.exp, "exp({0})", (lambda y, x: y,), domain=INEXACT, cost=20, doc="Exponential function."
)
log = elementwise("log", np.log, "log({0})", (lambda y, x: 1.0 / x,), domain=INEXACT, cost=20, doc="Natural logarithm.")
sin = elementwise("sin", np.sin, "sin({0})", (lambda y, x: cos(x),), domain=INEXACT, cost=20, finite=True, doc="Sine.")
cos = elementwise(
    "cos", np.cos, "cos({0})", (lambda y, x: neg(sin(x)),), domain=INEXACT, cost=20, finite=True, doc="Cosine."
)
tanh = elementwise(
    "tanh",
    np.tanh,
    "tanh({0})",
    (lambda y, x: 1.0 - y * y,),
    domain=INEXACT,
    cost=25,
    finite=True,
    doc="Hyperbolic tangent.",
)
