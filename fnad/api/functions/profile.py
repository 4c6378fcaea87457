"""`profile`: the time of a function in native code, by lines of user code."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from typing import Any, NamedTuple

from fnad.api.functions.jit import Compiled, jit
from fnad.api.inspect.tables import columns, html_table
from fnad.api.staging.leaves import Function, check_function
from fnad.backends.base import PROFILE
from fnad.backends.tiers import staged
from fnad.errors import SettingError
from fnad.ir.program import Source
from fnad.ir.walk import acts_outside
from fnad.tracebacks import boundary


class LineTime(NamedTuple):
    """The shares of the time in a line of user code: in the values it computes, and in their derivatives."""

    source: Source
    forward: float
    derivative: float

    @property
    def share(self) -> float:
        """The share of the time in the line."""
        return self.forward + self.derivative


class Profile(NamedTuple):
    """The time of a function by lines, the longest first; `elsewhere` is the share of what belongs to none.

    It consists of so many `samples`, taken in so many `runs`. There are no lines if the function is too short.
    """

    function: str
    lines: tuple[LineTime, ...]
    elsewhere: float
    samples: int
    seconds: float
    runs: int

    @property
    def is_derivative(self) -> bool:
        """True if some of the time is in derivatives."""
        return any(line.derivative for line in self.lines)

    def __str__(self) -> str:
        return f"{self._about}\n{columns(self._rows)}" if self.lines else f"{self._about}\n{TOO_SHORT}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        if not self.lines:
            return html_table(self._about, [[TOO_SHORT]])
        head, *rows = self._rows
        return html_table(self._about, rows, head=head)

    @property
    def _about(self) -> str:
        return f"{self.function}: {self.samples:,} samples in {self.seconds:.1f} s, {self.runs:,} runs"

    @property
    def _rows(self) -> list[list[str]]:
        rows = [["forward", "derivative", "", "line"] if self.is_derivative else ["time", "", "line"]]
        for line in self.lines:
            shares = (line.forward, line.derivative) if self.is_derivative else (line.forward,)
            rows.append([*map(_percent, shares), "", str(line.source)])
        rest = ["", _percent(self.elsewhere)] if self.is_derivative else [_percent(self.elsewhere)]
        return [*rows, [*rest, "", "elsewhere: loops, calls from Python"]]

    def note(self, file: str, line: int) -> str:
        """The shares of a line of a file, as text; empty for a line that takes none."""
        found = next((x for x in self.lines if (x.source.file, x.source.line) == (file, line)), None)
        if found is None:
            return ""
        values = f"{100 * found.forward:.1f} + " if self.is_derivative else ""
        return values + _percent(found.derivative if self.is_derivative else found.forward)


TOO_SHORT = "too little of the time is in native code for a profile: give larger arrays"


@boundary
def profile(f: Function, /, *args: Any, **kwargs: Any) -> Profile:
    """The time of `f(*args, **kwargs)` in native code, by lines of user code, forward and derivative.

    The program is compiled with lines and run again and again, for a second or more. The address that the thread
    executes is sampled two thousand times a second. The runs are on one thread. A program with effects runs once.

    Parameters:
        f (function): A function of pytrees of arrays and numbers, which may be transformed.
        *args, **kwargs (pytrees of arrays and numbers): Its arguments.
    Returns:
        Profile: The shares of the lines; its text is a table.
    Raises:
        UnsupportedFunctionError: On other systems than Linux on x86-64 and ARM64.
        LoweringError: If the program is not compiled.
        SettingError: If it runs on a device.
    Examples:
        >>> import numpy as np, fnad
        >>> def f(x):
        ...     y = np.arctan2(np.sin(x), x)
        ...     return np.sum(y + 1)
        >>> longest = fnad.debug.profile(f, np.ones(100_000)).lines[0]  # doctest: +SKIP
        >>> longest.source.line, longest.share > 0.5  # doctest: +SKIP
        (2, True)
    """
    check_function(f, "profile")
    lowered = (f if isinstance(f, Compiled) else jit(f)).lower(*args, **kwargs)
    if lowered.path.device != "cpu":
        raise SettingError("programs on a GPU have no profile by line", remedy="profile with device='cpu'")
    program, arrays = lowered.path.own[-1], lowered.operands(args, kwargs)
    once = any(map(acts_outside, program.equations))
    module = import_module(PROFILE)
    found = module.sampled(staged(program).simplified, arrays, once=once)
    return _of_samples(program.name, found, module.FEWEST)


def _of_samples(name: str, found: Any, fewest: int) -> Profile:
    forward, derivative = Counter[tuple[str, int]](), Counter[tuple[str, int]]()
    sources: dict[tuple[str, int], Source] = {}
    for (source, mode), count in found.by_source.items():
        place = source.file, source.line
        sources.setdefault(place, source)
        (derivative if mode else forward)[place] += count
    inside = forward.total() + derivative.total()
    samples = inside + found.elsewhere
    lines = [LineTime(s, forward[place] / samples, derivative[place] / samples) for place, s in sources.items()]
    lines = sorted(lines, key=lambda line: -line.share) if inside >= fewest else []
    return Profile(name, tuple(lines), found.elsewhere / max(samples, 1), samples, found.seconds, found.runs)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
