"""Control flow: the primitives whose equations have regions, one a file, each with all its rules.

Importing this package registers them in `fnad.ir.primitive.PRIMITIVES`. Their derivatives are programs made by the
transforms of their regions, which is why they live above `fnad.transforms`, not among the other primitives.
"""

from fnad.control import callback, checkpoint, cond, custom, implicit, integral, ode, scan, snapshots, while_loop
from fnad.ir.primitive import PRIMITIVES

__all__ = [
    "OWN",
    "callback",
    "checkpoint",
    "cond",
    "custom",
    "implicit",
    "integral",
    "ode",
    "scan",
    "snapshots",
    "while_loop",
]

OWN = frozenset(PRIMITIVES)
"""The primitives of fnad, which mean the same in each process; a user's may be others under the same names."""
