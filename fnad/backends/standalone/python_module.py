"""A program as a Python module that needs NumPy and Numba alone: its kernels, and functions that run them.

`name(*arguments)` returns new arrays and numbers, `name_into(*arguments, *results)` writes into arrays that are given.
With `NUMBA_DISABLE_JIT=1` the module runs in CPython, where a debugger can step through it.
"""

from __future__ import annotations

import numpy as np

from fnad.backends.standalone.program import Parameter, Standalone
from fnad.errors import ExportError
from fnad.kernel.prelude import missing
from fnad.kernel.python_source import kernel_text, module_text
from fnad.kernel.statements import STATUS_SIZE
from fnad.scalar.operation import Dtype


def source(program: Standalone) -> str:
    """The Python source of a program."""
    kernels = program.kernels
    if words := missing("\n".join(map(kernel_text, kernels))):
        raise ExportError(f"Numba has no {', '.join(words)}", remedy="export an object file instead")
    constants = [_constant(name, array) for name, array in program.captured.items()]
    return (
        "\n\n".join([module_text(kernels).rstrip("\n"), *constants, f"\n{_into(program)}", f"\n{_returning(program)}"])
        + "\n"
    )


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
    lines += [line for parameter in program.parameters for line in _checked(parameter)]
    lines += [f"    flat_{parameter.buffer} = {_flat(parameter, program)}" for parameter in program.parameters]
    slots = program.plan.slots
    lines += [f"    memory_{slot.name} = np.empty({slot.size}, {dtype_text(slot.dtype)})" for slot in slots]
    lines += [f"    status = np.zeros({STATUS_SIZE}, np.int64)", "    status[2] = 1"]
    names = {parameter.buffer: f"flat_{parameter.buffer}" for parameter in program.parameters}
    names |= {slot.name: f"memory_{slot.name}" for slot in slots}
    for kernel in program.kernels:
        lines.append(f"    {kernel.name}({', '.join(names.get(p.name, p.name) for p in kernel.parameters)})")
        lines += _raised(program)
    return "\n".join(lines)


def _checked(parameter: Parameter) -> list[str]:
    """The check of an array's shape; a number has none."""
    shape = parameter.aval.shape
    if shape == ():
        return []
    return [
        f"    if {parameter.name}.shape != {shape}:",
        f"        raise ValueError('{parameter.name} does not have the shape {shape}')",
    ]


def _flat(parameter: Parameter, program: Standalone) -> str:
    """A flat array in the place of an argument or a result."""
    if parameter.aval.shape != ():
        given = parameter.name if parameter in program.results else f"np.ascontiguousarray({parameter.name})"
        return f"{given}.reshape({parameter.aval.size})"
    if parameter in program.results:
        return f"{parameter.name}.reshape(1)"
    return f"np.full(1, {parameter.name}, {dtype_text(parameter.aval.dtype)})"


def _raised(program: Standalone) -> list[str]:
    """The errors in which a run may end."""
    if not program.faults:
        return []
    lines: list[str] = []
    for n, fault in enumerate(program.faults, 1):
        lines += [f"    if status[0] == {n}:", f"        raise ValueError({fault.error.what!r})"]
    return lines


def _returning(program: Standalone) -> str:
    """The function that returns new arrays."""
    given = [parameter.name for parameter in program.arguments]
    made = [parameter.name for parameter in program.results]
    lines = ["@njit(error_model='numpy')", f"def {program.name}({', '.join(given)}):"]
    lines += [f"    {p.name} = np.empty({p.aval.shape}, {dtype_text(p.aval.dtype)})" for p in program.results]
    returned = [f"{p.name}[()]" if p.aval.shape == () else p.name for p in program.results]
    lines += [f"    {program.name}_into({', '.join([*given, *made])})", f"    return {', '.join(returned)}"]
    return "\n".join(lines)
