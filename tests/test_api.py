"""The transforms as users call them: pytrees, argnums, auxiliary data, nesting, aliasing."""

from __future__ import annotations

import dataclasses
import threading
import tomllib
from collections import OrderedDict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import optree
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fnad
from fnad import grad, jit, jvp, stop_gradient, value_and_grad, vjp
from tests.together import together

X = np.array([0.5, 1.0, 2.0])


def loss(w: Any, x: Any, y: Any) -> Any:
    return np.sum((np.tanh(x @ w["W"] + w["b"]) - y) ** 2)


def problem() -> tuple[dict[str, Any], Any, Any]:
    rng = np.random.default_rng(0)
    return {"W": rng.normal(size=(3, 2)), "b": rng.normal(size=2)}, rng.normal(size=(4, 3)), rng.normal(size=(4, 2))


def numerical(f: Any, x: Any, eps: float = 1e-6) -> Any:
    """Return the gradient by central differences."""
    flat = np.asarray(x, float).ravel()
    ends = [[flat + s * eps * (np.arange(flat.size) == i) for s in (1, -1)] for i in range(flat.size)]
    values = [(f(high.reshape(np.shape(x))) - f(low.reshape(np.shape(x)))) / (2 * eps) for high, low in ends]
    return np.reshape(values, np.shape(x))


# ---- grad and value_and_grad -----------------------------------------------------------------------------------------


def test_grad_of_a_pytree_has_its_structure() -> None:
    w, x, y = problem()
    value, gradient = value_and_grad(loss)(w, x, y)
    assert_allclose(value, loss(w, x, y))
    assert list(gradient) == ["W", "b"]
    for name in w:
        assert_allclose(gradient[name], numerical(lambda v, name=name: loss(w | {name: v}, x, y), w[name]), rtol=1e-6)


class Point(NamedTuple):
    x: Any
    y: Any


@pytest.mark.parametrize(
    "tree",
    [
        [1.0, np.ones(2)],
        (1.0, (np.ones(2), {})),
        {"b": 1.0, "a": [2.0, None]},
        OrderedDict(b=1.0, a=np.ones(3)),
        Point(1.0, np.ones(2)),
        3.0,
        np.ones((2, 0)),
    ],
)
def test_containers_are_the_users_own(tree: Any) -> None:
    def sum_of_squares(t: Any) -> Any:
        assert optree.tree_structure(t) == optree.tree_structure(tree)
        return 0.5 * sum(np.sum(leaf * leaf) for leaf in optree.tree_leaves(t))

    gradient = grad(sum_of_squares)(tree)
    assert optree.tree_structure(gradient) == optree.tree_structure(tree)
    assert type(gradient) in (type(tree), np.float64)
    for got, expected in zip(optree.tree_leaves(gradient), optree.tree_leaves(tree), strict=True):
        assert_array_equal(got, expected)


def test_dicts_keep_the_order_of_their_keys() -> None:
    assert list(grad(lambda t: t["z"] * t["a"])({"z": 1.0, "a": 2.0})) == ["z", "a"]


class Pair:
    def __init__(self, left: Any, right: Any, label: str) -> None:
        self.left, self.right, self.label = left, right, label


def nested(kind: Any, levels: int, leaf: Any = 2.0) -> Any:
    tree = leaf
    for _ in range(levels):
        tree = kind([tree]) if kind is not dict else {"": tree}
    return tree


def innermost(tree: Any) -> Any:
    while isinstance(tree, (list, tuple, dict)):
        (tree,) = tree.values() if isinstance(tree, dict) else tree
    return tree


@pytest.mark.parametrize("kind", [list, tuple, dict])
@pytest.mark.parametrize("run", [grad, jit, lambda f: jit(grad(f)), lambda f: jit(lambda x: nested(list, 900, f(x)))])
def test_containers_of_900_levels(run: Any, kind: Any) -> None:
    found = run(lambda tree: innermost(tree) ** 2)(nested(kind, 900))
    assert innermost(found) == 4


def endless() -> Any:
    tree: list[Any] = [1.0]
    tree.append({"": tree})
    return tree


@pytest.mark.parametrize("tree", [nested(list, 5000), nested(tuple, 5000), nested(dict, 5000), endless()])
def test_containers_that_are_too_deep_or_contain_themselves(tree: Any) -> None:
    calls: list[Any] = [
        lambda: grad(lambda t: t[0])(tree),
        lambda: jit(lambda t: t)(tree),
        lambda: vjp(lambda t: t, tree),
        lambda: vjp(lambda x: (x, tree), 1.0),
        lambda: grad(lambda x: (x, tree), has_aux=True)(1.0),
        lambda: fnad.scan(lambda c, _: (c, None), tree, length=2),
        lambda: fnad.tree.map(abs, tree),
        lambda: fnad.tree.leaves(tree),
    ]
    for call in calls:
        with pytest.raises(fnad.errors.ArgumentTypeError, match="nested too deeply, or contains itself"):
            call()


def test_static_and_outer_values_of_5000_levels() -> None:
    traces: list[int] = []

    def f(x: float, tree: Any) -> Any:
        traces.append(1)
        return x * innermost(tree)

    compiled = jit(f, static_argnums=1)
    assert [compiled(3.0, nested(tuple, 5000)) for _ in range(3)] == [6.0] * 3
    assert compiled(3.0, nested(tuple, 4999)) == 6.0
    assert len(traces) == 2
    holder = [nested(tuple, 5000)]
    for run in (jit(lambda x: x * len(holder[0])), grad(lambda x: x * len(holder[0]))):
        for _ in range(3):
            assert run(1.0) == 1.0
            holder[0] = nested(tuple, 5000)


@pytest.mark.parametrize("f", [np.sum, np.array, np.stack, lambda x: x[0] + x[1], lambda x: np.where(True, *x)])
@pytest.mark.parametrize("place", [0, 1])
def test_numpy_functions_of_lists_of_5000_levels(f: Any, place: int) -> None:
    def call(x: float) -> Any:
        return f([x, nested(list, 5000)] if place == 0 else [nested(list, 5000), x])

    with pytest.raises(fnad.errors.ArgumentTypeError, match="a container is nested too deeply, or contains itself"):
        jit(call)(1.0)


def test_a_static_set_that_is_too_deep() -> None:
    tree = frozenset([1.0])
    for _ in range(5000):
        tree = frozenset([tree])
    with pytest.raises(fnad.errors.ArgumentTypeError, match="a static argument is nested too deeply"):
        jit(lambda x, _: x, static_argnums=1)(1.0, tree)


def test_a_function_that_recurs_endlessly() -> None:
    def f(x: float) -> float:
        return np.sum([x, f(np.array([x, 2.0])[0])])

    for call in (lambda: fnad.tree.map(f, [1.0]), lambda: jit(f)(1.0)):
        with pytest.raises(RecursionError):
            call()


def test_strings_of_any_length() -> None:
    names = np.array(["a", "bb"], np.dtypes.StringDType())
    assert jit(lambda x: x * len(names[1]))(2.0) == 4
    assert_array_equal(grad(lambda x: np.sum(x[names == "a"]))(np.ones(2)), [1.0, 0.0])
    assert grad(lambda x, names: x * len(names))(1.0, names) == 2
    calls: list[Any] = [
        lambda: jit(lambda x: x)(names),
        lambda: grad(lambda x: x)(names),
        lambda: jit(lambda x: names)(1.0),
        lambda: jit(lambda x: x * names)(np.ones(2)),
        lambda: jit(lambda x: x.astype(names.dtype))(np.ones(2)),
    ]
    for call in calls:
        with pytest.raises(fnad.errors.DtypeError, match=r"dtype StringDType\(\).* not supported"):
            call()


def test_classes_registered_with_optree() -> None:
    register: Any = optree.register_pytree_node
    register(
        Pair,
        lambda pair: ((pair.left, pair.right), pair.label),
        lambda label, children: Pair(children[0], children[1], label),
        namespace="fnad",
    )

    def product(pair: Pair) -> Any:
        assert pair.label == "p"
        return pair.left * pair.right

    gradient = grad(product)(Pair(2.0, 3.0, "p"))
    assert (type(gradient), gradient.left, gradient.right, gradient.label) == (Pair, 3.0, 2.0, "p")
    assert jit(grad(product))(Pair(2.0, 3.0, "p")).left == 3.0


def record() -> Any:
    """Return a dataclass that nothing has encountered."""
    return dataclasses.make_dataclass("Record", [("x", Any), ("y", Any), ("name", str, "r")])


def plainly(call: Any) -> Any:
    with fnad.disable_jit():
        return call()


TYPE = fnad.ShapeDtypeStruct((), float)
FIRST_ENCOUNTERS: dict[str, tuple[Any, list[float]]] = {
    "tree.map": (lambda r: fnad.tree.map(lambda v: 2 * v, {"a": r(1.0, [r(3.0, 4.0)])}), [2, 6, 8]),
    "tree.map of two": (lambda r: fnad.tree.map(np.subtract, r(1.0, 2.0), r(3.0, 5.0)), [-2, -3]),
    "tree.leaves": (lambda r: fnad.tree.leaves((r(1.0, 2.0), None)), [1, 2]),
    "tree.flatten": (lambda r: fnad.tree.unflatten(fnad.tree.flatten(r(0, 0))[1], (1, 2)), [1, 2]),
    "tree.structure": (lambda r: fnad.tree.structure(r(1.0, r(2.0, 3.0))).num_leaves, [3]),
    "tree.reduce": (lambda r: fnad.tree.reduce(np.add, r(1.0, 2.0), 4.0), [7]),
    "tree.all": (lambda r: fnad.tree.all([r(1.0, 0.0)]), [0]),
    "tree.map_with_path": (lambda r: fnad.tree.map_with_path(lambda path, v: path == ("y",), r(1.0, 2.0)), [0, 1]),
    "is_leaf": (lambda r: fnad.tree.map(lambda v: 1, [r(1, 2)], is_leaf=lambda v: isinstance(v, r)), [1]),
    "aux": (lambda r: grad(lambda x: (x, r(x, 2.0)), has_aux=True)(3.0), [1, 3, 2]),
    "array of another library": (lambda r: grad(lambda p: np.sum(p.x * p.y))(r(Other(), 2.0)).x, [2, 2]),
    "vjp": (lambda r: vjp(lambda x: r(x, x * x), 2.0)[1](r(1.0, 1.0)), [5]),
    "vmap": (lambda r: fnad.vmap(lambda x: r(x, x * x))(np.array([1.0, 2.0])), [1, 2, 1, 4]),
    "map": (lambda r: fnad.map(lambda x: r(x, x * x), np.array([1.0, 2.0])), [1, 2, 1, 4]),
    "cond": (lambda r: jit(lambda x: fnad.cond(x > 0, lambda: r(x, 1.0), lambda: r(-x, 2.0)))(3.0), [3, 1]),
    "scan": (lambda r: fnad.scan(lambda c, x: (c * x, r(c, x)), 2.0, np.array([3.0, 4.0])), [24, 2, 6, 3, 4]),
    "plain scan": (
        lambda r: plainly(lambda: fnad.scan(lambda c, x: (c * x, r(c, x)), 2.0, np.array([3.0, 4.0]))),
        [24, 2, 6, 3, 4],
    ),
    "checkpoint": (lambda r: grad(lambda v: fnad.checkpoint(lambda q: r(q, q * q))(v).y)(3.0), [6]),
    "callback": (lambda r: jit(lambda x: fnad.callback(lambda v: r(v, 2 * v), x, result=r(0.0, 0.0)))(3.0), [3, 6]),
    "eval_shape": (lambda r: [len(t.shape) for t in fnad.tree.leaves(fnad.eval_shape(same, r(X, TYPE)))], [1, 0]),
    "linear_transpose": (lambda r: fnad.linear_transpose(lambda p: p.x + 3 * p.y, r(1.0, 1.0))(2.0), [2, 6]),
    "global_norm": (lambda r: fnad.optim.global_norm(r(3.0, 4.0)), [5]),
}


class Other:
    """An array of another library."""

    shape, dtype = (2,), np.dtype(float)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.ones(2)


def same(value: Any) -> Any:
    return value


def test_dataclasses_are_pytrees_where_they_are_encountered_first() -> None:
    with together() as check:
        for name, (call, numbers) in FIRST_ENCOUNTERS.items():
            with check(name):
                found = [np.ravel(leaf) for leaf in fnad.tree.leaves(call(record()))]
                assert_array_equal(np.concatenate(found), numbers)


def test_an_array_in_a_dataclass_is_not_changed() -> None:
    def f(x: Any, r: Any) -> Any:
        r.x += 1
        return x * r.x.sum()

    given = record()(np.ones(2), 0.0)
    assert [grad(f)(1.0, given), grad(f)(1.0, given)] == [4.0, 4.0]
    assert_array_equal(given.x, 1)


@pytest.mark.parametrize(
    ("argnums", "expected"), [(0, 6.0), (1, 3.0), (-1, 2.0), ((0, 2), (6.0, 2.0)), ([2, 0], (2.0, 6.0)), ((1,), (3.0,))]
)
def test_argnums_choose_what_grad_differentiates_in(argnums: Any, expected: Any) -> None:
    f = lambda x, y, z: x * y * z  # noqa: E731
    args = 1.0, 2.0, 3.0
    expected = {0: 6.0, 1: 3.0, -1: 2.0}.get(argnums, expected) if isinstance(argnums, int) else expected
    assert grad(f, argnums)(*args) == expected
    assert value_and_grad(f, argnums=argnums)(*args) == (6.0, expected)
    assert jit(grad(f, argnums))(*args) == expected


def test_keyword_arguments_reach_the_function() -> None:
    assert grad(lambda x, *, power, scale=1.0: scale * x * power)(2.0, power=3.0) == 3.0
    assert grad(lambda x, n: x * n)(2.0, n=5) == 5.0
    assert jit(grad(lambda x, *, k: x * k))(2.0, k=3.0) == 3.0


def test_has_aux_returns_a_pytree_beside_the_gradient() -> None:
    def f(x: Any) -> Any:
        return np.sum(x * x), {"twice": 2.0 * x, "note": "seen", "constant": 3, "nothing": None}

    gradient, aux = grad(f, has_aux=True)(X)
    assert_allclose(gradient, 2 * X)
    assert_allclose(aux.pop("twice"), 2 * X)
    assert aux == {"note": "seen", "constant": 3, "nothing": None}
    (value, aux), gradient = value_and_grad(f, has_aux=True)(X)
    assert value == np.sum(X * X)
    assert_allclose(aux["twice"], 2 * X)
    assert_allclose(gradient, 2 * X)


def test_auxiliary_values_are_not_differentiated() -> None:
    assert grad(lambda x: (x * x, x * 100.0), has_aux=True)(3.0) == (6.0, 300.0)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (1, 1, 1)])
def test_one_element_of_any_shape(shape: Any) -> None:
    value, gradient = value_and_grad(lambda x: np.reshape(np.sum(x * x), shape))(X)
    assert np.shape(value) == shape
    assert_allclose(gradient, 2 * X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_gradient_has_the_dtype_and_shape_of_the_argument(dtype: Any) -> None:
    for x in (np.ones((2, 3), dtype), np.ones((), dtype), dtype(1)):
        gradient = grad(lambda x: np.sum(np.real(x * x * np.float64(2.0))))(x)
        assert gradient.dtype == dtype
        assert gradient.shape == np.shape(x)


def test_scalars_come_back_as_numpy_scalars() -> None:
    for x in (2.0, np.float64(2.0), np.array(2.0)):
        value, gradient = value_and_grad(lambda x: x * x)(x)
        assert type(value) is type(gradient) is np.float64
        assert (value, gradient) == (4.0, 4.0)


def test_an_output_that_does_not_depend_on_the_argument() -> None:
    assert_array_equal(grad(lambda x: 3.0)(X), np.zeros(3))
    assert_array_equal(grad(lambda x: np.float32(3.0))(X), np.zeros(3))
    value, gradient = value_and_grad(lambda x: np.sum(np.ones(2)))(X)
    assert value == 2.0
    assert_array_equal(gradient, np.zeros(3))


def test_python_numbers_are_weak() -> None:
    assert grad(lambda x, c: np.sum(x * c))(np.ones(2, np.float32), 2.0).dtype == np.float32
    assert grad(lambda c, x: np.sum(x * c))(2.0, np.ones(2, np.float32)).dtype == np.float64
    assert value_and_grad(lambda c, x: np.sum(x * c))(2.0, np.ones(2, np.float32))[0].dtype == np.float32


def test_other_arguments_may_be_anything() -> None:
    def f(x: Any, n: Any, names: Any, table: Any) -> Any:
        for _ in range(n):
            x = x * 2.0
        assert names == {"mode": "fast"}
        return x * float(table[1]) if table.sum() > 0 else x

    assert grad(f)(1.0, 3, {"mode": "fast"}, np.array([1.0, 5.0])) == 40.0


def test_complex_gradient_is_not_conjugated() -> None:
    assert grad(lambda z: np.real(z * np.conj(z)))(3.0 + 4.0j) == 6.0 - 8.0j


def test_transforms_keep_name_and_doc() -> None:
    def f(x: Any) -> Any:
        """Double."""
        return 2.0 * x

    for transformed in (grad(f), value_and_grad(f), jit(f)):
        assert (transformed.__name__, transformed.__doc__, getattr(transformed, "__wrapped__", None)) == (
            "f",
            "Double.",
            f,
        )


# ---- vjp -------------------------------------------------------------------------------------------------------------


def test_vjp_of_pytrees() -> None:
    def f(a: Any, t: Any) -> Any:
        return {"p": a * t[0], "s": np.sum(t[1])}

    out, pullback = vjp(f, 2.0, (X, np.ones((2, 2))))
    assert_allclose(out["p"], 2 * X)
    ct_a, (ct_x, ct_m) = pullback({"p": np.array([1.0, 10.0, 100.0]), "s": 7.0})
    assert ct_a == X @ [1.0, 10.0, 100.0]
    assert_allclose(ct_x, [2.0, 20.0, 200.0])
    assert_allclose(ct_m, np.full((2, 2), 7.0))


def test_pullback_can_be_called_again_and_from_threads() -> None:
    x = X.copy()
    _, pullback = vjp(np.sin, x)
    first = pullback(np.ones(3))[0]
    x[:] = 100.0
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(pullback(2 * np.ones(3))[0])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert_allclose(first, np.cos(X))
    assert len(found) == 4
    for ct in found:
        assert_allclose(ct, 2 * np.cos(X))


def test_vjp_has_aux_and_integer_outputs() -> None:
    out, pullback, aux = vjp(lambda x: ((x * x, np.argmax(x)), {"sum": np.sum(x), "label": "a"}), X, has_aux=True)
    assert_allclose(out[0], X * X)
    assert out[1] == 2
    assert (aux["sum"], aux["label"]) == (3.5, "a")
    assert_allclose(pullback((np.ones(3), 0))[0], 2 * X)


def test_cotangent_of_a_python_number_takes_the_dtype() -> None:
    _, pullback = vjp(np.sum, np.ones(2, np.float32))
    assert pullback(2)[0].dtype == np.float32
    assert_array_equal(pullback(2.0)[0], [2.0, 2.0])


def test_vjp_of_a_function_that_returns_its_argument() -> None:
    x = X.copy()
    out, pullback = vjp(lambda x: (x, x), x)
    out[0][:] = 0.0
    assert_array_equal(x, X)
    assert_array_equal(out[1], X)
    assert_array_equal(pullback((np.ones(3), 2 * np.ones(3)))[0], [3.0, 3.0, 3.0])


# ---- jvp -------------------------------------------------------------------------------------------------------------


def test_jvp_of_pytrees_has_tangents_of_their_structure() -> None:
    out, tangent = jvp(lambda x, t: {"s": x * t["a"], "i": np.argmax(x)}, (X, {"a": 2.0}), (np.ones(3), {"a": 1}))
    assert_allclose(out["s"], 2 * X)
    assert_allclose(tangent["s"], 2 + X)
    assert (tangent["i"], tangent["i"].dtype) == (0, out["i"].dtype)


def test_jvp_has_aux() -> None:
    assert jvp(lambda x: (x * x, ("aux", 3.0 * x)), (2.0,), (1.0,), has_aux=True) == (4.0, 4.0, ("aux", 6.0))


# ---- nesting ---------------------------------------------------------------------------------------------------------

DERIVATIVES = {
    "grad": grad,
    "jvp": lambda f: lambda x: jvp(f, (x,), (1.0,))[1],
    "vjp": lambda f: lambda x: vjp(f, x)[1](1.0)[0],
    "jit grad": lambda f: jit(grad(f)),
    "grad jit": lambda f: grad(jit(f)),
}


@pytest.mark.parametrize("outer", DERIVATIVES)
@pytest.mark.parametrize("inner", DERIVATIVES)
def test_nested_derivatives_do_not_confuse_perturbations(outer: str, inner: str) -> None:
    d, e = DERIVATIVES[outer], DERIVATIVES[inner]
    assert d(lambda x: x * e(lambda y: x * y)(1.0))(4.0) == 8.0
    assert d(lambda x: x * e(lambda y: x + y)(1.0))(1.0) == 1.0
    assert_allclose(d(e(lambda x: np.sin(x) * x))(0.7), 2 * np.cos(0.7) - 0.7 * np.sin(0.7))
    assert_allclose(d(e(d(lambda x: x * x * x * x)))(2.0), 48.0)


def test_third_order_mixed() -> None:
    f = lambda x, y: x * x * x * y * y  # noqa: E731
    assert grad(grad(grad(f, 0), 1), 0)(2.0, 3.0) == 6 * 2.0 * 2 * 3.0
    assert jit(grad(jit(grad(f, 1)), 0))(2.0, 3.0) == 3 * 4.0 * 2 * 3.0


def test_hessian_vector_product() -> None:
    hvp = lambda x, v: jvp(grad(lambda x: np.sum(np.exp(x) * x[0])), (x,), (v,))[1]  # noqa: E731
    x, v = np.array([0.3, -0.2]), np.array([1.0, 2.0])
    e = np.exp(x)
    hessian = np.array([[x[0] * e[0] + 2 * e[0], e[1]], [e[1], x[0] * e[1]]])
    assert_allclose(hvp(x, v), hessian @ v)
    assert_allclose(jit(hvp)(x, v), hessian @ v)


def test_outer_values_in_an_inner_derivative() -> None:
    def f(x: Any) -> Any:
        inner = grad(lambda w, data: np.sum(w * data) * x)(np.ones(2), np.array([3.0, 4.0]))
        return np.sum(inner * inner)

    assert grad(f)(2.0) == 2 * 2.0 * 25.0


def test_has_aux_inside_a_trace() -> None:
    def f(x: Any) -> Any:
        gradient, aux = grad(lambda y: (x * y * y, (y * x, "label")), has_aux=True)(x)
        assert aux[1] == "label"
        return gradient * aux[0]

    assert grad(f)(2.0) == 8 * 2.0**3


def test_a_pullback_made_outside_is_used_inside_a_trace() -> None:
    _, pullback = vjp(np.sin, X)
    assert_allclose(grad(lambda c: np.sum(pullback(c)[0]))(np.ones(3)), np.cos(X))
    assert_allclose(jit(lambda c: pullback(c)[0])(np.ones(3)), np.cos(X))


def test_grad_of_jit_is_jit_of_grad_is_grad() -> None:
    w, x, y = problem()
    expected = grad(loss)(w, x, y)
    for transformed in (jit(grad(loss)), grad(jit(loss)), jit(grad(jit(loss)))):
        got = transformed(w, x, y)
        for name in w:
            assert_allclose(got[name], expected[name], rtol=1e-13)


def test_stop_gradient_is_constant_in_every_mode() -> None:
    assert grad(lambda x: x * stop_gradient(x))(3.0) == 3.0
    assert grad(grad(lambda x: x * stop_gradient(x)))(3.0) == 0.0
    assert jvp(lambda x: x * stop_gradient(x), (3.0,), (1.0,))[1] == 3.0
    assert grad(lambda t: np.sum(stop_gradient(t)["a"] * t["a"]))({"a": X})["a"] == pytest.approx(X)
    assert stop_gradient([1.0, "a"]) == [1.0, "a"]
    assert grad(lambda x, c: np.sum(x * stop_gradient(c)), argnums=(0, 1))(np.ones(1, np.float32), 2.0)[0].dtype == "f4"


# ---- aliasing --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("executor", ["interpreter", "compiled"])
def test_results_share_no_memory(executor: Any) -> None:
    constant, x = np.ones(3), X.copy()

    def f(x: Any) -> Any:
        return x, x, constant, np.reshape(x, (3, 1)), np.transpose(np.reshape(x, (1, 3)))

    with fnad.config.override(executor=executor):
        run = jit(f)
        first = run(x)
        for i, result in enumerate(first):
            result[:] = i + 10.0
        assert_array_equal(x, X)
        assert_array_equal(constant, np.ones(3))
        second = run(x)
    assert_array_equal(second[1], X)
    assert_array_equal(second[2], np.ones(3))
    assert_array_equal(first[0], [10.0, 10.0, 10.0])
    assert_array_equal(first[3], np.full((3, 1), 13.0))


@pytest.mark.parametrize("transform", [value_and_grad, lambda f: jit(value_and_grad(f))])
def test_arguments_are_never_written_to(transform: Any) -> None:
    def f(x: Any, y: Any, t: Any) -> Any:
        x *= 10.0
        y[0] = 7.0
        t["n"] = 0.0
        t["a"] += 1.0
        return np.sum(x * y) + np.sum(t["a"])

    x, y, t = X.copy(), np.ones(3), {"n": np.ones(1), "a": np.ones(2)}
    value, gradient = transform(f)(x, y, t)
    assert value == 10 * X @ [7.0, 1.0, 1.0] + 4.0
    assert_array_equal(gradient, [70.0, 10.0, 10.0])
    assert_array_equal(x, X)
    assert_array_equal(y, np.ones(3))
    assert list(t) == ["n", "a"]
    assert_array_equal(t["a"], [1.0, 1.0])
    assert_array_equal(t["n"], [1.0])


def test_a_compiled_function_inside_a_trace_writes_for_itself_alone() -> None:
    @jit
    def f(x: Any, y: Any) -> Any:
        x *= 10.0
        y += 1.0
        return x

    def outer(x: Any) -> Any:
        ones = np.ones(3)
        scaled = f(x, ones)
        scaled += 1.0
        assert ones[0] == 1.0
        return np.sum(x * ones) + np.sum(scaled)

    expected = np.sum(X) + np.sum(10 * X + 1)
    assert_allclose(outer(X), expected)
    assert_allclose(value_and_grad(outer)(X)[0], expected)
    assert_allclose(jit(outer)(X), expected)
    assert_allclose(grad(outer)(X), [11.0, 11.0, 11.0])


def test_auxiliary_arrays_are_copies() -> None:
    y = np.ones(3)
    _, aux = grad(lambda x, y: (np.sum(x * y), y), has_aux=True)(X, y)
    aux[:] = 5.0
    assert_array_equal(y, np.ones(3))


# ---- what an array may be --------------------------------------------------------------------------------------------


def arrays() -> dict[str, Any]:
    base = np.arange(24.0).reshape(4, 6)
    frozen = base.copy()
    frozen.flags.writeable = False
    return {
        "strided": base[::2, ::-3],
        "transposed": base.T,
        "fortran": np.asfortranarray(base),
        "broadcast": np.broadcast_to(np.array([1.0, 2.0]), (3, 2)),
        "read-only": frozen,
        "empty": np.zeros((0, 3)),
        "0-d": np.array(3.0),
        "big-endian": base.astype(">f8"),
        "big-endian f32": base.astype(">f4"),
        "unaligned": np.frombuffer(b"\0" + base.tobytes(), np.uint8)[1:].view(np.float64).reshape(4, 6),
    }


@pytest.mark.parametrize("name", arrays())
@pytest.mark.parametrize("executor", ["interpreter", "compiled"])
def test_arrays_of_any_layout_are_differentiated_in(name: str, executor: Any) -> None:
    x = arrays()[name]
    with fnad.config.override(executor=executor):
        for f in (
            value_and_grad(lambda x: np.sum(np.exp(x * 0.1))),
            jit(value_and_grad(lambda x: np.sum(np.exp(x * 0.1)))),
        ):
            value, gradient = f(x)
            assert_allclose(value, np.sum(np.exp(x * 0.1)), rtol=1e-6)
            assert_allclose(gradient, 0.1 * np.exp(x * 0.1), rtol=1e-6)
            assert gradient.dtype == x.dtype.newbyteorder("=")


def test_a_memmap_is_taken_as_an_array(tmp_path: Any) -> None:
    np.save(tmp_path / "x.npy", X)
    x = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert isinstance(x, np.memmap)
    assert_allclose(grad(lambda x: np.sum(x * x))(x), 2 * X)
    assert type(jit(lambda x: x * 1.0)(x)) is np.ndarray


def test_a_list_is_a_container_of_numbers() -> None:
    assert grad(lambda t: t[0] * t[1])([2.0, 3.0]) == [3.0, 2.0]


def test_version_is_that_of_the_project() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert fnad.__version__ == project["version"]
