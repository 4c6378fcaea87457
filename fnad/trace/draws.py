"""Runs of a function whose random draws are inputs of its trace, so that the trace can be used again.

A draw from a generator of NumPy changes the generator. If a function has no other effect, a later call can make the
same draws, in their order, and use the trace. For this the function runs with a traced value in the place of each draw:
what Python decides by it is a guard, and what needs a number is an error.

Nothing else may be done with a generator: to read its state, copy it or make another one ends the run. So does any
effect, before it happens. Behind the run, copies of the generators draw again. If they give other numbers, or end in
another state, code of a library has drawn too.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from functools import partial, wraps
from types import MethodType
from typing import Any, NamedTuple, NoReturn, TypeVar

import numpy as np

from fnad import forks
from fnad.ir.builder import current_builder
from fnad.ir.types import NAMES
from fnad.numpy.operands import as_weak
from fnad.trace.capture import Array, Trace, same_bits
from fnad.trace.generators import draws_numbers
from fnad.trace.reads import pickled
from fnad.trace.recording import RECORDING, Recorder
from fnad.trace.writes import DRAWING, undoing
from fnad.upward import UPWARD

T = TypeVar("T")

OTHERS = {"bit_generator", "bytes", "get_state", "seed", "set_state", "shuffle", "spawn"}
"""The attributes of generators that are no draws of new numbers."""


class NotRepeatableRun(BaseException):
    """Ends a run that does more than draw: no `except` of user code is meant to catch it."""


class Draw(NamedTuple):
    """A draw by a method of a generator, or without one an integer that is passed on; `array` is what came of it."""

    array: Any
    method: Any = None
    args: tuple[Any, ...] = ()
    kwargs: Any = None

    def again(self) -> Array:
        """The array of the next draw."""
        return self.array if self.method is None else np.asarray(self.method(*self.args, **self.kwargs))

    def without_numbers(self) -> Draw:
        """The same draw, without the numbers that came of it, which may be many."""
        return self if self.method is None else self._replace(array=None)

    def of(self, generator: Any) -> Draw:
        """The same draw from another generator."""
        return self._replace(method=getattr(generator, self.method.__name__))


class DrawRecorder(Recorder):
    """A recorder for a run in which draws are traced.

    `draws` are those of the latest outermost trace, in the order of the inputs that replace them.
    """

    def __init__(self) -> None:
        self.draws: list[Draw] = []
        self._root: Trace | None = None
        self._generators: dict[int, tuple[Any, bytes, Callable[[], None]]] = {}
        super().__init__(seeks_effects=True)
        python, numpy = forks.loaded("random"), forks.loaded("numpy.random")
        self._watch(python and python._inst)
        self._watch(numpy and numpy.mtrand._rand)

    @property
    def effect(self) -> str | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        return None

    @effect.setter
    def effect(self, effect: str | None) -> None:
        if effect is not None:
            refuse()

    @contextmanager
    def active(self) -> Generator[None]:
        with RECORDING.holding(self):
            yield
        self._note_imports()

    def attribute(self, owner: Any, name: str) -> None:
        if draws_numbers(owner) and (name in OTHERS or name[:1] == "_"):
            refuse()
        super().attribute(owner, name)

    def call(self, function: Any) -> bool:
        if str(getattr(function, "__module__", "")).startswith("numpy.random") and not self._is_draw(function):
            refuse()
        return super().call(function)

    def _is_draw(self, function: Any) -> bool:
        is_bound = isinstance(function, MethodType) and id(function.__self__) in self._generators
        return is_bound and function.__name__ not in OTHERS

    def _follow_content(self, value: Any) -> None:
        if draws_numbers(value):
            self._watch(value)
        else:
            super()._follow_content(value)

    def _watch(self, generator: Any) -> None:
        """Keep the state of a generator from outside, to compare and to restore it."""
        if generator is not None and id(generator) not in self._generators:
            kind = type(generator)
            take, give = DRAWING.get(f"{kind.__module__}.{kind.__qualname__}") or refuse()
            self._generators[id(generator)] = generator, pickled(generator), partial(give, generator, take(generator))

    def draw(self, method: MethodType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The traced value for what a method draws from a generator from outside."""
        if not self._is_draw(method):
            refuse()
        args, kwargs = pickle.loads(pickled((args, kwargs)))  # their content may change; a traced value has no pickle
        value = method(*args, **kwargs)
        is_array = type(value) is np.ndarray and value.dtype in NAMES
        if not (is_array or type(value) is float) or any(value is given for given in (*args, *kwargs.values())):
            refuse()
        return self.trace(Draw(np.asarray(value), method, args, kwargs), is_number=not is_array)

    def trace(self, draw: Draw, *, is_number: bool) -> Any:
        """The traced value for a draw; a Python number gives way to arrays."""
        builder = root = current_builder()
        while isinstance(root, Trace) and root.outer is not None and root.outer.alive:
            root = root.outer
        if not isinstance(root, Trace):
            refuse()
        if root is not self._root:
            self._root, self.draws = root, []
        self.draws.append(draw)
        symbol = builder.lift(root.draw(draw.array))
        if is_number:
            return UPWARD.handle_of(as_weak(symbol), is_scalar=True)
        return UPWARD.fresh_handle_of(symbol, False)

    def repeated_draws(self) -> Sequence[Draw]:
        """The draws, if later calls can make them and do nothing else; else the run ends."""
        if not (self.environment.holds() and self.is_repeatable()):
            refuse()
        return self.draws

    def is_repeatable(self) -> bool:
        """True if copies of the generators draw the same, and end as these do; the others are compared from now on."""
        copies = {key: pickle.loads(before) for key, (_, before, _) in self._generators.items()}
        drawn = [draw for draw in self.draws if draw.method is not None]
        if not all(same_bits(draw.of(copies[id(draw.method.__self__)]).again(), draw.array) for draw in drawn):
            return False
        for key, (generator, _, _) in self._generators.items():
            own = pickle.loads(pickled(generator))  # a copy too, for the generator may have equal texts more than once
            if pickled(copies[key]) != pickled(own):
                return False
            if key in self.kept and not any(draw.method.__self__ is generator for draw in drawn):
                self.environment.read(pickled, generator)
        return True

    def restore(self) -> None:
        """Give the generators the state that they had."""
        for _, _, give in self._generators.values():
            give()


class Varying:
    """An integer argument that was another one in the call before."""

    def __init__(self, value: int) -> None:
        self._value = value

    def received(self) -> Any:
        """The traced value in its place."""
        recorder = _draw_recorder() or refuse()
        return recorder.trace(Draw(np.array(self._value, np.int64)), is_number=True)


def with_traced_draws(run: Callable[[DrawRecorder], T], is_kept: Callable[[T, DrawRecorder], bool]) -> T | None:
    """The result of a run whose draws are traced; None if it is not kept or raises, and what it did is undone."""
    recorder = DrawRecorder()
    with undoing() as changes:
        with suppress(Exception, NotRepeatableRun):  # the run that follows raises what the function does
            result = run(recorder)
            if is_kept(result, recorder):
                return result
        changes.undo()
        recorder.restore()
    return None


def refuse() -> NoReturn:
    """End the run."""
    raise NotRepeatableRun


def drawing_again(method: MethodType) -> Any:
    """A method of a generator, with traced results in a run for that."""
    recorder = _draw_recorder()
    return method if recorder is None else wraps(method)(lambda *args, **kwargs: recorder.draw(method, args, kwargs))


def _draw_recorder() -> DrawRecorder | None:
    return next((recorder for recorder in RECORDING.values if isinstance(recorder, DrawRecorder)), None)
