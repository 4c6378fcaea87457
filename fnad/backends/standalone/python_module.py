"""A program as a Python module that needs NumPy and Numba alone: its kernels, and functions that run them.

`name(*arguments)` returns new arrays and numbers, `name_into(*arguments, *results)` writes into arrays that are given.
With `NUMBA_DISABLE_JIT=1` the module runs in CPython, where a debugger can step through it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from fnad.backends.standalone.program import Parameter, Standalone, Variant
from fnad.errors import ExportError
from fnad.ir.types import is_inexact
from fnad.kernel.prelude import missing
from fnad.kernel.python_source import kernel_text, module_text
from fnad.kernel.statements import STATUS_SIZE, Kernel
from fnad.scalar.operation import Dtype


def source(program: Standalone) -> str:
    """The Python source of a program."""
    kernels = [kernel for variant in program.variants for kernel in _kernels(program, variant)]
    if words := missing("\n".join(map(kernel_text, kernels))):
        raise ExportError(f"Numba has no {', '.join(words)}", remedy="export an object file instead")
    constants = [_constant(f"{v.name}_{name}", array) for v in program.variants for name, array in v.captured.items()]
    parts = [module_text(kernels).rstrip("\n"), *constants, f"\n{OVERLAP}", _into(program), f"\n{_returning(program)}"]
    return "\n\n".join(parts) + "\n"


def _kernels(program: Standalone, variant: Variant) -> list[Kernel]:
    """The kernels of a variant, with names of their own."""
    if not program.sizes:
        return variant.kernels
    return [replace(kernel, name=f"{variant.name}_{kernel.name}") for kernel in variant.kernels]


def _constant(name: str, array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> str:
    values = ", ".join(map(_number, array.reshape(-1).tolist()))
    return f"{name} = np.array([{values}], {dtype_text(array.dtype)})"


def _number(value: complex) -> str:
    if isinstance(value, complex):
        return f"complex({_number(value.real)}, {_number(value.imag)})"
    return repr(value) if np.isfinite(value) else f"float('{value}')"


def dtype_text(dtype: Dtype) -> str:
    """A dtype in source code."""
    return f"np.{dtype.name if dtype != np.bool_ else 'bool_'}"


def _into(program: Standalone) -> str:
    """The function that writes into given arrays."""
    names = [parameter.name for parameter in program.parameters]
    lines = ["@njit(error_model='numpy')", f"def {program.name}_into({', '.join(names)}):"]
    lines += [f"    {line}" for line in size_lines(program, lambda parameter: parameter.name)]
    if program.sizes:
        lines.append(f"    sizes = np.array([{', '.join(program.sizes)}])")
    lines += [f"    {line}" for p in program.arguments if p.aval.shape != () for line in shape_check(p.name, p)]
    lines += [f"    {line}" for line in result_checks(program, lambda parameter: parameter.name)]
    for given in program.arguments:
        if given.aval.shape != ():
            lines.append(f"    if {shared_with_results(program, given, lambda parameter: parameter.name)}:")
            lines.append(f"        {given.name} = {given.name}.copy()")
    lines += [f"    flat_{parameter.buffer} = {_flat(parameter, program)}" for parameter in program.parameters]
    numbers = [p for p in program.arguments if p.aval.shape == ()]
    lines += [f"    {line}" for p in numbers for line in number_check(f"flat_{p.buffer}[0]", p.name, p)]
    bodies = [_run(program, variant) for variant in program.variants]
    if not program.sizes:
        return "\n".join([*lines, *(f"    {line}" for line in bodies[0])])
    for n, (variant, body) in enumerate(zip(program.variants, bodies, strict=True)):
        bounds = [f"{low} <= {size} <= {high}" for size, (low, high) in variant.intervals.items()]
        lines.append(f"    {'el' * (n > 0)}if {' and '.join(bounds)}:")
        lines += [f"        {line}" for line in body]
    return "\n".join([*lines, "    else:", f"        raise ValueError({program.missing!r})"])


def _run(program: Standalone, variant: Variant) -> list[str]:
    """The calls of the kernels of a variant."""
    slots = variant.plan.slots
    lines = [f"memory_{slot.name} = np.empty({slot.size}, {dtype_text(slot.dtype)})" for slot in slots]
    lines += [f"status = np.zeros({STATUS_SIZE}, np.int64)", "status[2] = 1"]
    names = {parameter.buffer: f"flat_{parameter.buffer}" for parameter in program.parameters}
    names |= {slot.name: f"memory_{slot.name}" for slot in slots}
    names |= {buffer: f"{variant.name}_{buffer}" for buffer in variant.captured}
    for kernel in _kernels(program, variant):
        lines.append(f"{kernel.name}({', '.join(names.get(p.name, p.name) for p in kernel.parameters)})")
        for n, fault in enumerate(variant.faults, 1):
            lines += [f"if status[0] == {n}:", f"    raise ValueError({fault.error.what!r})"]
    return lines


def size_lines(program: Standalone, variable: Callable[[Parameter], str]) -> list[str]:
    """The lines that read the sizes, if the program is for all sizes."""
    axes = [(size, *program.axis_of(size)) for size in program.sizes]
    return [f"{size} = {variable(parameter)}.shape[{axis}]" for size, parameter, axis in axes]


def shape_check(variable: str, parameter: Parameter) -> list[str]:
    """The check that an array has the shape of a parameter."""
    message = f"{parameter.name} does not have the shape {parameter.aval.shape} that was exported"
    return [f"if {variable}.shape != {parameter.aval.shape}:", f"    raise ValueError('{message}')"]


def number_check(variable: str, given: str, parameter: Parameter) -> list[str]:
    """The check that a conversion to an integer or a bool has kept the value; floats may be rounded."""
    if is_inexact(parameter.aval.dtype):
        return []
    message = f"{parameter.name} was exported as {parameter.aval}, which does not have this value"
    return [f"if {variable} != {given}:", f"    raise ValueError('{message}')"]


def result_checks(program: Standalone, variable: Callable[[Parameter], str]) -> list[str]:
    """The checks of arrays for results."""
    lines: list[str] = []
    for n, result in enumerate(program.results):
        name = variable(result)
        message = f"{result.name} is not contiguous in C order"
        lines += shape_check(name, result)
        lines += [f"if not {name}.flags.c_contiguous:", f"    raise ValueError('{message}')"]
        for other in program.results[:n]:
            message = f"{other.name} and {result.name} share memory"
            lines += [f"if fnad_overlap({variable(other)}, {name}):", f"    raise ValueError('{message}')"]
    return lines


def shared_with_results(program: Standalone, given: Parameter, variable: Callable[[Parameter], str]) -> str:
    """The condition that an argument shares memory with a result, as source code."""
    return " or ".join(f"fnad_overlap({variable(given)}, {variable(result)})" for result in program.results)


OVERLAP = """\
@njit
def fnad_overlap(a, b):
    first, second = a.ctypes.data, b.ctypes.data
    return first < second + b.nbytes and second < first + a.nbytes
"""
"""The function that is true if two contiguous arrays share memory."""


def _flat(parameter: Parameter, program: Standalone) -> str:
    """A flat array in the place of an argument or a result."""
    if parameter.aval.shape != ():
        flat = f"reshape({parameter.aval.size})" if parameter in program.results else "ravel()"
        return f"{parameter.name}.{flat}"
    if parameter in program.results:
        return f"{parameter.name}.reshape(1)"
    return f"np.full(1, {parameter.name}, {dtype_text(parameter.aval.dtype)})"


def _returning(program: Standalone) -> str:
    """The function that returns new arrays."""
    given = [parameter.name for parameter in program.arguments]
    made = [parameter.name for parameter in program.results]
    lines = ["@njit(error_model='numpy')", f"def {program.name}({', '.join(given)}):"]
    lines += [f"    {line}" for line in size_lines(program, lambda parameter: parameter.name)]
    lines += [f"    {p.name} = np.empty({p.aval.shape}, {dtype_text(p.aval.dtype)})" for p in program.results]
    returned = [f"{p.name}[()]" if p.aval.shape == () else p.name for p in program.results]
    lines += [f"    {program.name}_into({', '.join([*given, *made])})", f"    return {', '.join(returned)}"]
    return "\n".join(lines)
