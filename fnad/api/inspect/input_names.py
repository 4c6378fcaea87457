"""The names of a program's inputs in a dump: those of the user's arguments, as words of the language.

What the function takes from outside is called `captured`, the tangent of x is `dx`, a cotangent `ct`; a pullback calls
a residual what the forward part calls it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from fnad.api.staging.stage import Staged
from fnad.ir.printer import RESERVED, name_values
from fnad.ir.program import Program, Var


def input_names(leaves: Sequence[str], program: Program) -> list[str]:
    """The names of all inputs of a program, the first of which are these leaves of arguments."""
    words = [as_word(leaf) or "x" for leaf in leaves]
    return unique([*words, *["captured"] * (len(program.inputs) - len(leaves))])


def tangent_names(names: Sequence[str], wrt: Sequence[bool]) -> list[str]:
    """The names of the inputs, and of the tangents behind them."""
    return unique([*names, *[f"d{name}" for name, marked in zip(names, wrt, strict=True) if marked]])


def pullback_names(forward: Program, names: Sequence[str], staged: Staged) -> list[str]:
    """The names of the inputs of a pullback: of the residuals, and of the cotangents behind them."""
    known = name_values(forward, names)
    residuals = forward.outputs[len(staged.program.outputs) :]
    found = [known[atom] if isinstance(atom, Var) else "residual" for atom in residuals]
    return unique([*found, *["ct"] * staged.outputs])


def as_word(name: str) -> str:
    """A name as a word, with underscores for all else: `w_0` for `w[0]`."""
    return re.sub(r"\W+", "_", name).strip("_")


def unique(words: Iterable[str]) -> list[str]:
    """Words that differ from each other and name values."""
    found: dict[str, None] = {}
    for word in words:
        names = (name for n in range(1, len(found) + 3) if (name := word if n == 1 else f"{word}_{n}") not in RESERVED)
        found[next(name for name in names if name not in found)] = None
    return list(found)
