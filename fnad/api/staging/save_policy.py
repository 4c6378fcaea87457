"""The policies of saving for the loops that are being traced, and the loops that follow them."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

from fnad.blocks import Holding, LocalBlocks
from fnad.control.blocks import in_blocks, unrolled
from fnad.control.loop import Groups
from fnad.control.scan import bind_scan, scan
from fnad.control.segments import checkpointed, count_in_segments, scan_in_segments, while_in_segments
from fnad.control.signatures import Symbols
from fnad.control.snapshots import with_snapshots
from fnad.control.while_loop import while_loop
from fnad.errors import SettingError
from fnad.ir.program import Program
from fnad.ir.symbol import Symbol

Policy: TypeAlias = Literal["carry", "sqrt", "binomial"]


class SavePolicy(NamedTuple):
    """The policy of `checkpoint`; None saves what is expensive; "binomial" a number of snapshots or bytes."""

    policy: Policy | None = None
    snapshots: int = 0
    budget: int | None = None

    def room(self, carry: Symbols) -> int:
        """The number of copies of a carry that are saved."""
        if self.budget is None:
            return self.snapshots
        return max(1, self.budget // max(1, sum(symbol.aval.nbytes for symbol in carry)))


_POLICIES: LocalBlocks[SavePolicy] = LocalBlocks()


def saving(policy: SavePolicy) -> Holding[SavePolicy]:
    """Have the loops that are traced save by this policy."""
    return _POLICIES.holding(policy)


def _chosen(carry: Symbols) -> tuple[Policy | None, int]:
    """The policy, and how many copies of this carry it saves where that is "binomial"."""
    policy = _POLICIES.innermost or SavePolicy()
    return policy.policy, policy.room(carry)


def run_scan(
    body: Program, groups: Groups, operands: Symbols, steps: int | Symbol, *, reverse: bool = False, unroll: int = 1
) -> Symbols:
    """The results of a scan; only the run may know the number of steps, where there are no rows."""
    consts, carry, _ = groups.split(operands)
    policy, snapshots = _chosen(carry)
    count, length = ([], steps) if isinstance(steps, int) else ([steps], None)
    if policy == "sqrt":
        if length is None:
            return count_in_segments(body, consts, carry, *count)
        return scan_in_segments(body, groups, operands, length, reverse=reverse)
    if policy == "binomial" and (length is None or length > snapshots):
        params: dict[str, Any] = {"consts": groups.consts, "carry": groups.carry, "length": length, "reverse": reverse}
        return with_snapshots(scan, snapshots, [*count, *operands], **params, regions=(body,))
    if policy is None and length is not None and unroll > 1:
        block = unrolled(body, groups, unroll, reverse=reverse)
        return in_blocks(block, body, groups, operands, length, unroll, reverse=reverse)
    return bind_scan(body if policy is None else checkpointed(body), groups, count, operands, length, reverse)


def run_while(
    test: Program, body: Program, consts: tuple[Symbols, Symbols], carry: Symbols, limit: int | None
) -> Symbols:
    """The carry after a while loop; `consts` are those of the test and of the body."""
    policy, snapshots = _chosen(carry)
    params: dict[str, Any] = {"test_consts": len(consts[0]), "body_consts": len(consts[1]), "max_steps": limit}
    operands = [*consts[0], *consts[1], *carry]
    if policy == "sqrt":
        if limit is not None:
            raise SettingError.here(
                "max_steps is not counted over the segments of the policy 'sqrt'",
                remedy="take the policy 'binomial', or count the steps in the condition",
            )
        return while_in_segments(test, body, *consts, carry)
    if policy == "binomial":
        return with_snapshots(while_loop, snapshots, operands, **params, regions=(test, body))
    return while_loop(*operands, **params, regions=(test, body if policy is None else checkpointed(body)))
