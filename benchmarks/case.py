"""What is measured: a case is one input and, for each system, a contender that computes the same result from it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

PEERS = {
    "fnad": "fnad",
    "numpy": "numpy",
    "jax": "jax",
    "torch": "torch",
    "autograd": "autograd",
    "numba": "benchmarks.native",
    "casadi": "casadi",
    "cupy": "cupy",
}
"""Each system's name on the command line, and the module that its contenders are given."""

ALWAYS = frozenset({"fnad", "numpy"})


@dataclass(frozen=True, slots=True)
class Reading:
    """One measured run: its time, what it computed, and a remark for the table."""

    seconds: float
    result: Any = ()
    note: str = ""


class Sampler(Protocol):
    """A contender made ready: the first run is read apart from those that follow."""

    def first(self) -> Reading: ...

    def sample(self) -> float: ...


class Contender(Protocol):
    """A row of the table: `start` raises `ModuleNotFoundError` where its peer is not installed."""

    @property
    def system(self) -> str: ...

    @property
    def peer(self) -> str: ...

    def start(self) -> Sampler: ...


@dataclass(frozen=True, slots=True)
class Case:
    """Contenders over one input; their results may differ by `tolerance`, relative to each array's largest element."""

    title: str
    contenders: Sequence[Contender]
    tolerance: float = 0.0
    unit: str = "ms"
    rounds: int = 31
    baseline: str = ""  # a system whose time the remarks subtract
    per: tuple[int, str] | None = None  # a number of things, whose share of the time the remarks tell
