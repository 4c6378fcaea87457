"""`fnad lint`: the operations of a function whose operand can reach a point where they are singular.

It also names the lines where float32 becomes float64, which takes twice the memory from there on.
"""

from __future__ import annotations

from collections.abc import Iterator

from fnad.api.staging.stage import Staged
from fnad.cli.calls import given_call
from fnad.cli.load import load_target, user_code
from fnad.control.singular import Finding, findings, range_of
from fnad.control.widening import widening_lines
from fnad.ir.program import Source, Var
from fnad.ir.ranges import INF, Range
from fnad.ir.types import BOOL


def lint(function: str, types: str, values: str | None) -> tuple[str, int]:
    """The findings as text, and how many; raises `UsageError` if the function does not exist or cannot be traced."""
    target = load_target(function)
    with user_code(target.path):
        staged = given_call(target, types, values).staged()
    found = found_in(staged)
    reports = [*map(_lines, found), *map(_widening_lines, widening_lines(staged.program))]
    return "\n".join([*map("\n".join, reports), f"{target.name}: {_count(len(reports))}"]), len(reports)


def found_in(staged: Staged) -> list[Finding]:
    """The findings of a traced call: arrays that it takes from outside are known, and what Python decided by."""
    guards = ((guard.atom, bool(guard.expected)) for guard in staged.guards)
    holding = [(atom, held) for atom, held in guards if isinstance(atom, Var) and atom.aval.dtype == BOOL]
    return findings(staged.program, list(map(range_of, staged.operands[staged.leaves :])), holding)


def _count(found: int) -> str:
    return f"{found} finding{'s' * (found > 1)}" if found else "nothing found"


def _widening_lines(source: Source) -> Iterator[str]:
    yield str(source)
    yield "  float32 becomes float64 here, beside numbers in float64 or integers"
    yield "  write float(…), a Python number takes the dtype of what is beside it, or np.float32(…)"


def _lines(finding: Finding) -> Iterator[str]:
    name, operand = finding.equation.primitive.name, finding.singular.operand
    values = ["x", "y", "z"][: len(finding.equation.operands)]
    yield str(finding.source)
    yield f"  {name}({', '.join(values)}) with {values[operand]} in {finding.found}: {finding.singular.elsewhere}"
    yield f"  {_way_out(values[operand], finding.required)}"


def _way_out(x: str, required: Range) -> str:
    """The remedy for an operand that has to be in a range."""
    low = [f"{x} {'>' if required.above else '>='} {required.low:g}"] if required.low > -INF else []
    high = [f"{x} {'<' if required.below else '<='} {required.high:g}"] if required.high < INF else []
    conditions = [*low, *high, *[f"{x} != 0"] * required.nonzero]
    condition = f"({conditions[0]}) & ({conditions[1]})" if len(conditions) == 2 else conditions[0]
    bounded = {(1, 0): f"np.maximum({x}, …)", (0, 1): f"np.minimum({x}, …)", (1, 1): f"np.clip({x}, …, …)"}
    bound = bounded.get((len(low), len(high)))
    bounds = f"bound it before, {bound}, or " if bound else ""
    return f"{bounds}choose where it is used, np.where({condition}, …, …): what is not chosen has no derivative"
