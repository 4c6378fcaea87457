"""What simplification makes of small programs, written as texts: before, after."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pytest

import fnad
from fnad.ir.builder import current_builder, inline, trace
from fnad.ir.parser import parse_program
from fnad.ir.printer import print_program
from fnad.ir.program import Program, Source
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64, I64, Aval
from fnad.ir.verifier import verify
from fnad.ir.walk import equal_up_to_names
from fnad.ops.arithmetic import add, mul, neg
from fnad.ops.elementary import exp, log, sin
from fnad.ops.indexing import dynamic_update_slice
from fnad.ops.shape import broadcast_in_dim, concatenate, constant, reduce_sum, slice_axis, zeros_like
from fnad.transforms.dce import dce
from fnad.transforms.flatten import flatten
from fnad.transforms.interpret import interpret
from fnad.transforms.joint import joint
from fnad.transforms.pipeline import simplify
from tests.passes import PASSES, cse, fold, hoist
from tests.steps import steps


def check(transform: Any, before: str, after: str) -> None:
    """Assert that a pass makes the one text of the other."""
    found = transform(parse_program(textwrap.dedent(before)))
    verify(found)
    expected = parse_program(textwrap.dedent(after))
    assert equal_up_to_names(found, expected), f"\n{print_program(found)}\nis not\n{print_program(expected)}"


# ---- each pass ---------------------------------------------------------------------------------------------------


def test_dce_drops_what_no_output_needs():
    check(
        dce,
        """
        f(a: f64[3], b: f64[3]) -> f64[3] {
          c: f64[3] = sin(a)
          d: f64[3] = cos(a)
          e: f64[3] = mul(d, b)
          return c
        }""",
        """
        f(a: f64[3], b: f64[3]) -> f64[3] {
          c: f64[3] = sin(a)
          return c
        }""",
    )


def test_cse_knows_operands_in_either_order():
    check(
        cse,
        """
        f(a: f64[3], b: f64[3]) -> f64[3] {
          c: f64[3] = mul(a, b)
          d: f64[3] = mul(b, a)
          e: f64[3] = sub(c, d)
          return e
        }""",
        """
        f(a: f64[3], b: f64[3]) -> f64[3] {
          c: f64[3] = mul(a, b)
          e: f64[3] = sub(c, c)
          return e
        }""",
    )


def test_cse_leaves_complex_products_in_their_order():
    text = """
        f(a: c128[3], b: c128[3]) -> c128[3], c128[3] {
          c: c128[3] = mul(a, b)
          d: c128[3] = mul(b, a)
          return c, d
        }"""
    check(cse, text, text)


def test_cse_tells_zeros_of_different_sign_apart():
    text = """
        f(a: f64[]) -> f64[], f64[] {
          b: f64[] = div(a, 0.0:f64)
          c: f64[] = div(a, -0.0:f64)
          return b, c
        }"""
    check(cse, text, text)


def test_fold_computes_constants_of_any_size():
    check(
        lambda program: dce(fold(program)),
        """
        f() -> f64[1000,2], f64[] {
          a: f64[1000] = broadcast_in_dim(0.5:f64) shape=(1000,) dims=()
          b: f64[1000] = mul(a, a)
          c: f64[1000,2] = broadcast_in_dim(b) shape=(1000, 2) dims=(0,)
          d: f64[2,1000] = transpose(c) permutation=(1, 0)
          e: f64[2] = reduce_sum(d) axes=(1,)
          g: f64[] = reduce_max(e) axes=(0,)
          return c, g
        }""",
        """
        f() -> f64[1000,2], f64[] {
          a: f64[1000,2] = broadcast_in_dim(0.25:f64) shape=(1000, 2) dims=()
          return a, 250.0:f64
        }""",
    )


def test_fold_evaluates_small_known_arrays():
    check(
        lambda program: dce(fold(program)),
        """
        f() -> i64[], i64[] {
          a: i64[5] = iota() dtype=i64 shape=(5,) axis=0
          b: i64[] = reduce_sum(a) axes=(0,)
          c: i64[] = argmax(a) axis=0
          return b, c
        }""",
        "f() -> i64[], i64[] {\n  return 10:i64, 4:i64\n}",
    )


def test_fold_makes_no_array():
    text = """
        f() -> i64[5] {
          a: i64[5] = iota() dtype=i64 shape=(5,) axis=0
          b: i64[5] = mul(a, a)
          return b
        }"""
    check(fold, text, text)


@pytest.mark.parametrize(
    ("value", "count", "expected"),
    [("0.5", 1000, 500.0), ("0.0", 7, 0.0), ("-3.0", 1 << 20, -3.0 * (1 << 20)), ("1e300", 0, 0.0)],
)
def test_fold_sums_equal_numbers_where_nothing_rounds(value: str, count: int, expected: float):
    program = fold(parse_program(_sum_of_equal(value, count)))
    assert [atom.value for atom in program.outputs] == [expected]  # type: ignore[union-attr]


@pytest.mark.parametrize("value", ["0.1", "inf", "nan", "-0.0"])
def test_fold_leaves_sums_that_round_or_are_special(value: str):
    program = parse_program(_sum_of_equal(value, 1000))
    assert equal_up_to_names(fold(program), program)


def _sum_of_equal(value: str, count: int) -> str:
    return f"""f() -> f64[] {{
      a: f64[{count}] = broadcast_in_dim({value}:f64) shape=({count},) dims=()
      b: f64[] = reduce_sum(a) axes=(0,)
      return b
    }}"""


def test_fold_wraps_sums_of_integers_as_numpy_does():
    program = fold(
        parse_program("""f() -> i8[] {
          a: i8[100] = broadcast_in_dim(100:i8) shape=(100,) dims=()
          b: i8[] = reduce_sum(a) axes=(0,)
          return b
        }""")
    )
    assert program.outputs[0].value == np.full(100, 100, np.int8).sum(dtype=np.int8)  # type: ignore[union-attr]


def test_hoist_computes_before_broadcasting():
    check(
        lambda program: dce(hoist(program)),
        """
        f(a: f64[3], b: f64[3], x: f64[4,3]) -> f64[4,3] {
          c: f64[4,3] = broadcast_in_dim(a) shape=(4, 3) dims=(1,)
          d: f64[4,3] = broadcast_in_dim(b) shape=(4, 3) dims=(1,)
          e: f64[4,3] = broadcast_in_dim(2.0:f64) shape=(4, 3) dims=()
          g: f64[4,3] = div(e, c)
          h: f64[4,3] = mul(g, d)
          i: f64[4,3] = mul(h, x)
          return i
        }""",
        """
        f(a: f64[3], b: f64[3], x: f64[4,3]) -> f64[4,3] {
          e: f64[3] = broadcast_in_dim(2.0:f64) shape=(3,) dims=()
          g: f64[3] = div(e, a)
          h: f64[3] = mul(g, b)
          c: f64[4,3] = broadcast_in_dim(h) shape=(4, 3) dims=(1,)
          i: f64[4,3] = mul(c, x)
          return i
        }""",
    )


def test_hoist_computes_what_a_library_computes_element_by_element_before_broadcasting_too():
    check(
        lambda program: dce(hoist(program)),
        """
        f(a: f64[3]) -> f64[4,3] {
          b: f64[4,3] = broadcast_in_dim(a) shape=(4, 3) dims=(1,)
          c: f64[4,3] = gammaln(b)
          return c
        }""",
        """
        f(a: f64[3]) -> f64[4,3] {
          b: f64[3] = gammaln(a)
          c: f64[4,3] = broadcast_in_dim(b) shape=(4, 3) dims=(1,)
          return c
        }""",
    )


def test_hoist_leaves_what_may_raise_where_no_element_may_be():
    text = """
        f(a: i64[3]) -> i64[0,3] {
          b: i64[0,3] = broadcast_in_dim(a) shape=(0, 3) dims=(1,)
          c: i64[0,3] = int_pow(b, b)
          return c
        }"""
    check(hoist, text, text)


def test_hoist_leaves_different_broadcasts_alone():
    text = """
        f(a: f64[3], b: f64[3]) -> f64[3,3] {
          c: f64[3,3] = broadcast_in_dim(a) shape=(3, 3) dims=(1,)
          d: f64[3,3] = broadcast_in_dim(b) shape=(3, 3) dims=(0,)
          e: f64[3,3] = mul(c, d)
          return e
        }"""
    check(hoist, text, text)


def test_flatten_merges_concatenations_that_are_used_once():
    check(
        flatten,
        """
        f(a: f64[2], b: f64[3]) -> f64[10], f64[5] {
          c: f64[5] = concatenate(a, b) axis=0
          d: f64[5] = concatenate(b, a) axis=0
          e: f64[10] = concatenate(c, d) axis=0
          return e, d
        }""",
        """
        f(a: f64[2], b: f64[3]) -> f64[10], f64[5] {
          d: f64[5] = concatenate(b, a) axis=0
          e: f64[10] = concatenate(a, b, d) axis=0
          return e, d
        }""",
    )


# ---- all together ------------------------------------------------------------------------------------------------


def gradient(function: Any, *avals: Aval) -> Program:
    """Return the simplified program of the gradient of a scalar function."""
    program = trace(lambda *xs: [function(*xs)], *avals, name="f")
    both = joint(program, (True,) * len(avals))

    def seeded(*xs: Symbol) -> list[Symbol]:
        return inline(both, [*xs, current_builder().literal(np.float64(1))])[1:]

    return simplify(trace(seeded, *avals, name="f"))


def test_the_gradient_of_a_fused_function_is_as_short_as_by_hand():
    found = gradient(lambda x: reduce_sum(mul(sin(x), x), axes=(0,)), Aval(F64, (5,)))
    check(
        lambda _: found,
        "f() -> f64[] {\n  return 0.0:f64\n}",
        """
        f(a: f64[5]) -> f64[5] {
          b: f64[5] = sin(a)
          c: f64[5] = cos(a)
          d: f64[5] = strong_mul(a, c)
          e: f64[5] = add(b, d)
          return e
        }""",
    )


def test_a_square_is_pulled_back_by_one_product():
    """The doubled cotangent is a constant, and no product of Rosenbrock's function needs to be strong."""

    def rosenbrock(x: Symbol, y: Symbol) -> Symbol:
        d, e = y - x * x, 1.0 - x
        return reduce_sum(100.0 * (d * d) + e * e, axes=(0,))

    aval = Aval(F64, (5,))
    names = [equation.primitive.name for equation in gradient(rosenbrock, aval, aval).equations]
    assert "strong_mul" not in names
    assert sum(name in {"mul", "add", "sub", "neg"} for name in names) == 8


def test_the_gradient_of_pieces_is_put_together():
    """Slices of one vector give padded cotangents; together they are one concatenation, not a sum for each piece."""

    def f(x: Symbol) -> Symbol:
        pieces = [slice_axis(x, 0, start, start + 3) for start in range(0, 12, 3)]
        total = exp(pieces[0])
        for piece in pieces[1:]:
            total = mul(total, piece)
        return reduce_sum(total, axes=(0,))

    names = [equation.primitive.name for equation in gradient(f, Aval(F64, (12,))).equations]
    assert "pad" not in names
    assert names.count("concatenate") == 1


def test_what_is_read_of_a_sum_beside_padding_is_not_padded():
    check(
        simplify,
        """
        f(z: f64[9], x: f64[2]) -> f64[1], f64[3] {
          a: f64[9] = pad(x) low=(1,) high=(6,) interior=(0,)
          b: f64[9] = add(z, a)
          c: f64[1] = slice(b) starts=(2,) limits=(3,) strides=(1,)
          d: f64[3] = slice(b) starts=(6,) limits=(9,) strides=(1,)
          e: f64[3] = exp(d)
          return c, e
        }""",
        """
        f(z: f64[9], x: f64[2]) -> f64[1], f64[3] {
          a: f64[1] = slice(x) starts=(1,) limits=(2,) strides=(1,)
          b: f64[1] = slice(z) starts=(2,) limits=(3,) strides=(1,)
          c: f64[1] = add(b, a)
          d: f64[3] = slice(z) starts=(6,) limits=(9,) strides=(1,)
          e: f64[3] = broadcast_in_dim(0.0:f64) shape=(3,) dims=()
          g: f64[3] = add(d, e)
          h: f64[3] = exp(g)
          return c, h
        }""",
    )


def test_an_array_made_element_by_element_is_a_concatenation():
    def f(x: Symbol) -> list[Symbol]:
        y = zeros_like(x)
        for n in range(12):
            y = dynamic_update_slice(y, exp(slice_axis(x, 0, n, n + 1)), constant(n, I64))
        return [y]

    names = [equation.primitive.name for equation in simplify(trace(f, Aval(F64, (12,)))).equations]
    assert set(names) == {"slice", "exp", "concatenate"}
    assert names.count("concatenate") == 1


def test_what_stays_of_an_array_is_put_together_in_a_sum() -> None:
    """The cotangent of an array of which the inner part was written is no copy that is written twice."""
    check(
        simplify,
        """
        f(x: f64[4,6], y: f64[4,6]) -> f64[4,6] {
          a: f64[3,4] = broadcast_in_dim(0.0:f64) shape=(3, 4) dims=()
          b: f64[4,6] = dynamic_update_slice(x, a, 1:i64, 1:i64)
          c: f64[4,6] = add(y, b)
          return c
        }""",
        """
        f(x: f64[4,6], y: f64[4,6]) -> f64[4,6] {
          a: f64[3,4] = broadcast_in_dim(0.0:f64) shape=(3, 4) dims=()
          b: f64[3,1] = slice(x) starts=(1, 0) limits=(4, 1) strides=(1, 1)
          c: f64[3,1] = slice(x) starts=(1, 5) limits=(4, 6) strides=(1, 1)
          d: f64[3,6] = concatenate(b, a, c) axis=1
          e: f64[1,6] = slice(x) starts=(0, 0) limits=(1, 6) strides=(1, 1)
          f: f64[4,6] = concatenate(e, d) axis=0
          g: f64[4,6] = add(f, y)
          return g
        }""",
    )
    small = """
        f(x: f64[4,6], y: f64[4,6]) -> f64[4,6] {
          a: f64[1,6] = broadcast_in_dim(0.0:f64) shape=(1, 6) dims=()
          b: f64[4,6] = dynamic_update_slice(x, a, 1:i64, 0:i64)
          c: f64[4,6] = add(b, y)
          return c
        }"""
    check(simplify, small, small)


def test_long_chains_of_rewrites_do_not_exhaust_the_stack():
    """What the first element is was decided 500 writes ago."""

    def f(x: Symbol) -> list[Symbol]:
        line = x
        for n in range(500):
            line = concatenate(slice_axis(line, 0, 1, 3), exp(slice_axis(x, 0, n % 3, n % 3 + 1)), axis=0)
            line = dynamic_update_slice(line, slice_axis(x, 0, 2, 3), constant(2, I64))
        return [slice_axis(line, 0, 0, 1)]

    program = trace(f, Aval(F64, (3,)))
    x = np.array([0.1, 0.2, 0.3])
    np.testing.assert_array_equal(interpret(simplify(program), [x]), interpret(program, [x]))


def test_no_transpose_is_left_around_a_contraction():
    check(
        simplify,
        """
        f(x: f64[8,3], w: f64[4,3]) -> f64[4,8] {
          a: f64[3,4] = transpose(w) permutation=(1, 0)
          b: f64[8,4] = dot_general(x, a) contract=((1,), (0,)) batch=((), ())
          c: f64[4,8] = transpose(b) permutation=(1, 0)
          return c
        }""",
        """
        f(x: f64[8,3], w: f64[4,3]) -> f64[4,8] {
          c: f64[4,8] = dot_general(w, x) contract=((1,), (1,)) batch=((), ())
          return c
        }""",
    )


LOOP = """
          a: f64[50], b: f64[8,50] = scan(t, t) consts=1 carry=1 length=8 reverse=False {
            step(a: f64[50], b: f64[50]) -> f64[50], f64[50] {
              c: f64[50] = mul(b, a)
              return c, c
            }
          }"""


def test_columns_from_a_loop_are_put_together_as_rows():
    """A product takes the transpose as it is, and the rows stay where the loop stacks them."""
    check(
        simplify,
        f"""
        f(t: f64[50], z: f64[50,2], x: f64[11]) -> f64[50], f64[50,11] {{{LOOP}
          c: f64[50,1] = reshape(a) shape=(50, 1)
          e: f64[50,8] = transpose(b) permutation=(1, 0)
          f: f64[50,11] = concatenate(c, e, z) axis=1
          g: f64[50] = dot_general(f, x) contract=((1,), (0,)) batch=((), ())
          return g, f
        }}""",
        f"""
        f(t: f64[50], z: f64[50,2], x: f64[11]) -> f64[50], f64[50,11] {{{LOOP}
          c: f64[1,50] = reshape(a) shape=(1, 50)
          e: f64[2,50] = transpose(z) permutation=(1, 0)
          f: f64[11,50] = concatenate(c, b, e) axis=0
          h: f64[50,11] = transpose(f) permutation=(1, 0)
          g: f64[50] = dot_general(f, x) contract=((0,), (0,)) batch=((), ())
          return g, h
        }}""",
    )


@pytest.mark.parametrize("result", ["a: f64[8,50] = sin(b)\n", ""])
def test_other_columns_are_put_together_as_they_are(result: str):
    text = f"""
        f(b: f64[8,50], z: f64[50,2]) -> f64[50,10] {{
          {result}
          e: f64[50,8] = transpose({"a" if result else "b"}) permutation=(1, 0)
          f: f64[50,10] = concatenate(e, z) axis=1
          return f
        }}"""
    check(simplify, text, text)


def test_a_sum_of_a_product_of_matrices_is_taken_before_the_product():
    """As the cotangent of a bias before a layer is."""
    check(
        simplify,
        """
        f(x: f64[5,40,3], y: f64[5,3,4]) -> f64[5,4] {
          a: f64[5,40,4] = dot_general(x, y) contract=((2,), (1,)) batch=((0,), (0,))
          b: f64[5,40,4] = neg(a)
          c: f64[5,4] = reduce_sum(b) axes=(1,)
          return c
        }""",
        """
        f(x: f64[5,40,3], y: f64[5,3,4]) -> f64[5,4] {
          a: f64[5,3] = reduce_sum(x) axes=(1,)
          b: f64[5,4] = dot_general(a, y) contract=((1,), (1,)) batch=((0,), (0,))
          c: f64[5,4] = broadcast_in_dim(0.0:f64) shape=(5, 4) dims=()
          d: f64[5,4] = sub(c, b)
          return d
        }""",
    )


def test_a_cotangent_divided_by_a_sum_is_multiplied_by_the_sum():
    """As in the gradient of the logarithm of a sum, here of rows, with the axis kept in between."""
    check(
        simplify,
        """
        f(x: f64[5,40], ct: f64[5,1]) -> f64[5] {
          a: f64[5] = reduce_sum(x) axes=(1,)
          b: f64[5,1] = reshape(a) shape=(5, 1)
          c: f64[5,1] = div(ct, b)
          d: f64[5,1] = sub(b, b)
          k: f64[5,1] = stop_gradient(d)
          e: f64[5,1] = add(k, c)
          f: f64[5] = reshape(e) shape=(5,)
          g: f64[5,40] = broadcast_in_dim(f) shape=(5, 40) dims=(0,)
          h: f64[5,40] = strong_mul(g, x)
          i: f64[5] = reduce_sum(h) axes=(1,)
          return i
        }""",
        """
        f(x: f64[5,40], ct: f64[5,1]) -> f64[5] {
          a: f64[5] = reduce_sum(x) axes=(1,)
          b: f64[5,1] = reshape(a) shape=(5, 1)
          c: f64[5,1] = div(ct, b)
          d: f64[5,1] = sub(b, b)
          k: f64[5,1] = stop_gradient(d)
          e: f64[5,1] = add(k, c)
          f: f64[5] = reshape(e) shape=(5,)
          g: f64[5] = strong_mul(f, a)
          return g
        }""",
    )


def test_the_gradient_of_a_logarithm_of_a_sum_sums_once():
    def shifted(x: Symbol, m: Symbol) -> Symbol:
        terms = exp(x - broadcast_in_dim(m, shape=(5, 40), dims=(0,)))
        return reduce_sum(log(reduce_sum(terms, axes=(1,))), axes=(0,))

    found = gradient(shifted, Aval(F64, (5, 40)), Aval(F64, (5,)))
    assert [e.params["axes"] for e in found.equations if e.primitive is reduce_sum] == [(1,)]


OVERFLOWING = {
    "a small cotangent": """
        f(x: f32[2,3], y: f32[2]) -> f32[2] {
          a: f32[2,3] = broadcast_in_dim(y) shape=(2, 3) dims=(0,)
          b: f32[2,3] = strong_mul(a, x)
          c: f32[2] = reduce_sum(b) axes=(1,)
          return c
        }""",
    "a cotangent with the sum in a term": """
        f(x: f32[2,3], y: f32[2]) -> f32[2] {
          t: f32[2] = reduce_sum(x) axes=(1,)
          q: f32[2] = div(y, t)
          r: f32[2] = add(q, y)
          a: f32[2,3] = broadcast_in_dim(r) shape=(2, 3) dims=(0,)
          b: f32[2,3] = strong_mul(a, x)
          c: f32[2] = reduce_sum(b) axes=(1,)
          return c
        }""",
    "a matrix product": """
        f(x: f32[2,3], y: f32[2]) -> f32[3] {
          a: f32[2,3,3] = broadcast_in_dim(x) shape=(2, 3, 3) dims=(0, 1)
          b: f32[3,3] = dot_general(y, a) contract=((0,), (0,)) batch=((), ())
          c: f32[3] = reduce_sum(b) axes=(1,)
          return c
        }""",
}


@pytest.mark.parametrize("text", OVERFLOWING.values(), ids=OVERFLOWING)
def test_products_are_not_summed_before_where_that_overflows(text: str):
    program = parse_program(textwrap.dedent(text))
    arrays = [
        np.full(aval.shape, number, aval.dtype) for aval, number in zip(program.in_avals, (2e38, 1e-10), strict=True)
    ]
    (expected,) = interpret(program, arrays)
    assert np.all(np.isfinite(expected))
    np.testing.assert_allclose(interpret(simplify(program), arrays)[0], expected, rtol=1e-6)


def test_a_contraction_that_is_needed_in_both_orders_is_computed_once():
    program = simplify(
        parse_program("""
        f(x: f64[8,3], w: f64[3,4]) -> f64[8,4], f64[4,8] {
          b: f64[8,4] = dot_general(x, w) contract=((1,), (0,)) batch=((), ())
          c: f64[4,8] = transpose(b) permutation=(1, 0)
          return b, c
        }""")
    )
    assert [equation.primitive.name for equation in program.equations] == ["dot_general", "transpose"]


def test_what_may_be_inf_or_nan_keeps_the_strong_product():
    text = """
        f(ct: f64[3], x: f64[3]) -> f64[3] {
          a: f64[3] = sin(x)
          b: f64[3] = strong_mul(ct, a)
          return b
        }"""
    check(simplify, text, text)


@pytest.mark.parametrize(("dtype", "z", "product"), [("f64", "neg(y)", "mul"), ("c128", "complex(y, y)", "strong_mul")])
def test_the_inverse_tangent_is_finite_on_the_real_line_only(dtype: str, z: str, product: str):
    program = parse_program(f"""
        f(ct: {dtype}[], n: i64[]) -> {dtype}[] {{
          y: f64[] = convert(n) dtype=f64
          z: {dtype}[] = {z}
          a: {dtype}[] = arctan(z)
          b: {dtype}[] = strong_mul(ct, a)
          return b
        }}""")
    assert simplify(program).equations[-1].primitive.name == product


CARRYING = {
    "the partial": "mul(a, a)",
    "a difference": "sub(y, a)",
    "a quotient": "div(a, y)",
    "a cosine": "cos(a)",
    "a square root": "sqrt(a)",
}
NOT_CARRYING = {
    "another value": "mul(y, y)",
    "a divisor": "div(y, a)",
    "an exponential": "exp(a)",
    "a hyperbolic tangent": "tanh(a)",
    "a strong product": "strong_mul(y, a)",
    "a bound": "minimum(a, y)",
}


@pytest.mark.parametrize("partial", ["a", "scaled"])
@pytest.mark.parametrize("name", CARRYING | NOT_CARRYING)
def test_a_cotangent_that_is_not_finite_where_its_partial_is_not_needs_no_strong_product(name: str, partial: str):
    program = parse_program(f"""
        f(a: f64[64], y: f64[64]) -> f64[64] {{
          k: f64[64] = broadcast_in_dim(3.0:f64) shape=(64,) dims=()
          scaled: f64[64] = mul(k, a)
          b: f64[64] = {(CARRYING | NOT_CARRYING)[name]}
          ct: f64[64] = neg(b)
          c: f64[64] = strong_mul(ct, {partial})
          return c
        }}""")
    simpler = simplify(program)
    assert ("strong_mul" in {equation.primitive.name for equation in simpler.equations[-1:]}) == (name in NOT_CARRYING)
    special = np.array([0.0, -0.0, 1.0, -2.0, 1e308, np.inf, -np.inf, np.nan])
    values = [grid.ravel() for grid in np.meshgrid(special, special)]
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(interpret(simpler, values)[0], interpret(program, values)[0])


def test_what_is_finite_does_not():
    check(
        simplify,
        """
        f(ct: f64[3], n: i64[3]) -> f64[3] {
          x: f64[3] = convert(n) dtype=f64
          a: f64[3] = sin(x)
          b: f64[3] = strong_mul(ct, a)
          return b
        }""",
        """
        f(ct: f64[3], n: i64[3]) -> f64[3] {
          x: f64[3] = convert(n) dtype=f64
          a: f64[3] = sin(x)
          b: f64[3] = mul(ct, a)
          return b
        }""",
    )


def test_equations_keep_their_source():
    source = Source("model.py", 3, "layer")

    def f(x: Symbol) -> list[Symbol]:
        current_builder().source = source
        return [add(x, neg(neg(sin(x))))]

    assert {equation.source for equation in simplify(trace(f, Aval(F64, (3,)))).equations} == {source}


@pytest.mark.parametrize("transform", PASSES.values(), ids=PASSES)
def test_a_pass_does_nothing_the_second_time(transform: Any):
    program = transform(_long_joint(20))
    assert equal_up_to_names(transform(program), program)


@pytest.mark.parametrize("axis", [0, 1, (0, 1)])
def test_what_a_divisor_receives_is_divided_after_it_is_summed(axis: Any):
    def total(x: Any, d: Any, w: Any) -> Any:
        return np.sum(w * (x / np.expand_dims(d, axis)))

    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 5, 7))
    d = rng.uniform(1, 2, np.sum(x, axis=axis).shape)
    slope = fnad.jit(fnad.grad(total, 1))
    assert slope.lower(x, d, w).as_text("simplified").count("f64[5,7] = div(") == 1
    np.testing.assert_allclose(slope(x, d, w), -np.sum(w * x, axis=axis) / d**2, rtol=1e-13)
    signs = np.abs(x)
    for divisor, weight, expected in ((0.0, 0.0, 0.0), (0.0, 1.0, -np.inf), (-0.0, 1.0, -np.inf), (np.inf, 1.0, 0.0)):
        found = slope(signs, np.full_like(d, divisor), np.full_like(w, weight))
        np.testing.assert_array_equal(found, np.full_like(d, expected))


# ---- time --------------------------------------------------------------------------------------------------------


def _long_joint(length: int) -> Program:
    def f(x: Symbol) -> list[Symbol]:
        y = x
        for n in range(length):
            y = exp(sin(y)) * x + 0.5 * n
        return [reduce_sum(y, axes=(0,))]

    return joint(trace(f, Aval(F64, (5,))), (True,))


def test_four_times_the_equations_take_four_times_the_steps():
    short, long = _long_joint(50), _long_joint(200)
    assert len(long.equations) > 2000
    assert steps(lambda: simplify(long)) < 5 * steps(lambda: simplify(short))


def test_cotangents_of_elements_are_joined_without_adding_zeros():
    program = fnad.export(fnad.grad(lambda x: x[0] * np.sin(x[1])), np.ones(2)).program
    assert "add" not in {equation.primitive.name for equation in simplify(program).equations}
