"""Row 38: arguments that are written to, given twice, or read from outside as well."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from fnad import (
    checkpoint,
    cond,
    config,
    errors,
    grad,
    hessian,
    jacobian,
    jit,
    jvp,
    linearize,
    value_and_grad,
    vjp,
    vmap,
)
from tests.together import some_of, together

Function = Callable[..., Any]
TABLE = np.array([1.0, 2.0, 3.0])


def scaled(x: Any, y: Any) -> Any:
    x *= 2.0
    return np.sum(x * y)


def second(x: Any, y: Any) -> Any:
    y[0] = 10.0
    return np.sum(x * y)


def apart(x: Any, y: Any) -> Any:
    return np.sum(x * y)


def looked_up(x: Any) -> Any:
    x += 1.0
    return np.sum(x * TABLE)


RUNS: dict[str, Callable[[Function, Any, Any], Any]] = {
    "grad": lambda f, x, y: grad(f)(x, y),
    "of both": lambda f, x, y: value_and_grad(f, (0, 1))(x, y),
    "vjp": lambda f, x, y: vjp(f, x, y),
    "jvp": lambda f, x, y: jvp(f, (x, y), (x.copy(), y.copy())),
    "jit": lambda f, x, y: jit(f)(x, y),
    "jit of grad": lambda f, x, y: jit(grad(f))(x, y),
    "grad of jit": lambda f, x, y: grad(jit(f))(x, y),
    "in containers": lambda f, x, y: jit(lambda t: f(t["x"], t["y"]))({"x": x, "y": y}),
}
PAIRS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "one array": lambda: (TABLE, TABLE),
    "a view": lambda: (TABLE, TABLE[::-1]),
    "a part": lambda: (TABLE[:2], TABLE[1:]),
    "0-d": lambda: (lambda a: (a, a[...]))(np.array([2.0])),
}


@pytest.mark.parametrize("f", [scaled, second])
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("run", RUNS)
def test_row_38_arguments_that_share_memory(run: str, pair: str, f: Function) -> None:
    x, y = PAIRS[pair]()
    before = x.copy(), y.copy()
    with pytest.raises(errors.MutationError, match="shares memory with another one") as caught:
        RUNS[run](f, x, y)
    assert "x.copy()" in str(caught.value)
    assert_array_equal(x, before[0])
    assert_array_equal(y, before[1])
    RUNS[run](f, x.copy(), y.copy())
    RUNS[run](apart, x, y)


@pytest.mark.parametrize("run", RUNS)
def test_row_38_views_without_a_common_element(run: str) -> None:
    x = np.arange(6.0)
    RUNS[run](scaled, x[::2], x[1::2])


@pytest.mark.parametrize("run", RUNS)
def test_row_38_views_that_take_long_to_tell_apart(run: str) -> None:
    """They have no common element. NumPy needs more steps to find that than fnad lets it take."""
    memory, strides = np.zeros(600_000), ((39317, 1838, 52733, 15052), (11618, 36099, 38308, 11852))
    x, y = (
        np.lib.stride_tricks.as_strided(memory[start:], (5, 5, 5, 5), [8 * step for step in steps])
        for start, steps in zip((0, 41640), strides, strict=True)
    )
    assert not np.shares_memory(x, y)
    with pytest.raises(errors.MutationError, match="shares memory with another one"):
        RUNS[run](scaled, x, y)
    RUNS[run](scaled, x.copy(), y.copy())


def test_row_38_value_and_gradient_with_copies() -> None:
    value, gradient = value_and_grad(scaled, (0, 1))(TABLE, TABLE.copy())
    assert value == scaled(TABLE.copy(), TABLE.copy()) == 28
    assert_array_equal(gradient[0], 2 * TABLE)
    assert_array_equal(gradient[1], 2 * TABLE)


def test_row_38_the_line_of_the_write() -> None:
    with pytest.raises(errors.MutationError, match=r"test_user_arguments\.py:\d+ in scaled:  x \*= 2\.0"):
        grad(scaled)(TABLE, TABLE)


def test_row_38_a_path_known_already() -> None:
    f = jit(scaled)
    assert f(TABLE, TABLE.copy()) == 28
    with pytest.raises(errors.MutationError, match="shares memory"):
        f(TABLE, TABLE)
    assert f(TABLE, TABLE.copy()) == 28


@pytest.mark.parametrize("run", [grad, jit, lambda f: jit(grad(f)), lambda f: lambda x: vjp(f, x)])
def test_row_38_an_argument_that_is_read_from_outside(run: Any) -> None:
    f = run(looked_up)
    f(TABLE.copy())
    with pytest.raises(errors.MutationError, match="or with an array that it reads from outside"):
        f(TABLE)
    assert_array_equal(TABLE, [1, 2, 3])


READS: dict[str, Callable[[Any], Any]] = {
    "an element": lambda a: a[0],
    "a method": lambda a: a.sum(),
    "a Python number": lambda a: float(a[1]),
    "item": lambda a: a.item(0),
    "a list": lambda a: sum(a.tolist()),
    "elements": max,
    "a mask": lambda a: len(a[a > 2]),
    "a product": lambda a: np.dot(a, a),
    "a function": np.sum,
    "a decision": lambda a: 2.0 if a.any() else 3.0,
}


class Owner:
    """An object with an array."""

    def __init__(self, a: Any, read: Function) -> None:
        self.a = a
        self.read = read

    def total(self, x: Any) -> Any:
        x[0] = 5.0
        return x.sum() * self.read(self.a)

    def __call__(self, x: Any) -> Any:
        return self.total(x)

    def __getitem__(self, index: int) -> Any:
        return self.a


def by_closure(a: Any, read: Function) -> Function:
    def f(x: Any) -> Any:
        x[0] = 5.0
        return x.sum() * read(a)

    return f


def by_default(a: Any, read: Function) -> Function:
    def f(x: Any, a: Any = a) -> Any:
        x *= 5.0
        return x.sum() * read(a)

    return f


def by_element(a: Any, read: Function) -> Function:
    return by_closure([1, {"a": a}], lambda both: read(both[1]["a"]))


def by_helper(a: Any, read: Function) -> Function:
    return by_closure(lambda: read(a), lambda helper: helper())


def by_partial(a: Any, read: Function) -> Function:
    return functools.partial(lambda a, x: by_closure(a, read)(x), a)


def by_text(a: Any, read: Function) -> Function:
    return by_closure(Owner(a, read), lambda owner: read(getattr(owner, "a")))  # noqa: B009


def by_array_of_objects(a: Any, read: Function) -> Function:
    objects = np.empty(1, object)
    objects[0] = a
    return by_closure(objects, lambda objects: read(objects[0]))


def by_bound_method(a: Any, read: Function) -> Function:
    return by_closure(a.tolist, lambda tolist: read(np.array(tolist())))


OUTSIDE: dict[str, Callable[[Any, Function], Function]] = {
    "closure": by_closure,
    "default": by_default,
    "element": by_element,
    "helper": by_helper,
    "partial": by_partial,
    "bound method": by_bound_method,
    "special method": lambda a, read: by_closure(Owner(a, read), lambda owner: read(owner[0])),
    "namespace": lambda a, read: by_closure(SimpleNamespace(inner=SimpleNamespace(a=a)), lambda s: read(s.inner.a)),
    "getattr": by_text,
    "array of objects": by_array_of_objects,
    "memoryview": lambda a, _: by_closure(memoryview(a), lambda view: view[0]),
    "view": lambda a, read: by_closure(a[::-1], read),
    "attribute": lambda a, read: Owner(a, read).total,
    "object": Owner,
}
READERS: dict[str, Callable[[Function, Any], Any]] = {
    "jit": lambda f, x: jit(f)(x),
    "value_and_grad": lambda f, x: value_and_grad(f)(x)[0],
    "vjp": lambda f, x: vjp(f, x)[0],
    "jvp": lambda f, x: jvp(f, (x,), (x,))[0],
    "linearize": lambda f, x: linearize(f, x)[0],
    "jit of value_and_grad": lambda f, x: jit(value_and_grad(f))(x)[0],
    "checkpoint": lambda f, x: checkpoint(f)(x),
    "cond": lambda f, x: cond(True, f, lambda x: x.sum(), x),
    "vmap": lambda f, x: vmap(f)(x[None])[0],
    "hessian": lambda f, x: 0 * hessian(f)(x)[0, 0] + f(x.copy()),
    "jacobian": lambda f, x: 0 * jacobian(f)(x)[0] + f(x.copy()),
}


NAMED = np.ones(3)

BY_NAME: dict[str, Callable[[], Any]] = {
    "element": lambda: NAMED[0],
    "method": lambda: NAMED.sum(),
    "attribute": lambda: NAMED.T[0],
    "float": lambda: float(NAMED[1]),
    "mask": lambda: len(NAMED[NAMED > 2]),
    "dot": lambda: np.dot(NAMED, NAMED),
    "operator": lambda: (NAMED * 2)[0],
    "sign": lambda: (-NAMED)[0],
    "comparison": lambda: (NAMED > 2).any(),
    "product": lambda: NAMED @ NAMED,
    "loop": lambda: sum(v for v in NAMED),
    "unpacked": lambda: max(*NAMED),
    "star": lambda: [*NAMED][0],
    "text": lambda: len(f"{NAMED}"),
    "in": lambda: 5.0 in NAMED,
}


@pytest.mark.parametrize("run", ["jit", "value_and_grad", "vjp", "jvp", "linearize"])
def test_row_38_an_argument_that_is_read_by_its_name(run: str) -> None:
    """NumPy would read what was written into the argument."""

    def writing(x: Any, read: Callable[[], Any]) -> Any:
        x[0] = 5.0
        return x.sum() * read()

    with together() as check:
        for name, read in BY_NAME.items():
            f = functools.partial(writing, read=read)
            with check(name), pytest.raises(errors.MutationError, match="that it reads from outside"):
                READERS[run](f, NAMED)


@pytest.mark.parametrize("run", READERS)
def test_row_38_an_argument_that_is_read_from_outside_in_any_way(run: str) -> None:
    """In a third of the ways, which are drawn."""
    ways = [("closure", read) for read in READS] + [(way, "a product") for way in OUTSIDE]
    with together() as check:
        for way, read in some_of(ways, run, (len(ways) + 2) // 3):
            f = OUTSIDE[way](outer := TABLE.copy(), READS[read])
            with check((way, read)), pytest.raises(errors.MutationError, match="that it reads from outside"):
                READERS[run](f, outer)
            with check((way, read, "traced outside")), pytest.raises(errors.MutationError, match="reads from outside"):
                jit(lambda x: READERS[run](by_closure(x, lambda a: a[0]), x))(TABLE)
            with check((way, read, "a copy")):
                found = READERS[run](f, TABLE.copy())
                assert found == f(TABLE.copy())
                assert_array_equal(outer, TABLE)


TRACED_PAIRS: dict[str, tuple[bool, Callable[[Any], tuple[Any, Any]]]] = {
    "rows": (True, lambda x: (x[0], x[1])),
    "even and odd": (True, lambda x: (x[:, ::2], x[:, 1::2])),
    "halves, reshaped": (True, lambda x: (x[0].reshape(2, 2), x[1].reshape(2, 2))),
    "transposed": (True, lambda x: (x.T[:2], x.T[2:])),
    "overlapping parts": (False, lambda x: (x[0, :3], x[0, 1:])),
    "a row and a column": (False, lambda x: (x[0], x[:, :4].T[0])),
    "reversed": (False, lambda x: (x[0], x[0, ::-1])),
    "a place that is not known": (False, lambda x: (x[0], x[np.argmax(x[:, 0])])),
}


@pytest.mark.parametrize("pair", TRACED_PAIRS)
@pytest.mark.parametrize("inner", [jit, checkpoint, lambda f: lambda x, y: value_and_grad(f)(x, y)[0]])
def test_row_38_traced_views_are_told_apart_by_their_elements(inner: Any, pair: str) -> None:
    def f(x: Any, y: Any) -> Any:
        x *= 2.0
        return np.sum(x) * np.sum(y)

    are_apart, views = TRACED_PAIRS[pair]
    square = np.arange(8.0).reshape(2, 4) + 1.0
    if are_apart:
        assert jit(lambda x: inner(f)(*views(x)))(square) == f(*views(square.copy()))
    else:
        with pytest.raises(errors.MutationError, match="shares memory"):
            jit(lambda x: inner(f)(*views(x)))(square)


def test_row_38_traced_arguments_of_an_inner_function() -> None:
    with pytest.raises(errors.MutationError, match="shares memory"):
        grad(lambda x: jit(scaled)(x, x))(TABLE)
    with pytest.raises(errors.MutationError, match="shares memory"):
        grad(lambda x: jit(scaled)(x, x[::-1]))(TABLE)
    assert_array_equal(grad(lambda x: jit(scaled)(x * 1, x))(TABLE), 4 * TABLE)


# ---- strict_mutation -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("f", [scaled, second])
@pytest.mark.parametrize("run", RUNS)
def test_row_38_strict_mutation(run: str, f: Function) -> None:
    x, y = TABLE.copy(), TABLE.copy()
    with config.override(strict_mutation=True):
        with pytest.raises(errors.MutationError, match=r"config\.strict_mutation forbids"):
            RUNS[run](f, x, y)
        RUNS[run](apart, x, y)
        RUNS[run](lambda x, y: scaled(np.array(x), y), x, y)
    RUNS[run](f, x, y)
    assert_array_equal(x, TABLE)


def test_row_38_strict_mutation_of_a_path_known_already() -> None:
    f = jit(scaled)
    f(TABLE, TABLE.copy())
    with config.override(strict_mutation=True), pytest.raises(errors.MutationError, match="forbids"):
        f(TABLE, TABLE.copy())


def test_row_38_strict_mutation_names_the_line() -> None:
    with config.override(strict_mutation=True):
        for f, line in ((scaled, r"x \*= 2\.0"), (second, r"y\[0\] = 10\.0")):
            with pytest.raises(errors.MutationError, match=rf"test_user_arguments\.py:\d+ in {f.__name__}:  {line}"):
                grad(f)(TABLE, TABLE.copy())


def test_row_38_strict_mutation_is_a_bool() -> None:
    with pytest.raises(errors.SettingError, match="strict_mutation is 1"), config.override(strict_mutation=1):
        pass
