"""Printed kernels are ordinary Numba functions, which with NumPy and Numba alone give the same numbers."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numba
import numpy as np
import pytest

from fnad.backends.cpu.compiler import compile_kernel
from fnad.backends.cpu.executor import plan
from fnad.cli.dump import Request, dump
from fnad.ir.parser import parse_program
from fnad.kernel.prelude import BY_KIND, DEFINITIONS, KNOWN
from fnad.kernel.python_source import kernel_text, module_text
from fnad.kernel.statements import Kernel
from fnad.scalar.operation import OperandError, Pointer
from fnad.scalar.operations import DTYPES, OPERATIONS, TABLE
from tests.backends.test_instructions import pairs, special
from tests.kernel_text import parse_kernel
from tests.test_stages import CASES, FUNCTIONS
from tests.together import some_of

Array = np.ndarray[Any, Any]
OF_FNAD = {
    name
    for name in OPERATIONS
    if name.startswith(
        (
            "philox",
            "random",
            "scipy",
            "trigamma",
            "i1_ratio",
            "gammainc",
            "exprel_slope",
            "exp_high",
            "exp_low",
            "muladd",
        )
    )
}
"""Random draws, functions of SciPy, slopes of them, and operations that Numba may round or split in another way."""

ARITIES = dict.fromkeys(BY_KIND, 2) | {
    **dict.fromkeys(
        ("add", "subtract", "multiply", "divide", "and", "or", "xor", "equal", "not_equal", "less", "less_equal"), 2
    ),
    **dict.fromkeys(("greater", "greater_equal", "strong_multiply", "minimum", "maximum", "fmin", "fmax"), 2),
    **dict.fromkeys(("arctan2", "hypot", "nextafter", "copysign", "make_complex", "accumulate", "min", "max"), 2),
    "sign": 1,
    "divide": 2,
    "select": 3,
}


@pytest.fixture(autouse=True)
def _without_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have Numba leave out LLVM's passes, which take half of the time."""
    monkeypatch.setattr(numba.core.config, "OPT", type(numba.core.config.OPT)(0))


def by_numba(kernel: Kernel) -> Any:
    """Return a printed kernel as Numba compiles it, without fnad."""
    names: dict[str, Any] = {}
    exec(module_text([kernel]), names)
    function = names[kernel.name]
    assert isinstance(function, numba.core.registry.CPUDispatcher)
    return function


def operands_of(name: str, dtype: str) -> list[Array]:
    arity = ARITIES.get(name, 1)
    if name == "select":
        left, right = pairs(dtype)
        return [np.arange(left.size) % 2 == 0, left, right]
    found = list(pairs(dtype)) if arity == 2 else [special(dtype)]
    if name == "ldexp":
        return [*found, np.arange(found[0].size) % 7 - 3]
    if np.dtype(dtype).kind == "c":  # at infinity and on branch cuts Numba's complex functions are not C's
        finite = np.logical_and.reduce([np.isfinite(operand) for operand in found])
        found = [operand[finite] for operand in found]
        found = found if arity == 2 else [operand[(operand.real != 0) & (operand.imag != 0)] for operand in found]
    if name == "power" and found[0].dtype.kind in "iu":
        found[1] = np.clip(found[1], 0, 100)
    return found


KINDS = ("b1", "i1 u8", "f4 f8", "c16")


def operands_and_result(place: int, dtypes: str) -> tuple[str, list[Array], np.dtype[Any]] | None:
    """Return operands of the operation at a place of the table, of one of these dtypes, and the dtype of its result.

    None if it has no such operands.
    """
    dtype = dtypes.split()[place % len(dtypes.split())]
    operands = operands_of(TABLE[place].name, dtype)
    try:
        result = TABLE[place].result(*(operand.dtype for operand in operands))
    except OperandError:
        return None
    assert isinstance(result, np.dtype)
    return dtype, operands, result


def cases(dtypes: str) -> list[tuple[str, list[Array], np.dtype[Any]]]:
    """Return the operations on operands of these dtypes, one after the other, with the dtypes of their results."""
    found: list[tuple[str, list[Array], np.dtype[Any]]] = []
    for place, operation in enumerate(TABLE):
        possible = [] if operation.name in OF_FNAD else [k for k in KINDS if operands_and_result(place, k)]
        if dtypes not in (possible if operation.name in BY_KIND else some_of(possible, operation.name)):
            continue
        dtype, operands, result = operands_and_result(place, dtypes)  # type: ignore[misc]
        if operation.name in DTYPES and np.dtype(dtype).kind in "fc" and DTYPES[operation.name].kind in "iu":
            least = 0 if operation.name == "u64" else -100
            operands = [operand[(np.abs(operand) < 100) & (operand.real >= least)] for operand in operands]
        found.append((operation.name, operands, result))
    return found


@pytest.mark.parametrize("dtypes", KINDS)
def test_numba_computes_each_operation_as_native_code(dtypes: str) -> None:
    """One kernel for all operations, with one loop for each size: Numba's front end takes long for both.

    Each operation is in the kernel of a kind of numbers, which is drawn, or in all if it has a form for each.
    """
    signs = {operation.name: operation.symbol for operation in TABLE}
    lines: defaultdict[int, list[str]] = defaultdict(list)
    arrays: list[tuple[str, Array]] = []
    for n, (name, operands, result) in enumerate(cases(dtypes)):
        inputs = [f"x{n}_{k}" for k in range(len(operands))]
        loads = ", ".join(f"{array}[i0]" for array in inputs)
        call = f"{name}({loads})"
        if (sign := signs[name]) is not None:
            call = f"{sign}{loads}" if ARITIES.get(name, 1) == 1 else f" {sign} ".join(loads.split(", "))
        lines[operands[0].size].append(f"        out{n}[i0] = {call}\n")
        arrays += [*zip(inputs, operands, strict=True), (f"out{n}", np.zeros(operands[0].size, result))]
    loops = "".join(f"    for i0 in range({size}):\n{''.join(body)}" for size, body in lines.items())
    source = f"def k({', '.join(name for name, _ in arrays)}):\n{loops}"
    kernel = parse_kernel(source, "k", [array.dtype for _, array in arrays])
    native = [array.copy() for _, array in arrays]
    compile_kernel(kernel).call(*native)
    ours = [array.copy() for _, array in arrays]
    by_numba(kernel)(*ours)
    names = {f"out{n}": name for n, (name, _, _) in enumerate(cases(dtypes))}
    for (name, _), found, wanted in zip(arrays, ours, native, strict=True):
        tolerance = 1e-5 if wanted.dtype == np.float32 else 1e-12
        np.testing.assert_allclose(found, wanted, rtol=tolerance, equal_nan=True, err_msg=names.get(name, name))


@pytest.mark.parametrize(("name", "types", "mode"), CASES)
def test_numba_computes_dumped_programs_as_native_code(name: str, types: str, mode: str) -> None:
    for text in dump(Request(f"{FUNCTIONS}:{name}", types, mode, None, "simplified")).split("\n\n"):
        check_program(text, types)


def check_program(text: str, types: str) -> None:
    """Compare Numba's and fnad's runs of the kernels of a program."""
    planned = plan(parse_program(text))
    buffers = (*planned.loops.inputs, *planned.loops.outputs)
    sizes = {buffer.name: buffer.aval.size for buffer in buffers} | {slot.name: slot.size for slot in planned.slots}
    rng, arrays = np.random.default_rng(0), dict[str, Array]()
    for kernel in planned.kernels.values():
        for parameter in kernel.parameters:
            assert isinstance(parameter.kind, Pointer)
            values = rng.uniform(0, 4, sizes.get(parameter.name, 2)).astype(parameter.kind.dtype)
            arrays.setdefault(parameter.name, values if parameter.name in sizes else np.zeros_like(values))
    ours = {name: array.copy() for name, array in arrays.items()}
    for kernel in planned.kernels.values():
        compile_kernel(kernel).call(*(arrays[parameter.name] for parameter in kernel.parameters))
        by_numba(kernel)(*(ours[parameter.name] for parameter in kernel.parameters))
    # A slope of tanh is exp(-2x) in its tail, which takes a rounding of x, up to 400 here, 800 times.
    tolerance = 1e-6 if "f32" in types else 1e-12
    for buffer in planned.loops.outputs:
        np.testing.assert_allclose(ours[buffer.name], arrays[buffer.name], rtol=tolerance)


def test_a_loop_over_a_span_is_one_for_numba() -> None:
    source = "def k(x, first, out):\n    for i in span(first[0], 5):\n        out[0] = out[0] + x[i]\n"
    kernel = parse_kernel(source, "k", [np.dtype(d) for d in ("f8", "i8", "f8")])
    assert "in span(first[0], 5):" in kernel_text(kernel)
    out = np.zeros(1)
    by_numba(kernel)(np.arange(6.0), np.array([3]), out)
    assert out[0] == 7


def test_what_has_no_form_without_fnad_is_named() -> None:
    source = "def k(keys, out):\n    out[0] = random_normal(keys[0], keys[1])\n"
    text = module_text([parse_kernel(source, "k", [np.dtype("u8"), np.dtype("f8")])])
    assert "# random_normal needs fnad" in text


def test_every_other_operation_has_a_form() -> None:
    spelled = {f"{name}{suffix}" for name, kinds in BY_KIND.items() for suffix in kinds.values()}
    written = {operation.name for operation in TABLE if operation.symbol is not None}
    assert {*OPERATIONS} - written - OF_FNAD - {"left_shift", "right_shift"} <= KNOWN  # of integers alone
    assert spelled <= {*DEFINITIONS}
