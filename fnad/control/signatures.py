"""The words that rules of primitives with regions are typed in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from fnad.ir.program import Program
from fnad.ir.symbol import Symbol
from fnad.transforms.joint import Cotangent, Pullback
from fnad.transforms.jvp import Tangent

Symbols: TypeAlias = Sequence[Symbol]
Tangents: TypeAlias = Sequence[Tangent]
Cotangents: TypeAlias = Sequence[Cotangent]
Flags: TypeAlias = Sequence[bool]
Regions: TypeAlias = tuple[Program, ...]

Pushed: TypeAlias = tuple[list[Symbol], list[Tangent]]
"""Results and their tangents."""

Pulled: TypeAlias = tuple[list[Symbol], Pullback]
"""Results and their pullback."""
