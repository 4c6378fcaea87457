"""What the loops that are traced now keep for reverse mode, and the loops that keep just that."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, NamedTuple, TypeAlias

from fnad.control.blocks import in_blocks, unrolled
from fnad.control.loop import Groups
from fnad.control.scan import bind_scan, scan
from fnad.control.segments import checkpointed, count_in_segments, scan_in_segments, while_in_segments
from fnad.control.snapshots import with_snapshots
from fnad.control.while_loop import while_loop
from fnad.errors import SettingError
from fnad.ir.program import Program
from fnad.ir.symbol import Symbol
from fnad.trace.source import current_source

Policy: TypeAlias = Literal["carry", "sqrt", "binomial"]
Symbols: TypeAlias = Sequence[Symbol]


class Keeping(NamedTuple):
    """The policy of `checkpoint`; None: what is dear is kept. Of "binomial" the number of snapshots, or their bytes."""

    policy: Policy | None = None
    snapshots: int = 0
    budget: int | None = None

    def room(self, carry: Symbols) -> int:
        """Return how many copies of a carry are kept."""
        if self.budget is None:
            return self.snapshots
        return max(1, self.budget // max(1, sum(symbol.aval.nbytes for symbol in carry)))


_KEEPING: ContextVar[Keeping] = ContextVar("keeping", default=Keeping())  # noqa: B039 it cannot change


@contextmanager
def kept(setting: Keeping) -> Generator[None]:
    """Have the loops that are traced keep so much."""
    token = _KEEPING.set(setting)
    try:
        yield
    finally:
        _KEEPING.reset(token)


def _chosen(carry: Symbols) -> tuple[Policy | None, int]:
    """Return the policy, and how many copies of this carry it keeps where that is "binomial"."""
    keeping = _KEEPING.get()
    return keeping.policy, keeping.room(carry)


def run_scan(
    body: Program, groups: Groups, operands: Symbols, length: int, *, reverse: bool, unroll: int = 1
) -> Symbols:
    """Return the results of a scan over a known number of steps."""
    policy, snapshots = _chosen(groups.split(operands)[1])
    if policy == "sqrt":
        return scan_in_segments(body, groups, operands, length, reverse=reverse)
    if policy == "binomial" and length > snapshots:
        params: dict[str, Any] = {"consts": groups.consts, "carry": groups.carry, "length": length, "reverse": reverse}
        return with_snapshots(scan, snapshots, operands, **params, regions=(body,))
    if policy is None and unroll > 1:
        block = unrolled(body, groups, unroll, reverse=reverse)
        return in_blocks(block, body, groups, operands, length, unroll, reverse=reverse)
    return bind_scan(body if policy is None else checkpointed(body), groups, (), operands, length, reverse)


def run_count(body: Program, groups: Groups, operands: Symbols, steps: Symbol) -> Symbols:
    """Return the carry after a number of steps that only the run knows."""
    policy, snapshots = _chosen(groups.split(operands)[1])
    params: dict[str, Any] = {"consts": groups.consts, "carry": groups.carry, "length": None, "reverse": False}
    if policy == "sqrt":
        consts, carry, _ = groups.split(operands)
        return count_in_segments(body, consts, carry, steps)
    if policy == "binomial":
        return with_snapshots(scan, snapshots, [steps, *operands], **params, regions=(body,))
    return bind_scan(body if policy is None else checkpointed(body), groups, [steps], operands, None, reverse=False)


def run_while(
    test: Program, body: Program, consts: tuple[Symbols, Symbols], carry: Symbols, limit: int | None
) -> Symbols:
    """Return the carry after a while loop; `consts` are those of the test and of the body."""
    policy, snapshots = _chosen(carry)
    params: dict[str, Any] = {"test_consts": len(consts[0]), "body_consts": len(consts[1]), "max_steps": limit}
    operands = [*consts[0], *consts[1], *carry]
    if policy == "sqrt":
        if limit is not None:
            raise SettingError(
                "max_steps is not counted over the segments of the policy 'sqrt'",
                source=current_source(),
                remedy="take the policy 'binomial', or count the steps in the condition",
            )
        return while_in_segments(test, body, *consts, carry)
    if policy == "binomial":
        return with_snapshots(while_loop, snapshots, operands, **params, regions=(test, body))
    return while_loop(*operands, **params, regions=(test, body if policy is None else checkpointed(body)))
