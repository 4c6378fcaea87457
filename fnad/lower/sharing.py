"""How a machine with many threads may share out the loops of a nest.

Of loops that follow one another, around effects alone, each is *free* (`independence.py`), or *folded*, if its
iterations are independent but for folds over it whose parts may be put together, or else they run in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from fnad.lower.independence import is_free
from fnad.lower.index import Counter
from fnad.lower.loop_ir import ArgReduce, Effect, Item, NestLoop, Reduce, Scan, Update, effect_loads, effects
from fnad.lower.nodes import BufferLoad
from fnad.lower.parallel import is_in_any_order
from fnad.records import dataclass


@dataclass(frozen=True, slots=True)
class Roles:
    """The loops of a nest by what may be done with them, in their order."""

    free: tuple[NestLoop, ...]
    folded: tuple[NestLoop, ...]
    ordered: tuple[NestLoop, ...]

    @property
    def results(self) -> int:
        """The number of iterations of the free loops."""
        return size(self.free)

    @property
    def length(self) -> int:
        """The number of iterations of the folded loops."""
        return size(self.folded)


def size(loops: Sequence[NestLoop]) -> int:
    """The number of iterations of loops that follow one another."""
    return prod(loop.extent for loop in loops)


def roles(loops: Sequence[NestLoop]) -> Roles:
    """The roles of loops that follow one another around effects."""
    inner = loops[-1].items
    free = tuple(loop for loop in loops if is_free(loop, inner))
    folded = tuple(loop for loop in loops if loop not in free and _is_folded(loop, inner))
    return Roles(free, folded, tuple(loop for loop in loops if loop not in free and loop not in folded))


def _is_folded(loop: NestLoop, effects: Sequence[Item]) -> bool:
    folds = [effect for effect in effects if isinstance(effect, Reduce) and loop.depth in effect.depths]
    others = [effect for effect in effects if effect not in folds]
    return bool(folds) and all(map(is_in_any_order, folds)) and is_free(loop, others)


def groups(effects: Sequence[Effect]) -> list[list[Effect]]:
    """The effects of a loop, in order, in groups of which each runs over loops in one way."""
    found: list[list[Effect]] = []
    for effect in effects:
        if found and _go_together([*found[-1], effect]):
            found[-1].append(effect)
        else:
            found.append([effect])
    return found


def _go_together(effects: Sequence[Effect]) -> bool:
    depths = {effect.depths for effect in effects if isinstance(effect, Reduce)}
    return len(depths) < 2 and not any(isinstance(effect, Scan | ArgReduce | Update) for effect in effects)


def reads_along(loop: NestLoop, others: Sequence[NestLoop]) -> bool:
    """Whether neighbouring iterations of a loop read neighbouring elements, more often than those of other loops."""
    loads = [load for effect in loop_effects(loop) for load in effect_loads(effect)]
    # What varies along one of the loops alone is read again and again, and stays in the cache.
    loads = [n for n in loads if _stride(n, loop) and any(_stride(n, other) for other in others)] or loads
    return _neighbours(loop, loads) >= max((_neighbours(other, loads) for other in others), default=0)


def _neighbours(loop: NestLoop, loads: Sequence[BufferLoad]) -> int:
    return sum(abs(_stride(load, loop)) == 1 for load in loads)


def _stride(load: BufferLoad, loop: NestLoop) -> int:
    return load.address.coefficient(Counter(loop.depth, loop.extent))


def loop_effects(loop: NestLoop) -> list[Effect]:
    """The effects of a loop and of those inside."""
    return [effect for effect in effects(loop) if isinstance(effect, Effect)]
