"""Arrays without elements: every primitive and every call of the NumPy layer, compiled, is as interpreted."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import numpy as np
import optree
import pytest

from fnad import config, jit
from fnad.backends.cpu.executor import compile_program
from fnad.errors import FnadError, LoweringError, OutOfRangeError
from fnad.ir.builder import trace
from fnad.ir.primitive import PRIMITIVES
from fnad.ir.program import Program
from fnad.ir.types import Aval, aval_of
from fnad.numpy.operands import PYTHON_DTYPES
from fnad.testing import assert_close, tolerance
from fnad.trace.tracing import trace_function
from fnad.transforms.interpret import interpret
from tests.numpy.calls import CASES
from tests.together import drawn, in_groups

pytestmark = pytest.mark.filterwarnings("ignore")


def emptied(operands: Sequence[Any], random: Random) -> list[list[Any]]:
    """Return the operands cut to no elements along the first axis or the last one, which is drawn; [] for scalars."""
    cut = random.choice((np.s_[:0], np.s_[..., :0]))
    found = [x[cut] if isinstance(x, np.ndarray) and x.ndim else x for x in operands]
    return [found] if any(isinstance(x, np.ndarray) and x.size == 0 for x in found) else []


def assert_compiled_is_interpreted(program: Program, given: Sequence[Any]) -> None:
    """Compare results; where the interpreter raises an error, compiled code has that one or is refused."""
    try:
        expected = interpret(program, given)
    except (FnadError, ValueError) as error:
        with pytest.raises((type(error), LoweringError)):
            compile_program(program)(given)
        return
    for found, wanted in zip(compile_program(program)(given), map(np.asarray, expected), strict=True):
        assert found.dtype == wanted.dtype
        assert_close(found, wanted, tolerance(found.dtype))


def of_a_primitive(name: str) -> Iterator[tuple[Program, list[Any]]]:
    """Yield programs that apply a primitive to samples without elements, where there are such programs."""
    random = Random(name)
    for sample in PRIMITIVES[name].samples():
        for given in emptied([np.asarray(operand) for operand in sample.operands], random):

            def apply(*symbols: Any, sample: Any = sample) -> list[Any]:
                found = PRIMITIVES[name](*symbols, **sample.params, regions=sample.regions)
                return list(found) if isinstance(found, tuple) else [found]

            try:
                yield trace(apply, *map(aval_of, given), name="f"), given
            except FnadError:
                continue


def of_a_call(name: str) -> Iterator[tuple[Program, list[Any]]]:
    """Yield programs of a call on arrays without elements, where NumPy takes such ones."""
    function, *operands = CASES[name]
    for given in emptied(operands, Random(name)):
        weak, arrays = [type(x) in PYTHON_DTYPES for x in given], [isinstance(x, np.ndarray) for x in given]
        avals = [
            Aval(PYTHON_DTYPES[type(x)]) if is_weak else aval_of(np.asarray(x))
            for x, is_weak in zip(given, weak, strict=True)
        ]
        try:
            traced = trace_function(
                lambda leaves: optree.tree_flatten(function(*leaves))[0], avals, name="f", weak=weak, arrays=arrays
            )
        except Exception:  # noqa: BLE001  (NumPy's own, of whatever class)
            continue
        inputs = [np.asarray(x, aval.dtype) for x, aval in zip(given, avals, strict=True)]
        yield traced.program, [*inputs, *traced.captured]


@pytest.mark.slow
@pytest.mark.parametrize("initial", sorted({name[0] for name in PRIMITIVES}))
def test_primitives_on_arrays_without_elements(initial: str) -> None:
    for name in PRIMITIVES:
        for program, given in of_a_primitive(name) if name[0] == initial else ():
            with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
                assert_compiled_is_interpreted(program, given)


@in_groups("name", drawn(CASES, lambda name: name.partition(" ")[0]))
def test_calls_on_arrays_without_elements(name: str) -> None:
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
        for program, given in of_a_call(name):
            assert_compiled_is_interpreted(program, given)


def halved(x: Any) -> Any:
    x = x * 1
    x[np.array(-1, "i4")] //= 2
    return x


def test_what_writes_nothing_compiles() -> None:
    with config.override(executor="compiled"):
        assert jit(lambda x: np.interp(x, [0.0, 1.0], [2.0, 3.0]))(np.zeros(0)).shape == (0,)
        assert jit(halved)(np.ones((2, 0, 3))).shape == (2, 0, 3)


def added_to(x: Any, i: Any) -> Any:
    x = x * 1
    x[i] += 1
    return x


WRITES = [
    *(lambda i: (i[0], slice(0)), lambda i: (slice(0), i[0] - 3), lambda i: (i[0], slice(2, 2, 2))),
    *(lambda i: (i, slice(0)), lambda i: (slice(3, 1), i), lambda i: (i[0], slice(3, 3, -1))),
]


@pytest.mark.parametrize("executor", ["interpreter", "compiled"])
@pytest.mark.parametrize("index", WRITES)
def test_an_index_out_of_range_is_an_error_where_nothing_is_written(index: Any, executor: Any) -> None:
    def written(x: Any, i: Any) -> Any:
        x = x * 1
        x[index(i)] = 1.0
        return x

    with config.override(executor=executor):
        fast = jit(written)
        for i in ([7], [-9]):
            with pytest.raises(IndexError):
                written(np.ones((3, 4)), np.array(i))
            with pytest.raises(OutOfRangeError):
                fast(np.ones((3, 4)), np.array(i))


@pytest.mark.parametrize("executor", ["interpreter", "compiled"])
@pytest.mark.parametrize("f", [lambda x, i: x[i], lambda x, i: x[i[0]], lambda x, i: x.T[:, i], added_to])
def test_an_index_out_of_range_is_an_error_where_nothing_is_read(f: Any, executor: Any) -> None:
    with config.override(executor=executor), pytest.raises(OutOfRangeError, match="index 7 "):
        jit(f)(np.ones((3, 0)), np.array([7]))
