"""What fuses with what, read off the loops IR, and the values of what comes out."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import fnad
from fnad.backends.cpu.executor import compile_program, plan
from fnad.backends.cpu.target import CPU
from fnad.config import override
from fnad.ir.builder import trace
from fnad.ir.parser import parse_program
from fnad.ir.types import F32, F64, I64, Aval
from fnad.lower.allocation import Life, Slot, Slots
from fnad.lower.footprint import footprint
from fnad.lower.index import Counter
from fnad.lower.loop_ir import BufferStore, NestLoop, Product, Update, effects, reads
from fnad.lower.lowering import lower
from fnad.lower.nodes import Buffer
from fnad.lower.parallel import is_parallel
from fnad.lower.printer import loops_text
from fnad.ops.arithmetic import add, div, mul, sub
from fnad.ops.contraction import dot_general
from fnad.ops.elementary import exp, sin, tanh
from fnad.ops.indexing import gather, scatter_add
from fnad.ops.shape import broadcast_in_dim, pad, reduce_sum, reshape, reverse, slice_axis, transpose
from fnad.ops.sliding_windows import overlap_add, windows
from fnad.transforms.interpret import interpret
from fnad.transforms.pipeline import simplify


def rows(x, like):
    return broadcast_in_dim(x, shape=like.shape, dims=(0,))


def softmax(x):
    e = exp(sub(x, rows(reduce_sum(x, axes=(1,)), x)))
    return [div(e, rows(reduce_sum(e, axes=(1,)), e))]


def stencil(x, steps=4):
    for _ in range(steps):
        x = add(pad(slice_axis(x, 0, 1, 50), low=(0,), high=(1,), interior=(0,)), mul(x, x))
    return [x]


def ends(x):
    """One element at an end, and elements in every second place."""
    first, last = slice_axis(x, 0, 0, 1), slice_axis(x, 0, 11, 12)
    spread = [pad(mul(x, x), low=(low,), high=(high,), interior=(1,)) for low, high in ((0, 1), (1, 0))]
    at_ends = [pad(mul(v, v), low=(low,), high=(23 - low,), interior=(0,)) for v, low in ((first, 0), (last, 23))]
    return [*at_ends, add(add(*spread), add(*at_ends))]


def products(x, y, z):
    xy = tanh(dot_general(x, y, contract=((2,), (1,)), batch=((0,), (0,))))
    each = broadcast_in_dim(z, shape=(5, 11, 12), dims=(1, 2))
    return [exp(dot_general(xy, each, contract=((2,), (1,)), batch=((0,), (0,))))]


def crossed(x, y):
    """Products of matrices that lie across those that the first products make."""
    xy = dot_general(x, y, contract=((2,), (1,)), batch=((0,), (0,)))
    return [dot_general(xy, y, contract=((0,), (1,)), batch=((1,), (0,))), reduce_sum(xy, axes=(0,))]


def sliding(x, kernels):
    seen = windows(x, axes=(2,), sizes=(5,), strides=(1,), dilations=(1,))
    y = tanh(dot_general(kernels, seen, contract=((2, 3), (1, 3)), batch=((0,), (0,))))
    back = dot_general(kernels, y, contract=((1,), (1,)), batch=((0,), (0,)))
    back = transpose(back, permutation=(0, 1, 3, 2))
    return [y, overlap_add(back, axes=(2,), extents=(20,), strides=(1,), dilations=(1,))]


PROGRAMS = {
    "chain": (lambda x: [reduce_sum(mul(sin(x), x), axes=(0,)), exp(sin(x))], [Aval(F64, (300,))]),
    "softmax": (softmax, [Aval(F32, (7, 33))]),
    "columns": (lambda x: [reduce_sum(exp(x), axes=(0,)), reduce_sum(exp(x), axes=(1,))], [Aval(F32, (20, 30))]),
    "middle": (lambda x: [reduce_sum(x, axes=(1,)), reduce_sum(x, axes=(0, 2))], [Aval(F64, (4, 5, 6))]),
    "reshape": (lambda x: [exp(reshape(transpose(x, permutation=(1, 0)), shape=(6, 10)))], [Aval(F64, (5, 12))]),
    "stencil": (stencil, [Aval(F64, (50,))]),
    "ends": (ends, [Aval(F64, (12,))]),
    "long sum": (lambda x: [reduce_sum(mul(x, x), axes=(0, 1))], [Aval(F64, (3, 5000))]),
    "products": (products, [Aval(F64, (5, 9, 10)), Aval(F64, (5, 10, 11)), Aval(F64, (11, 12))]),
    "crossed": (crossed, [Aval(F64, (12, 12, 12)), Aval(F64, (12, 12, 12))]),
    "sliding": (sliding, [Aval(F32, (6, 3, 20)), Aval(F32, (6, 4, 3, 5))]),
    "gather": (
        lambda x, i: [mul(gather(x, i), gather(x, i)), scatter_add(x, gather(x, i), i)],
        [Aval(F64, (10,)), Aval(I64, (4,))],
    ),
    "outputs": (lambda x, y: [x, x, mul(x, y), reshape(y, shape=(2, 3))], [Aval(F64, (6,)), Aval(F64, (6,))]),
    "empty": (lambda x: [reduce_sum(x, axes=(0,)), exp(x)], [Aval(F64, (0, 3))]),
    "scalar": (lambda x: [sin(mul(x, x))], [Aval(F64, ())]),
}


def arguments(avals):
    rng = np.random.default_rng(0)
    return [rng.integers(-3, 3, a.shape) if a.dtype == I64 else rng.random(a.shape).astype(a.dtype) for a in avals]


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_is_interpreted(name):
    function, avals = PROGRAMS[name]
    program, given = trace(function, *avals, name="f"), arguments(avals)
    for found, expected in zip(compile_program(program)(given), interpret(program, given), strict=True):
        assert (found.dtype, found.shape) == (np.asarray(expected).dtype, np.shape(expected))
        np.testing.assert_allclose(found, expected, rtol=1e-5 if found.dtype == F32 else 1e-13)


def items(name):
    function, avals = PROGRAMS[name]
    return lower(trace(function, *avals, name=name), CPU).items


def test_elementwise_work_and_folds_over_it_are_one_nest():
    assert len(items("chain")) == 1
    source = plan(trace(*PROGRAMS["chain"][:1], *PROGRAMS["chain"][1], name="chain")).source
    assert source.count("sin(") == 1
    assert not re.search(r"\bt\d", source), "nothing between is stored"


def test_large_arrays_without_a_common_operand_are_computed_where_both_are_read():
    f = lambda x, y: (np.exp(x), np.exp(y), np.exp(x) * np.exp(y))  # noqa: E731
    for n, nests in ((100, 2), (10_000, 1)):
        assert fnad.jit(f).lower(*np.ones((2, n))).as_text("loops").count("for ") == nests


@pytest.mark.parametrize(("function", "loops"), [(np.exp, 2), (np.square, 1)])
def test_functions_are_not_called_one_by_one_beside_a_running_fold(function: Callable[..., Any], loops: int) -> None:
    f = fnad.jit(lambda x: (function(x).sum(), np.cumsum(x)))
    x = np.random.default_rng(0).standard_normal(50)
    assert f.lower(x).as_text("loops").count("for ") == loops
    with override(executor="compiled"):
        total, sums = f(x)
    np.testing.assert_allclose(total, function(x).sum())
    np.testing.assert_allclose(sums, np.cumsum(x))


def test_work_on_rows_after_a_fold_of_rows_stays_in_the_row():
    (outer,) = items("softmax")
    assert isinstance(outer, NestLoop)
    assert [type(inner) for inner in outer.items] == [NestLoop] * 3


def test_loops_over_contiguous_axes_become_one():
    program = trace(lambda x: [exp(x)], Aval(F64, (4, 5, 6)), name="f")
    (loop,) = lower(program, CPU).items
    assert isinstance(loop, NestLoop)
    assert loop.extent == 120


def test_a_stencil_is_not_computed_again_for_every_reader():
    assert sum(len(list(effects(item))) for item in items("stencil")) <= 2 * 4


@pytest.mark.parametrize("permutations", [((0, 1), (0, 1)), ((1, 0), (0, 1)), ((0, 1), (1, 0)), ((1, 0), (1, 0))])
def test_a_transpose_before_a_matrix_product_costs_nothing(permutations):
    shapes = [(20, 30)[:: 1 if p == (0, 1) else -1] for p in permutations]
    shapes[1] = (30, 10)[:: 1 if permutations[1] == (0, 1) else -1]

    def product(x, y):
        turned = [transpose(v, permutation=p) for v, p in zip((x, y), permutations, strict=True)]
        return [dot_general(*turned, contract=((1,), (0,)), batch=((), ()))]

    program = trace(product, *[Aval(F64, s) for s in shapes], name="f")
    assert [type(item) for item in lower(program, CPU).items] == [Product]
    given = arguments(program.in_avals)
    np.testing.assert_allclose(compile_program(program)(given)[0], interpret(program, given)[0], rtol=1e-13)


def convolution(x, kernels):
    """A convolution of each image, and what comes back to the kernels and to the images."""
    each = broadcast_in_dim(kernels, shape=(20, 6, 3, 5), dims=(1, 2, 3))
    seen = windows(x, axes=(2,), sizes=(5,), strides=(1,), dilations=(1,))
    y = dot_general(each, seen, contract=((2, 3), (1, 3)), batch=((0,), (0,)))
    of_kernels = dot_general(y, seen, contract=((2,), (2,)), batch=((0,), (0,)))
    back = transpose(dot_general(each, y, contract=((1,), (1,)), batch=((0,), (0,))), permutation=(0, 1, 3, 2))
    of_images = overlap_add(back, axes=(2,), extents=(40,), strides=(1,), dilations=(1,))
    return [reduce_sum(of_kernels, axes=(0,)), of_images]


def test_a_convolution_and_its_derivatives_are_one_loop_over_images():
    program = trace(convolution, Aval(F64, (20, 3, 40)), Aval(F64, (6, 3, 5)), name="f")
    (loop,) = lower(program, CPU).items
    assert isinstance(loop, NestLoop)
    assert is_parallel(loop), "windows overlap within an image alone"
    (update,) = [effect for effect in effects(loop) if isinstance(effect, Update)]
    assert update.address.coefficient(Counter(3, 36)) == 1, "the innermost loop is that over contiguous memory"
    copies = [e for e in effects(loop) if isinstance(e, BufferStore) and {b.name for b, _ in reads(e)} == {"x0"}]
    assert len(copies) == 1, "one matrix of windows, which the second product takes transposed"
    given = arguments(program.in_avals)
    for found, expected in zip(compile_program(program)(given), interpret(program, given), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_batched_product_is_a_loop_of_products():
    def product(x, y):
        return [dot_general(x, y, contract=((2,), (1,)), batch=((0,), (0,)))]

    program = trace(product, Aval(F32, (3, 20, 30)), Aval(F32, (3, 30, 10)), name="f")
    given = arguments(program.in_avals)
    np.testing.assert_allclose(compile_program(program)(given)[0], interpret(program, given)[0], rtol=1e-5)


def test_batched_products_and_work_on_them_are_one_nest():
    (nest,) = items("products")
    assert sum(isinstance(effect, Product) for effect in effects(nest)) == 2


def test_a_product_that_reads_across_another_waits_for_all_of_it():
    first, *_, last = items("crossed")
    assert any(isinstance(effect, Product) for effect in effects(first))
    assert any(isinstance(effect, Product) for effect in effects(last))


def test_a_strided_vector_is_multiplied_in_place():
    def product(x, y):
        return [dot_general(x, slice_axis(y, 1, 3, 4), contract=((1,), (0,)), batch=((), ()))]

    program = trace(product, Aval(F64, (40, 30)), Aval(F64, (30, 10)), name="f")
    assert [type(item) for item in lower(program, CPU).items] == [Product]
    given = arguments(program.in_avals)
    np.testing.assert_allclose(compile_program(program)(given)[0], interpret(program, given)[0], rtol=1e-13)


def test_rows_that_a_loop_stacks_are_stored_in_the_matrix_that_they_are_part_of():
    program = parse_program("""
f(t: f64[300], x: f64[12]) -> f64[300] {
  a: f64[300], b: f64[10,300] = scan(t, t) consts=1 carry=1 length=10 reverse=False {
    step(a: f64[300], b: f64[300]) -> f64[300], f64[300] {
      c: f64[300] = mul(b, a)
      return c, c
    }
  }
  c: f64[1,300] = reshape(t) shape=(1, 300)
  d: f64[1,300] = reshape(a) shape=(1, 300)
  e: f64[12,300] = concatenate(c, b, d) axis=0
  f: f64[300] = dot_general(e, x) contract=((0,), (0,)) batch=((), ())
  return f
}""")
    large = [buffer.aval.shape for buffer in lower(program, CPU).temporaries if buffer.aval.size > 300]
    assert large == [(12, 300)]
    given = arguments(program.in_avals)
    np.testing.assert_allclose(compile_program(program)(given)[0], interpret(program, given)[0], rtol=1e-13)


STENCILS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "Rosenbrock": (lambda x: np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2), 0),
    "differences": (lambda x: np.sum(np.diff(x) ** 2), 0),
    "second differences": (lambda x: np.sum(np.diff(x, n=2) ** 2), 1),
    "rolled": (lambda x: np.sum((x - np.roll(x, 1)) ** 2), 0),
    "rows and columns": (lambda x: np.sum((x[1:] - x[:-1]) ** 2) + np.sum((x[:, 1:] - x[:, :-1]) ** 2), 0),
    "an expensive neighbour": (lambda x: np.sum(np.sin(x)[1:] * np.sin(x)[:-1]), 1),
}


@pytest.mark.parametrize("name", STENCILS)
def test_neighbours_are_computed_again_where_that_is_cheap(name: str):
    stencil, stored = STENCILS[name]
    x = np.random.default_rng(0).standard_normal((30, 40) if name == "rows and columns" else 300)
    gradient = fnad.value_and_grad(stencil)
    loops = fnad.jit(gradient).lower(x).as_text("loops")
    assert len(re.findall(r"temporary \w+: f64\[\d", loops)) == stored
    with fnad.config.override(executor="compiled"):
        value, slope = fnad.jit(gradient)(x)
    v = np.random.default_rng(1).standard_normal(x.shape)
    complex_step = stencil(x + 1e-30j * v)
    np.testing.assert_allclose([value, np.sum(slope * v)], [complex_step.real, complex_step.imag * 1e30], rtol=1e-11)


def test_temporaries_take_turns_in_memory():
    def chain(x, w):
        for _ in range(6):
            x = tanh(dot_general(x, w, contract=((1,), (0,)), batch=((), ())))
        return [x]

    planned = plan(trace(chain, Aval(F64, (16, 16)), Aval(F64, (16, 16)), name="f"))
    assert len(planned.slots) == 1, "the other array is the output, until it is written"


def test_a_temporary_lies_in_the_output_it_is_turned_into():
    def normalised(x):
        e = exp(x)
        return [div(e, broadcast_in_dim(reduce_sum(e, axes=(0,)), shape=e.shape, dims=()))]

    program = trace(normalised, Aval(F64, (1000,)), name="f")
    assert plan(program).slots == []
    given = arguments(program.in_avals)
    np.testing.assert_allclose(compile_program(program)(given)[0], interpret(program, given)[0], rtol=1e-13)


def test_small_vectors_and_matrices_of_a_row_are_variables():
    def turned(m, v):
        for _ in range(3):
            v = reduce_sum(mul(m, broadcast_in_dim(v, shape=m.shape, dims=(0, 2))), axes=(2,))
            v = div(v, rows(reduce_sum(mul(v, v), axes=(1,)), v))
        return [v]

    program = trace(turned, Aval(F64, (500, 3, 3)), Aval(F64, (500, 3)), name="f")
    planned = plan(program)
    assert planned.slots == []
    assert planned.source.count("for ") == 1
    given = arguments(program.in_avals)
    np.testing.assert_allclose(compile_program(program)(given)[0], interpret(program, given)[0], rtol=1e-13)


def test_a_temporary_read_elsewhere_keeps_its_memory():
    def turned(x):
        e = exp(x)
        total = broadcast_in_dim(reduce_sum(e, axes=(0,)), shape=e.shape, dims=())
        return [div(e, add(total, reverse(e, axes=(0,))))]

    program = trace(turned, Aval(F64, (1000,)), name="f")
    assert len(plan(program).slots) == 1
    given = arguments(program.in_avals)
    np.testing.assert_allclose(compile_program(program)(given)[0], interpret(program, given)[0], rtol=1e-13)


# ---- memory ----------------------------------------------------------------------------------------------------------


@given(
    st.lists(
        st.tuples(st.integers(0, 20), st.integers(0, 8), st.integers(1, 9), st.sampled_from([F64, F32])), max_size=40
    )
)
def test_temporaries_take_the_nearest_array_that_is_free(lives: list[Any]):
    slots, expected = Slots(), list[Slot]()
    for birth, length, size, dtype in sorted(lives, key=lambda life: life[0]):
        buffer, life = Buffer("t", Aval(dtype, (size,))), Life(birth, birth + length)
        free = [slot for slot in expected if slot.dtype == dtype and slot.free_from <= birth]
        nearest = min(free, key=lambda slot: abs(slot.size - size), default=None)
        if nearest is None:
            nearest = Slot(f"t{len(expected)}", dtype, 0)
            expected.append(nearest)
        nearest.size, nearest.free_from = max(nearest.size, size), life.death + 1
        assert slots.take(buffer, life).name == nearest.name
    assert [(slot.dtype, slot.size) for slot in slots.all] == [(slot.dtype, slot.size) for slot in expected]


def test_a_piece_of_one_element_is_read_at_a_known_place():
    """So no quotient and no remainder are left of the reshapes in the pieces."""

    def volume(x: Any) -> Any:
        return np.sum(np.cross(x, x[:, ::-1]) * np.arange(3.0), axis=2)

    program = simplify(fnad.make_program(volume)(np.ones((40, 2, 3))).program)
    text = loops_text(lower(program, CPU))
    assert "%" not in text
    assert "//" not in text


def test_a_reshaped_concatenation_is_stored_where_it_ends_up():
    """Piece by piece, as the concatenation alone, and without a temporary: no element looks for its operand."""

    def nonzeros(a: Any, b: Any) -> Any:
        return np.concatenate([np.concatenate([np.sin(a), np.cos(b)], axis=2).ravel(), a[:, 0, 0]])

    program = simplify(fnad.make_program(nonzeros)(np.ones((40, 2, 3)), np.ones((40, 2, 4))).program)
    loops = lower(program, CPU)
    text = loops_text(loops)
    assert not loops.temporaries
    assert "//" not in text
    assert " if " not in text


def test_calls_with_effects_keep_their_order() -> None:
    """Calls that share no array conflict if both have effects."""
    program = parse_program("""
    f(a: f64[3], b: f64[3]) -> f64[3], f64[3] {
      c: f64[3] = psum(a) ranks=1 site=""
      d: f64[3] = psum(b) ranks=1 site=""
      return c, d
    }""")
    first, second = map(footprint, lower(program, CPU).items)
    assert not {*first.written, *first.read} & {*second.written, *second.read}
    assert first.conflicts(second)


def test_a_program_has_the_same_kernels_each_time() -> None:
    """Terms of an address that are read at run time are in the order in which they were written."""
    elements = fnad.vmap(lambda x, i, j: x[i, j] + x[j, i] * x[i + 1, j], (None, 0, 0))
    program = fnad.make_program(elements)(np.ones((5, 5)), np.arange(3), np.arange(3)).program
    assert len({plan(program).source for _ in range(8)}) == 1
