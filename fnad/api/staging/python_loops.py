"""Loops of Python whose steps take different branches, traced as one loop with the branches in its body.

A step of such a loop runs on values that are carried. Each way through it that is met, or was met in an earlier trace,
is recorded by a run of Python; all other steps of the trace at hand follow the ways that are recorded. In the end the
ways are put together (`fnad.control.ways`) and the loop is one equation. A guard says that no step went another way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import repeat
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, TypeVar

from fnad.api.staging.dataclass_trees import NAMESPACE
from fnad.api.staging.leaves import pytrees
from fnad.ir.builder import current_builder
from fnad.ir.program import Atom, Source
from fnad.trace.capture import Guard, Trace
from fnad.trace.environment import Environment
from fnad.trace.looping import LOOPING, ROWS, SETTING, Parted, Refused, unhidden
from fnad.trace.source import is_repeated, loop_around, user_lines
from fnad.trace.writes import undoing

if TYPE_CHECKING:
    from fnad.api.staging.python_loop import Known, Left  # not before a loop is marked
    from fnad.api.staging.row_loop import Results
    from fnad.trace.listed import Listed, ListForm

T = TypeVar("T")
Key = tuple[str, int, int]
"""A loop: its file, line and column."""

APART = (
    "a nested comprehension, one of a dict or set, a generator, or a loop with yield, del, global or an import in it, "
    "is traced step by step"
)

MANY, FEW = 100, 8
"""The decisions of a line in a trace from which the loops around it are one; those of a line in a `try`."""


class PythonLoops:
    """The loops of a function that are one loop each, for one signature: those around the lines that are `marked`.

    `ends` has the possible last states of each loop in a step, by the value that is its last state. `counts` has the
    numbers of steps of the loops around, by their counters. `forms` has what is known of the `lists` that steps extend.
    If it `decides_first`, a loop in a step runs for the decisions behind it, and again for its derivative.
    """

    def __init__(self) -> None:
        self.marked: set[tuple[str, int]] = set()
        self.known: dict[Key, Known] = {}
        self.by_rows: dict[Hashable, Results | None] = {}
        self.left: list[Left] = []
        self.used: list[Known] = []
        self.decided: dict[Source, list[int]] = {}
        self.ends: dict[Atom, frozenset[int]] = {}
        self.counts: dict[Atom, int] = {}
        self.forms: dict[Key, ListForm] = {}
        self.lists: list[Listed] = []
        self.grown = self.recorded = 0
        self.fills_caches = self.decides_first = False

    def mark(self, failures: Sequence[tuple[Any, tuple[int, int]]]) -> None:
        """Have the loops around guards that failed be one loop each."""
        for path, (number, _) in failures:
            self.marked.update(path.guards[number].lines)

    @property
    def version(self) -> tuple[int, ...]:
        """The knowledge of the loops, as numbers that grow."""
        known, room = self.known.values(), sum(form.version for form in self.forms.values())
        refused, carried = sum(k.refused is not None for k in known), sum(len(k.carried) for k in known)
        return self.grown, refused, carried, room

    def begin(self) -> None:
        """Begin a run of the function."""
        self.left, self.used, self.lists, self.recorded = [], [], [], 0
        self.decided, self.ends, self.counts = {}, {}, {}
        self.fills_caches = False

    def decides(self, source: Source, answer: int) -> None:
        """Mark the loops around a line that has decided often, and not always the same; then the trace begins again."""
        known = self.decided.setdefault(source, [0, answer, False])
        known[0] += 1
        known[2] |= answer != known[1]
        if known[2] and known[0] > MANY:
            self.parts(source)

    def tries(self, source: Source) -> None:
        """Mark the loops around a line in a `try` that has decided several times if an operation fails."""
        if self.decided.get(source, [0])[0] > FEW:
            self.parts(source)

    def caches(self) -> None:
        """Note that a step fills a cache, which a step that stands for others may fill although Python does not."""
        self.fills_caches = True

    def reads_caches(self) -> None:
        """Begin the trace again step by step if code reads what is cached, and a step has filled a cache."""
        if LOOPING.steps:
            raise Refused("a step reads what is cached")
        if self.fills_caches:
            self.refuse("a step fills a cache that is read behind it", self.used)
            raise Parted

    def parts(self, source: Source) -> None:
        """Begin the trace again with the loops around a line marked, if there are some that are not."""
        if LOOPING.steps or (source.file, source.line) in self.marked:
            return
        lines = user_lines(PythonLoops.traced.__code__)
        if any(is_repeated(Source(*line, "")) for line in lines):  # also of a caller
            self.marked.update(lines)
            raise Parted

    def parts_rows(self) -> None:
        """Begin the trace again with the rows of the innermost `vmap` one after the other, if that has not failed."""
        key = ROWS.innermost
        if key is not None and key not in self.by_rows:
            self.by_rows[key] = None
            self.known.clear()  # loops of one row may be one loop where those of all rows were not
            raise Parted

    def reasons(self, guards: Iterable[Guard]) -> Iterator[str]:
        """The loops around guards of a trace that stay paths, each with the reason."""
        for known in self.known.values():
            if known.refused is not None:
                yield f"{known.refused.why}\n    at {known.refused.source or known.source}"
        lines = {(known.source.file, known.source.line) for known in self.known.values()}
        around = [loop_around(guard.source) for guard in guards if guard.source is not None]
        for source in dict.fromkeys(each for each in around if each is not None):
            if (source.file, source.line) not in lines:
                yield f"{APART}\n    at {source}"

    def traced(self, trace: Callable[[], T], read: Environment) -> T:
        """`trace()` with loops that are one. Where that fails, the function is traced step by step instead.

        What an abandoned trace changed is undone; `read` has the content of arrays from outside.
        """
        while True:
            with self._active(), undoing() as changes:
                why = ""
                try:
                    found = unhidden(trace)
                    if not self.left:
                        return found
                    why = "a step leaves it by an exception"
                except (Parted, Refused) as ended:
                    self._refuse_in(ended)
                except Exception as error:
                    if not (self.used or self.lists):
                        raise
                    for each in self.lists:
                        each.form.is_refused = True
                    why = f"{type(error).__name__} in a step or behind it"
                changes.undo()
                deque(read.restored_arrays(), 0)
            if not why or self._avoids_given():
                continue
            failed = [left.known for left in self.left[:1]] or self.used
            if self.by_rows and any(known.refused is None for known in failed):  # only loops decide for rows that part
                self.refuse(why, failed)
                continue
            with self._active(StepByStep(self)), undoing() as changes:
                try:
                    found = unhidden(trace)
                except Parted:
                    changes.undo()
                    deque(read.restored_arrays(), 0)
                    continue
            self.refuse(why, failed)
            return found

    def _refuse_in(self, ended: Parted | Refused) -> None:
        """Have the loop that ended a trace, if one did, traced step by step from now on."""
        if isinstance(ended, Refused):
            known = ended.loop, *(left.known for left in self.left), *self.used[::-1]
            next(each for each in known if each is not None).refused = ended

    def refuse(self, why: str, loops: Iterable[Known]) -> None:
        """Have loops traced step by step from now on."""
        for known in loops:
            known.refused = Refused(why)

    def _avoids_given(self) -> bool:
        """True if all loops that were left had given answers, which are not given again."""
        given = [left for left in self.left if left.given is not None]
        if not given or len(given) < len(self.left):
            return False
        for left in given:
            left.known.failed.add(left.given)  # pyright: ignore[reportArgumentType]
        return True

    @contextmanager
    def _active(self, loops: Any = None) -> Generator[None]:
        before = LOOPING.loops, LOOPING.steps
        LOOPING.loops, LOOPING.steps = loops or self, []
        self.begin()
        try:
            yield
        finally:
            LOOPING.loops, LOOPING.steps = before

    # ---- the loops of user code --------------------------------------------------------------------------------------

    def each(self, values: Any, place: tuple[Any, ...], frame: FrameType, code: CodeType | None = None) -> Any:
        """The values for the steps of a `for` loop, which is in this code if not in that of the frame."""
        if (known := self._known(place, code or frame.f_code)) is None:
            return values
        from fnad.api.staging.loop_items import items_of  # noqa: PLC0415
        from fnad.api.staging.python_loop import PythonLoop  # noqa: PLC0415

        self.spread()
        items = items_of(values)
        if items is None or (items.most is not None and items.most < 2):
            return values
        return PythonLoop(self, known, place, frame, items).run()

    def turns(self, place: tuple[Any, ...], frame: FrameType) -> Iterator[Any]:
        """The steps of a `while` loop."""
        if (known := self._known(place, frame.f_code)) is None:
            return repeat(None)
        from fnad.api.staging.loop_items import TURNS  # noqa: PLC0415
        from fnad.api.staging.python_loop import PythonLoop  # noqa: PLC0415

        self.spread()
        return PythonLoop(self, known, place, frame, TURNS).run()

    def spread(self) -> None:
        """Have arrays for the lists that steps extend, before the loop takes one of these."""
        for listed in self.lists:
            listed.spread()

    def listed(self, items: list[Any], place: tuple[int, int], code: CodeType) -> Any:
        """A list that a place in the code makes, and that steps of loops may extend."""
        if not self.marked:
            return items
        from fnad.trace.listed import Listed, ListForm  # noqa: PLC0415

        form = self.forms.setdefault((code.co_filename, *place), ListForm())
        if form.is_refused:
            return items
        enter_lists()
        self.lists.append(made := Listed(items, form))
        return made

    def comprehends(self, place: tuple[Any, ...], code: CodeType) -> bool:
        """True if a comprehension is one loop."""
        return self._known(place, code) is not None

    def _known(self, place: tuple[Any, ...], code: CodeType) -> Known | None:
        """The record of a loop, if the loop is to be one loop and can be."""
        line, column, first, last, *_ = place
        is_marked = any(file == code.co_filename and first <= line <= last for file, line in self.marked)
        if not (SETTING and is_marked and code.co_flags & OPTIMIZED and isinstance(current_builder(), Trace)):
            return None
        from fnad.api.staging.python_loop import Known  # noqa: PLC0415

        key, source = (code.co_filename, line, column), Source(code.co_filename, line, code.co_name)
        known = self.known.setdefault(key, Known(source))
        return known if known.refused is None else None


class StepByStep:
    """The loops of a trace in which none is one loop."""

    marked = frozenset[tuple[str, int]]()
    decides_first = False

    def __init__(self, loops: PythonLoops) -> None:
        self.by_rows, self.parts_rows = loops.by_rows, loops.parts_rows

    def each(self, values: Any, *_: Any) -> Any:
        return values

    listed = each

    def turns(self, place: tuple[Any, ...], frame: FrameType) -> Iterator[Any]:
        return repeat(None)

    def decides(self, *_: Any) -> None:
        pass

    tries = parts = caches = reads_caches = comprehends = decides


@cache
def enter_lists() -> None:
    """Have lists of loops be containers of pytrees, as lists are."""
    from fnad.trace.listed import Listed  # noqa: PLC0415

    pytrees().register_pytree_node(
        Listed, lambda listed: (listed.data, None), lambda _, items: list(items), namespace=NAMESPACE
    )


OPTIMIZED = 1
"""The flag of the code of functions, whose variables are not in a dictionary."""
