"""Passes over kernels: store forwarding, liveness, layout, and the text, which reads back."""

from __future__ import annotations

from textwrap import dedent, indent

import numpy as np
import pytest

from fnad.kernel.borders import split
from fnad.kernel.forward import forward
from fnad.kernel.layout import Layout
from fnad.kernel.liveness import live, read_arrays
from fnad.kernel.plain_products import with_plain_products
from fnad.kernel.python_source import kernel_text, namespace, plain_text
from fnad.kernel.routines import compensated_add
from fnad.kernel.statements import Kernel, Statement
from fnad.kernel.unroll import unroll
from fnad.scalar.operation import OperandError
from tests.kernel_text import parse_kernel

F64, I64 = np.dtype("f8"), np.dtype("i8")


def kernel(body: str) -> Kernel:
    """Return a kernel on arrays x, y, t of f64, indices of i64, and the status."""
    source = "def k(x, y, t, indices, status):\n" + "\n".join(
        f"    {line}" for line in dedent(body).strip().split("\n")
    )
    return parse_kernel(source, "k", [F64, F64, F64, I64, I64])


def text(statements: list[Statement]) -> str:
    lines = kernel_text(Kernel("k", (), statements)).split("\n")[1:-1]
    return dedent("\n".join(lines))


def forwarded(body: str) -> str:
    return text(forward(kernel(body).body))


# ---- splitting ---------------------------------------------------------------------------------------------------


def test_a_loop_is_split_where_a_branch_ends() -> None:
    body = """
        for i0 in range(100):
            if (i0 - 1 >= 0) & (i0 < 99):
                v0 = x[i0]
            else:
                v0 = f64(0.0)
            y[i0] = v0
        """
    expected = "y[i0] = f64(0.0)", "y[i0] = x[i0]", "y[i0] = f64(0.0)"
    ranges = "1", "1, 99", "99, 100"
    loops = [f"for i0 in range({r}):\n    {line}" for r, line in zip(ranges, expected, strict=True)]
    assert text(split(kernel(body).body)) == "\n".join(loops)


def test_a_loop_is_not_split_within_its_first_and_last_iterations() -> None:
    branches = [f"if i0 < {n}:\n    v{n} = x[i0]\nelse:\n    v{n} = f64(0.0)" for n in (1, 2, 98, 99)]
    body = "\n".join(["for i0 in range(100):", indent("\n".join([*branches, "y[i0] = v1 + v2 + v98 + v99"]), "    ")])
    loops = text(split(kernel(body).body))
    assert [line for line in loops.split("\n") if line.startswith("for")] == [
        f"for i0 in range({bounds}):" for bounds in ("2", "2, 98", "98, 100")
    ]
    assert loops.count("if i0 < 1:") == loops.count("if i0 < 99:") == 1
    assert "if i0 < 2:" not in loops


def test_a_loop_over_rows_is_split_where_a_branch_in_it_ends() -> None:
    body = """
        for i0 in range(50):
            for i1 in range(40):
                if (i0 >= 1) & (i1 >= 1):
                    v0 = x[40 * i0 + i1]
                else:
                    v0 = f64(0.0)
                y[40 * i0 + i1] = v0
        """
    nothing, read = "y[40 * i0 + i1] = f64(0.0)", "y[40 * i0 + i1] = x[40 * i0 + i1]"
    first = f"for i0 in range(1):\n    for i1 in range(40):\n        {nothing}"
    others = "".join(f"\n    for i1 in range({r}):\n        {line}" for r, line in (("1", nothing), ("1, 40", read)))
    assert text(split(kernel(body).body)) == f"{first}\nfor i0 in range(1, 50):{others}"


@pytest.mark.parametrize("slope", [1, -1, 3, -3])
@pytest.mark.parametrize("bounds", ["0, 40", "7, 30", "indices[0], indices[1]"])
def test_a_split_loop_does_what_it_did(slope: int, bounds: str) -> None:
    for constant, low, high in ((0, -9, 9), (2, 5, 24), (-5, -40, 1), (60, -60, 59)):
        body = f"""
            a = f64(0)
            for i0 in range({bounds}):
                if ({slope} * i0 + {constant} >= {low}) & ({slope} * i0 + {constant} < {high}):
                    v0 = x[i0]
                    if i0 + i0 < 31:
                        v0 = f64(3)
                else:
                    v0 = f64(1)
                a = a + v0
                y[i0] = a
            """
        whole, parts = kernel(body), split(kernel(body).body)
        assert len(parts) > 2
        found = [np.zeros(40), np.zeros(40)]
        for written, statements in zip(found, (whole.body, parts), strict=True):
            names = dict(namespace())
            exec(kernel_text(Kernel("k", whole.parameters, statements)), names)
            names["k"](np.arange(40.0), written, None, np.array([3, 38]), None)
        assert found[0].any()
        np.testing.assert_array_equal(*found)


# ---- plain products ----------------------------------------------------------------------------------------------

GATHERED = """
    acc0 = f64(0)
    for i0 in range(4):
        v0 = indices[i0]
        if v0 >= 6:
            status[0] = i64(1)
            v0 = i64(0)
        v1 = f64(3) * x[v0]
        {}
    """
"""A loop with a fault, which LLVM does not vectorise."""

STRONG = {
    "a sum": "y[i0] = strong_multiply(v1, t[i0]) + strong_multiply(t[i0], v1)",
    "a product of one": "v2 = strong_multiply(strong_multiply(v1, t[i0]), x[i0])\ny[i0] = v2 / t[3] - v1",
    "two results": "v2 = strong_multiply(v1, t[i0])\ny[2 * i0] = -v2\ny[2 * i0 + 1] = strong_multiply(v2, x[0])",
    "that nobody needs": "v2 = strong_multiply(v1, t[i0])\ny[i0] = strong_multiply(v1, x[i0])",
}


def gathered(inner: str) -> Kernel:
    return kernel(GATHERED.format("\n        ".join(inner.split("\n"))))


@pytest.mark.parametrize("partial", [2.0, np.inf, np.nan])
@pytest.mark.parametrize("inner", STRONG.values(), ids=STRONG)
def test_plain_products_give_what_strong_ones_do(inner: str, partial: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fnad.kernel.plain_products.FEWEST", 2)
    whole = gathered(inner)
    parts = with_plain_products(whole.body)
    assert text(parts).count("for ") == 2
    found = [np.zeros(8), np.zeros(8)]
    for written, statements in zip(found, (whole.body, parts), strict=True):
        names = dict(namespace())
        exec(kernel_text(Kernel("k", whole.parameters, statements)), names)
        with np.errstate(all="ignore"):
            names["k"](
                np.array([0.0, 1, 2, 3, 4, 5]), written, np.array([1, partial, 3, partial]), np.arange(4)[::-1], [0]
            )
    np.testing.assert_array_equal(*found)


UNTOLD = {
    "chosen": "v2 = select(v1 < f64(1), v1, strong_multiply(v1, t[i0]))\ny[i0] = v2",
    "the least": "y[i0] = minimum(strong_multiply(v1, t[i0]), v1)",
    "a denominator, where the zero's sign counts": "y[i0] = v1 / strong_multiply(v1, t[i0])",
    "compared": "v2 = strong_multiply(v1, t[i0])\nif v2 < f64(1):\n    y[i0] = v1",
    "an index": "y[i64(strong_multiply(v1, t[i0]))] = v1",
    "added to what is there": "y[v0] = y[v0] + strong_multiply(v1, t[i0])",
    "stored where it is read": "x[i0] = strong_multiply(v1, t[i0])",
    "summed": "acc0 = acc0 + v1\ny[i0] = strong_multiply(v1, t[i0]) + acc0",
    "in a branch": "if v0 < 3:\n    v1 = strong_multiply(v1, t[i0])\ny[i0] = v1",
    "lost in a branch": "v2 = strong_multiply(v1, t[i0])\nif v0 < 3:\n    v2 = v1\ny[i0] = v2",
    "of integers": "indices[i0 + 8] = strong_multiply(v0, i0)",
    "of integers that nothing reads": "status[i0 + 1] = strong_multiply(v0, i0)",
    "after a routine": """\
if v0 < 3:
    gemv(x, 0, 2, False, x, 0, 1, t, 0, 2, 2, f64(1), f64(0))
y[i0] = strong_multiply(v1, t[i0])""",
}


@pytest.mark.parametrize("inner", UNTOLD.values(), ids=UNTOLD)
def test_products_stay_strong_where_a_result_may_not_tell(inner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fnad.kernel.plain_products.FEWEST", 1)
    body = gathered(inner).body
    assert text(with_plain_products(body)) == text(body)


def test_products_stay_strong_in_loops_of_vectors() -> None:
    body = kernel("for i0 in range(9):\n    y[i0] = " + " + ".join(["strong_multiply(x[i0], t[i0])"] * 40)).body
    assert text(with_plain_products(body)) == text(body)


def test_loops_of_few_strong_products_are_not_made_again() -> None:
    body = gathered(STRONG["a sum"]).body
    assert with_plain_products(body) == body  # statements are equal only if they are the same object


# ---- unrolling ---------------------------------------------------------------------------------------------------


def test_a_short_loop_within_another_becomes_its_iterations() -> None:
    body = """
        for i0 in range(9):
            acc0 = f64(0)
            for i1 in range(2):
                v0 = x[i1 + 2 * i0 + 3]
                if i1 < 1:
                    v1 = v0
                else:
                    v1 = -v0
                acc0 = acc0 + v1
            y[i0] = acc0
        """
    expected = """
        for i0 in range(9):
            acc0 = f64(0.0)
            acc0 = acc0 + x[2 * i0 + 3]
            acc0 = acc0 + -x[2 * i0 + 4]
            y[i0] = acc0
        """
    assert text(forward(unroll(kernel(body).body))) == dedent(expected).strip()


UNROLLED = {
    "backwards": "for i1 in range(3, -1, -1):\n    y[4 * i0 + i1] = acc0\n    acc0 = acc0 + x[4 * i0 + i1]",
    "in another": """\
        for i1 in range(3):
            v0 = x[i1]
            for i2 in range(1, 4):
                v1 = v0 * x[4 * i0 + i2 - i1]
                t[3 - i2] = v1
                acc0 = acc0 + t[2] + t[0]
            t[i1] = acc0
        y[i0] = t[0] - t[2]
        """,
    "of large numbers": "for i1 in range(2):\n    v0 = indices[i1] + i1 + 4611686018427387904\n    y[i1] = f64(v0)",
    "of an identity": "for i1 in range(3):\n    v0 = f64(i1 == 1)\n    y[i1 + i0] = strong_multiply(v0, x[i1]) + v0",
    "of nothing": "for i1 in range(0):\n    y[0] = f64(7)",
}


@pytest.mark.parametrize("inner", UNROLLED.values(), ids=UNROLLED)
def test_an_unrolled_loop_does_what_it_did(inner: str) -> None:
    whole = kernel("acc0 = f64(0)\nfor i0 in range(5):\n" + indent(dedent(inner), "    "))
    parts = forward(unroll(whole.body))
    assert text(parts).count("for ") == 1
    found = [np.zeros(20), np.zeros(20)]
    for written, statements in zip(found, (whole.body, parts), strict=True):
        names = dict(namespace())
        exec(kernel_text(Kernel("k", whole.parameters, statements)), names)
        names["k"](np.arange(1.0, 21.0), written, np.zeros(4), np.array([3, 38]), None)
    np.testing.assert_array_equal(*found)


def test_a_loop_of_two_may_be_long() -> None:
    stores = "".join(f"\n        t[{n} + i1] = x[{n} + i0]\n        y[{n} + i1] = t[{n} + i1]" for n in range(120))
    assert "for i1" not in text(unroll(kernel(f"for i0 in range(9):\n    for i1 in range(2):{stores}").body))


def test_a_loop_that_runs_a_few_times_in_all_stays_one() -> None:
    nest = "for i0 in range(4):\n    for i1 in range(3):\n        for i2 in range(2):\n            y[i0 + i1] = x[i2]"
    assert text(unroll(kernel(nest).body)).count("for ") == 2, "the inner loop alone runs more than four times"
    assert text(unroll(kernel(nest.replace("(3)", "(1)")).body)).count("for ") == 3
    repeated = "while True:\n    if x[0] > y[0]:\n        break\n    for i0 in range(3):\n        y[i0] = x[i0]"
    assert "for " not in text(unroll(kernel(repeated).body))


def test_what_is_unrolled_is_bounded() -> None:
    stores = "".join(f"\n            t[i0 + {n}] = x[i2 + {n}]" for n in range(60))
    body = f"for i0 in range(9):\n    for i1 in range(4):\n        for i2 in range(3):{stores}"
    unrolled = text(unroll(kernel(body).body))
    assert unrolled.count("t[") == 3 * 60, "the inner loop alone"
    assert "for i1" in unrolled


# ---- forwarding --------------------------------------------------------------------------------------------------


def test_a_stored_value_is_not_loaded_again() -> None:
    body = "v0 = x[0]\nt[3] = v0\nv1 = t[3]\ny[0] = v1 + v1"
    assert forwarded(body) == "v0 = x[0]\nt[3] = v0\ny[0] = v0 + v0"


def test_a_value_made_of_what_it_replaces_is_loaded() -> None:
    body = "t[0] = t[0] + x[0]\nv1 = t[0]\nt[0] = t[0] + v1\ny[0] = v1 + t[0]"
    assert forwarded(body) == text(kernel(body).body)


@pytest.mark.parametrize(
    "between",
    [
        "t[indices[0]] = f64(1)",
        "t[indices[0] + 1] = f64(1)",
        "for i0 in range(3):\n    t[i0] = f64(1)",
        "if x[0] > f64(0):\n    t[3] = f64(1)",
        "gemv(x, 0, 2, False, y, 0, 1, t, 0, 2, 2, f64(1), f64(0))",
    ],
)
def test_what_may_write_there_ends_it(between: str) -> None:
    assert "= t[3]" in forwarded(f"v0 = x[0]\nt[3] = v0\n{between}\nv1 = t[3]\ny[0] = v1\ny[1] = v1")


@pytest.mark.parametrize("place", ["{}", "i0 + {}", "3 * i0 - {}"])
def test_what_is_stored_elsewhere_does_not_end_it(place: str) -> None:
    one, other = place.format(3), place.format(4)
    body = "for i0 in range(3):\n    " + "\n    ".join(
        ["v0 = x[i0]", f"t[{one}] = v0", f"t[{other}] = f64(1)", f"v1 = t[{one}]", "y[i0] = v1 + v1"]
    )
    assert f"= t[{one}]" not in forwarded(body)


def test_what_is_stored_behind_an_address_that_changed_ends_it() -> None:
    body = "k0 = indices[0]\nv0 = x[0]\nt[k0] = v0\nk0 = indices[1]\nt[k0 + 1] = f64(1)\nk0 = indices[0]\nv1 = t[k0]\n"
    assert "= t[k0]" in forwarded(body + "y[0] = v1\ny[1] = v1")


def test_a_loop_does_not_see_what_was_there_before_its_first_turn() -> None:
    body = "v0 = x[0]\nt[0] = v0\nfor i0 in range(3):\n    v1 = t[0]\n    v2 = v1 + v1\n    t[0] = v2"
    assert "= t[0]" in forwarded(body)


def test_a_loop_sees_what_it_does_not_write() -> None:
    body = "v0 = x[0]\nt[0] = v0\nfor i0 in range(3):\n    v1 = t[0]\n    y[i0] = v1 + v1"
    assert "t[0] + " not in forwarded(body)
    assert "= t[0]" not in forwarded(body)


def test_an_address_that_varies_is_known_within_a_turn_alone() -> None:
    inside = "for i0 in range(3):\n    v0 = x[i0]\n    t[i0] = v0\n    v1 = t[i0]\n    y[i0] = v1 * v1"
    assert "= t[i0]" not in forwarded(inside)
    after = (
        "for i0 in range(3):\n    v0 = x[i0]\n    t[i0] = v0\nfor i0 in range(3):\n    v1 = t[i0]\n    y[i0] = v1 * v1"
    )
    assert "= t[i0]" in forwarded(after)


def test_what_is_computed_while_it_is_stored_is_not_computed_again() -> None:
    """t[0] + 1 was read before the store: behind it, it is another number."""
    body = "t[0] = x[0]\nt[0] = t[0] + f64(1)\nv0 = t[0]\ny[0] = v0\ny[1] = v0"
    assert "= t[0]\n" in forwarded(body)


@pytest.mark.parametrize("change", ["acc0 = f64(2)", "for i0 in range(3):\n    acc0 = accumulate(acc0, x[i0])"])
def test_a_variable_that_changes_is_not_what_was_stored(change: str) -> None:
    body = f"acc0 = x[0]\nt[0] = acc0\n{change}\nv0 = t[0]\ny[0] = v0\ny[1] = v0 + acc0"
    assert "= t[0]\n" in forwarded(body)


# ---- liveness ----------------------------------------------------------------------------------------------------


def test_stores_that_nobody_reads_fall_away_with_what_they_store() -> None:
    body = """
        for i0 in range(3):
            v0 = x[i0]
            v1 = exp(v0)
            t[i0] = v1
            y[i0] = v0
        for i1 in range(2):
            t[i1] = sin(x[i1])
    """
    assert text(live(kernel(body).body, {"t"})) == "for i0 in range(3):\n    y[i0] = x[i0]"


def test_an_accumulator_that_only_feeds_itself_is_dead() -> None:
    body = "acc0 = f64(0)\nfor i0 in range(3):\n    acc0 = accumulate(acc0, x[i0])\nt[0] = acc0\ny[0] = x[0]"
    assert text(live(kernel(body).body, {"t"})) == "y[0] = x[0]"


def test_statements_with_effects_are_live() -> None:
    body = "if interrupted():\n    return\nk0 = indices[0]\nif k0 < 0:\n    status[0] = 1\n    k0 = 0\nt[0] = x[k0]"
    left = text(live(kernel(body).body, {"t"}))
    assert "interrupted()" in left
    assert "status[0] = i64(1)" in left


def test_read_arrays_are_those_loaded_and_those_given_to_routines() -> None:
    body = "y[indices[0]] = f64(1)\ngemv(x, 0, 2, False, x, 0, 1, t, 0, 2, 2, f64(1), f64(0))"
    assert set(read_arrays(kernel(body).body)) == {"indices", "x", "t"}


# ---- layout ------------------------------------------------------------------------------------------------------


def test_layout_renames_arrays_and_makes_small_ones_variables() -> None:
    body = "t[0] = x[0]\nfor i0 in range(3):\n    y[i0] = t[0] + x[i0]\n    t[0] = y[i0]"
    placed = Layout({"x": "a0", "y": "a1"}, {"t": "c0"}).place(kernel(body).body)
    assert text(placed) == "c0 = a0[0]\nfor i0 in range(3):\n    a1[i0] = c0 + a0[i0]\n    c0 = a1[i0]"


# ---- text --------------------------------------------------------------------------------------------------------


def test_a_value_is_written_where_it_is_used_once() -> None:
    body = "v0 = x[0]\nv1 = v0 * v0\nv2 = exp(v1)\ny[0] = v2 - (v0 - x[1])"
    assert text(kernel(body).body) == "v0 = x[0]\ny[0] = exp(v0 * v0) - (v0 - x[1])"


def test_a_load_is_not_moved_behind_a_store() -> None:
    body = "v0 = x[0]\nv1 = y[0]\nx[0] = v1\ny[0] = v0"
    assert text(kernel(body).body) == "v0 = x[0]\nx[0] = y[0]\ny[0] = v0"


def test_a_value_is_not_moved_behind_a_new_value_of_what_it_reads() -> None:
    body = "acc0 = f64(0)\nfor i0 in range(3):\n    v0 = acc0 + x[i0]\n    acc0 = f64(1)\n    y[i0] = v0"
    assert "v0 = acc0 + x[i0]\n    acc0 = f64(1.0)\n    y[i0] = v0" in text(kernel(body).body)


def test_parentheses_are_those_that_are_needed() -> None:
    for expression in (
        "x[0] - (x[1] - x[2])",
        "x[0] - x[1] - x[2]",
        "x[0] * (x[1] + x[2])",
        "x[0] / (x[1] * x[2])",
        "-(x[0] + x[1])",
        "-x[0] * x[1]",
        "select((x[0] < x[1]) & (x[1] < x[2]), x[0], -x[1])",
        "f64((x[0] == x[1]) == (x[1] == x[2]))",
    ):
        assert text(kernel(f"y[0] = {expression}").body) == f"y[0] = {expression}"


def test_the_text_reads_back() -> None:
    body = """
        total, rest = compensated_add(x[0], x[1], x[2])
        for b0 in range(0, 1000, 256):
            acc0 = f64(0)
            for i0 in range(b0, min(b0 + 256, 1000)):
                acc0 = accumulate(acc0, x[i0] * f64(-0.5))
            y[b0 // 256] = acc0
        i1 = 0
        while True:
            if (i1 & 3) == 3:
                if interrupted():
                    return
            if indices[0] <= 0:
                y[0] = f64(inf)
            elif indices[0] == 1:
                y[1] = total
            else:
                break
            i1 = i1 + 1
        for i2 in range(4, -1, -1):
            y[i2] = rest
    """
    once = kernel(body)
    again = parse_kernel(kernel_text(once), "k", [F64, F64, F64, I64, I64])
    assert plain_text(again) == plain_text(parse_kernel(kernel_text(again), "k", [F64, F64, F64, I64, I64]))
    assert kernel_text(again) == kernel_text(once)


def test_what_is_no_kernel_is_refused() -> None:
    with pytest.raises(OperandError, match="cast it first"):
        kernel("y[0] = 3")
    with pytest.raises(OperandError, match="no statement like"):
        kernel("del x")
    with pytest.raises(OperandError, match="no expression like"):
        kernel("y[0] = [x[0]]")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_sum_that_overflows_keeps_its_errors_finite():
    """The plain meaning, as native code has it: infinity less infinity is in neither part."""
    for total, value in ((1e308, 1e308), (1.0, np.inf), (-np.inf, 2.0)):
        assert compensated_add(np.float64(total), np.float64(0.5), np.float64(value)) == (total + value, 0.5)
    found = compensated_add(np.complex128(1e308 + 1j), np.complex128(0.5j), np.complex128(1e308 + 2j))
    assert found == (complex(np.inf, 3.0), 0.5j)
