"""What has JAX's name does what JAX's does: pytrees, vectors of them, text from programs, shapes, checks."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fnad
from fnad import errors

TREE = {"w": np.array([[1.0, 2.0], [3.0, 4.0]]), "b": (3.0, None, [np.float32(2.0)])}


# ---- pytrees -------------------------------------------------------------------------------------------------------


def test_trees_come_apart_and_together() -> None:
    leaves, structure = fnad.tree.flatten(TREE)
    assert [id(leaf) for leaf in leaves] == [id(leaf) for leaf in fnad.tree.leaves(TREE)]
    assert structure == fnad.tree.structure(TREE)
    assert list(fnad.tree.unflatten(structure, leaves)) == ["w", "b"]
    assert fnad.tree.map(np.shape, OrderedDict(b=1.0, a=np.ones(2))) == OrderedDict(b=(), a=(2,))
    assert fnad.tree.map(lambda x, y: x + y, (1, [2]), (3, [4])) == (4, [6])
    assert fnad.tree.leaves([(1, 2), 3], is_leaf=lambda x: isinstance(x, tuple)) == [(1, 2), 3]
    assert fnad.tree.reduce(lambda total, x: total + x, (1, [2, 3]), 10) == 16
    assert fnad.tree.map_with_path(lambda path, x, y: (path, x + y), {"a": [1]}, {"a": [2]}) == {"a": [(("a", 0), 3)]}
    assert fnad.tree.leaves_with_path(OrderedDict(b=None, a=(2,))) == [(("a", 0), 2)]
    assert not fnad.tree.all((True, [False]))
    assert fnad.tree.all(None)


def test_trees_are_mapped_in_a_trace() -> None:
    def loss(tree: Any) -> Any:
        return fnad.tree.reduce(lambda total, x: total + np.sum(x), fnad.tree.map(np.square, tree), 0.0)

    gradient = fnad.grad(loss)(TREE)
    assert_array_equal(gradient["w"], 2 * TREE["w"])
    assert gradient["b"][1] is None


@pytest.mark.parametrize("transform", [lambda f: f, fnad.jit, fnad.grad], ids=["plain", "jit", "grad"])
def test_ravel_pytree_there_and_back(transform: Callable[..., Any]) -> None:
    weights = np.arange(1.0, 7.0)

    def loss(tree: Any) -> Any:
        vector, unravel = fnad.flatten_util.ravel_pytree(tree)
        again = unravel(weights * vector)
        return np.sum(again["w"]) + again["b"][0] + 2 * again["b"][2][0]

    found = transform(loss)(TREE)
    if transform is fnad.grad:
        assert_array_equal(found["w"], weights[:4].reshape(2, 2))
        assert (found["b"][0], found["b"][2][0], found["b"][2][0].dtype) == (5.0, 12.0, np.float32)
    else:
        assert found == 1 + 4 + 9 + 16 + 15 + 24


def test_unravel_restores_kinds_and_dtypes() -> None:
    tree = {"i": np.arange(2), "number": 1.5, "zero-dimensional": np.array(2.0), "f": np.ones((1, 2), np.float32)}
    vector, unravel = fnad.flatten_util.ravel_pytree(tree)
    assert_array_equal(vector, [0, 1, 1.5, 2, 1, 1])
    again = unravel(vector)
    assert isinstance(again["zero-dimensional"], np.ndarray)
    assert not isinstance(again["number"], np.ndarray)
    assert [np.asarray(leaf).dtype for leaf in again.values()] == ["i8", "f8", "f8", "f4"]
    assert fnad.flatten_util.ravel_pytree([np.ones(2, np.float32)])[0].dtype == np.float32
    assert fnad.flatten_util.ravel_pytree(())[0].shape == (0,)
    both, split = fnad.flatten_util.ravel_pytree((np.array([1 + 2j]), 3.0))
    assert split(both * 1j)[1] == 0.0
    with pytest.raises(errors.ShapeError, match=r"takes a vector of 6 elements, got shape \(5,\)"):
        unravel(vector[1:])


# ---- a look into programs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transform", [lambda f: f, fnad.jit, fnad.grad, lambda f: fnad.jit(fnad.grad(f))])
def test_debug_print_formats_numbers_in_order(transform: Callable[..., Any], capsys: Any) -> None:
    table = np.array([1.0, 2.0])

    def f(x: Any) -> Any:
        def step(total: Any, y: Any) -> Any:
            fnad.debug.print("{:.1f} + {y} {name} {table}", total, y=y, name="so far", table=table)
            return total + y * x, None

        return fnad.scan(step, x, np.array([1, 2]))[0]

    run = transform(f)
    run(0.5)
    lines = "0.5 + 1 so far [1. 2.]\n1.0 + 2 so far [1. 2.]\n"
    assert capsys.readouterr().out == lines
    run(0.5)
    assert capsys.readouterr().out == lines


def test_debug_callback_takes_keywords_and_drops_results() -> None:
    seen: list[Any] = []

    @fnad.jit
    def f(x: Any) -> Any:
        assert fnad.debug.callback(lambda tree, scale: seen.append((tree["x"], scale)) or 3, {"x": x}, scale=2) is None
        fnad.debug.callback(seen.append, "no traced value")
        return x

    f(1.5)
    f(2.5)
    assert seen == [(1.5, 2), "no traced value", (2.5, 2), "no traced value"]


# ---- shapes, programs ------------------------------------------------------------------------------------------------


def network(params: Any, x: Any, *, power: int = 1) -> Any:
    return {"y": np.tanh(x @ params["w"]) ** power, "sum": np.sum(x)}


def test_eval_shape_computes_nothing() -> None:
    struct = fnad.ShapeDtypeStruct
    found = fnad.eval_shape(network, {"w": struct((3, 2), "f4")}, np.ones((4, 3), np.float32), power=2)
    assert found == {"y": struct((4, 2), np.float32), "sum": struct((), "f4")}
    assert fnad.eval_shape(lambda n: n * 2, 3) == struct((), int)
    with pytest.raises(errors.TracerEscapeError):
        fnad.eval_shape(lambda x: 1.0 if x > 0 else x, struct((), float))


def test_a_program_prints_compares_and_runs() -> None:
    params, x = {"w": np.ones((3, 2))}, np.ones((4, 3))
    program = fnad.make_program(network, static_argnames="power")(params, x, power=2)
    assert repr(program).startswith(
        "# network: 4 equations\nnetwork(params_w: f64[3,2], x: f64[4,3]) -> f64[4,2], f64[] {\n"
    )
    assert_allclose(program(params, 2 * x)["y"], network(params, 2 * x, power=2)["y"])
    same = fnad.jit(network, static_argnames="power").lower(params, 5 * x, power=2)
    assert program == same
    assert hash(program) == hash(same)
    assert program != fnad.make_program(network)(params, x)
    assert [str(aval) for aval in (*program.in_avals, *program.out_avals)] == [
        "f64[3,2]",
        "f64[4,3]",
        "f64[4,2]",
        "f64[]",
    ]
    gradient = fnad.grad(lambda w: np.sum(program({"w": w}, x)["y"]))(params["w"])
    assert_allclose(gradient, fnad.grad(lambda w: np.sum(network({"w": w}, x, power=2)["y"]))(params["w"]))


def test_programs_of_other_constants_from_outside_differ() -> None:
    one, other = (fnad.make_program(lambda x, table=table: x * table)(1.0) for table in (np.ones(2), np.zeros(2)))
    assert one != other
    assert_array_equal(one(3.0), [3.0, 3.0])


def test_a_program_takes_its_own_arguments_only() -> None:
    program = fnad.make_program(network)({"w": np.ones((3, 2))}, np.ones((4, 3)))
    with pytest.raises(errors.ArgumentTypeError, match=r"is for \({'w': f64\[3,2\]}, f64\[4,3\]\), not for"):
        program({"w": np.ones((3, 2))}, np.ones((5, 3)))
    with pytest.raises(errors.ArgumentTypeError, match="so many arguments"):
        program(np.ones(3))


def test_a_program_of_a_path_refuses_another() -> None:
    def f(x: Any) -> Any:
        return x if x > 0 else -2 * x

    program = fnad.jit(f).lower(1.0)
    assert program(3.0) == 3.0
    with pytest.raises(errors.OtherPathError, match=r"f decides otherwise for these arguments, at test_names.py"):
        program(-3.0)
    with pytest.raises(errors.OtherPathError):
        fnad.grad(program)(1.0)


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["traced", "simplified", "loops", "source", "llvm", "asm"])
def test_lowered_functions_show_each_stage(stage: str) -> None:
    lowered = fnad.jit(np.sin).lower(fnad.ShapeDtypeStruct((3,), float)).compile()
    assert "sin" in lowered.as_text(stage)
    assert_array_equal(lowered(np.zeros(3)), np.zeros(3))


def test_there_is_no_other_stage() -> None:
    with pytest.raises(errors.SettingError, match="there is no stage 'stablehlo'"):
        fnad.jit(np.sin).lower(1.0).as_text("stablehlo")


# ---- checks of derivatives -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (lambda w, x: (np.tanh(w["a"] * x), np.sum(x), w["n"]), ({"a": 0.5, "n": 3}, np.ones(3))),
        (lambda z: np.abs(z) ** 2 * z, (np.array([1 + 2j, 0.3]),)),
        (np.sin, (np.float32(0.3),)),
        (lambda x: (x**2).astype(int), (1.5 * np.ones(2),)),
    ],
    ids=["pytrees", "complex", "f32", "constant"],
)
def test_check_grads_passes_what_is_right(f: Callable[..., Any], args: Any) -> None:
    fnad.test_util.check_grads(f, args, order=2)


def cube(slope: Callable[[Any], Any]) -> Callable[[Any], Any]:
    f = fnad.custom_jvp(lambda x: x**3)
    f.defjvp(lambda primals, tangents: (f(primals[0]), slope(primals[0]) * tangents[0]))
    return f


def test_check_grads_finds_what_is_wrong() -> None:
    wrong = cube(lambda x: 3.001 * x**2)
    for mode, name in (("fwd", "forward"), ("rev", "reverse")):
        with pytest.raises(AssertionError, match=f"{name} mode is not the difference"):
            fnad.test_util.check_grads(wrong, (1.5,), 1, (mode,))
    fnad.test_util.check_grads(wrong, (1.5,), 1, rtol=0.01)
    fnad.test_util.check_grads(wrong, (1.5,), 1, atol=0.1)
    second = cube(lambda x: 3 * fnad.stop_gradient(x) ** 2)
    fnad.test_util.check_grads(second, (1.5,), 1)
    with pytest.raises(AssertionError, match="reverse mode of reverse mode is not the difference"):
        fnad.test_util.check_grads(second, (1.5,), 2, ("rev",))


def test_check_grads_refuses_what_it_cannot_check() -> None:
    with pytest.raises(errors.SettingError, match="modes is 'fwd'"):
        fnad.test_util.check_grads(np.sin, (1.0,), 1, "fwd")
    with pytest.raises(errors.NonDifferentiableArgumentError):
        fnad.test_util.check_grads(np.sin, (1,), 1)


def test_block_until_ready_and_remat() -> None:
    assert fnad.block_until_ready(TREE) is TREE
    assert fnad.grad(fnad.remat(np.sin))(0.0) == 1.0


# ---- plain Python ----------------------------------------------------------------------------------------------------


def test_disable_jit_runs_functions_as_they_are() -> None:
    seen: list[Any] = []

    @fnad.jit
    def f(x: Any) -> Any:
        seen.append(x)
        return 2 * x

    with fnad.disable_jit():
        assert f(3.0) == 6.0
        with fnad.disable_jit(False):
            f(4.0)
        assert fnad.grad(f)(3.0) == 2.0
    assert seen[0] == 3.0
    assert [type(x) is float for x in seen] == [True, False, False]
    with fnad.config.override(disable_jit=True):
        f(5.0)
    assert seen[-1] == 5.0


LOOPS: dict[str, Callable[[], Any]] = {
    "cond": lambda: fnad.cond(True, np.sin, np.cos, 0.5),
    "switch": lambda: [fnad.switch(i, [np.sin, np.cos], 0.5) for i in (-1, 1, 7)],
    "while_loop": lambda: fnad.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * 2), (0, 1.5)),
    "fori_loop": lambda: fnad.fori_loop(1, np.int64(4), lambda i, s: s + i, 0.5),
    "scan": lambda: fnad.scan(lambda s, x: (s + x["a"], (s, None)), 0.5, {"a": np.arange(3.0)}),
    "scan backwards": lambda: fnad.scan(lambda s, x: (s + x, s), 0.5, np.arange(3.0), reverse=True),
    "scan without xs": lambda: fnad.scan(lambda s, _: (2 * s, s), 0.5, length=3),
    "scan without steps": lambda: fnad.scan(lambda s, x: (s, x), 0.5, np.zeros((0, 2))),
    "map": lambda: fnad.map(np.sum, np.arange(6.0).reshape(3, 2)),
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_and_branches_are_the_same_as_plain_python(name: str) -> None:
    expected = LOOPS[name]()
    with fnad.disable_jit():
        found = LOOPS[name]()
    assert fnad.tree.structure(found) == fnad.tree.structure(expected)
    for a, b in zip(fnad.tree.leaves(found), fnad.tree.leaves(expected), strict=True):
        assert_array_equal(a, b)


def test_a_loop_in_plain_python_shows_numbers_and_has_its_limit() -> None:
    seen: list[Any] = []
    with fnad.disable_jit():
        fnad.fori_loop(0, 2, lambda i, s: seen.append((i, s)) or s + 1.0, 0.0)
        with pytest.raises(errors.LoopLimitError):
            fnad.while_loop(lambda s: True, lambda s: s, 0.0, max_steps=3)
        assert fnad.while_loop(lambda s: s < 3, lambda s: s + 1, 0, max_steps=3) == 3
    assert seen == [(0, 0.0), (1, 1.0)]
