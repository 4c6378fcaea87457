"""Forward and reverse mode of the bodies of loops and branches, with the rules of spectral functions."""

from __future__ import annotations

from collections.abc import Sequence

from fnad.ir.program import Program
from fnad.transforms import joint as reverse_mode
from fnad.transforms import jvp as forward_mode
from fnad.transforms.spectral import through_spectral_functions


def joint(program: Program, wrt: Sequence[bool]) -> Program:
    """Return the program (x…, ct…) -> (y…, x̄…)."""
    return through_spectral_functions(lambda found: (reverse_mode.joint(found, wrt),))(program)[0]


def jvp(program: Program, wrt: Sequence[bool]) -> Program:
    """Return the program (x…, dx…) -> (y…, dy…)."""
    return through_spectral_functions(lambda found: (forward_mode.jvp(found, wrt),))(program)[0]
