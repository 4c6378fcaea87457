"""`fnad ops`: the primitives, from their declarations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from difflib import get_close_matches
from importlib import import_module
from typing import Any, cast

import numpy as np

import fnad.ops as _  # noqa: F401  registers the primitives
from fnad.api.functions.explain import explain
from fnad.api.inspect.tables import columns
from fnad.cli.usage import UsageError
from fnad.ir.builder import trace
from fnad.ir.constant import static_text
from fnad.ir.primitive import PRIMITIVES, NoFormula, NonDifferentiable, Partials, Primitive, Sample, Unknown
from fnad.ir.program import Program
from fnad.ir.symbol import Symbol
from fnad.ir.types import DTYPES, F64, Dtype, aval_of, is_inexact
from fnad.transforms.differentiation import joint, jvp
from fnad.transforms.pipeline import simplify

SHOWN = 16
"""The most samples listed."""

LISTED = 8
"""The most primitives suggested."""

KINDS = {"b": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex"}


def list_primitives() -> str:
    """A table with a line for each primitive."""
    rows = [
        (p.name, type(p.derivative).__name__, type(p.lower).__name__, _summary(_dtypes(p)), p.doc)
        for p in PRIMITIVES.values()
    ]
    return columns([("name", "derivative", "lowering", "dtypes", "meaning"), *rows])


def describe_primitive(name: str) -> str:
    """The declaration of a primitive, and the derivatives that follow from it; raises `UsageError`."""
    primitive = PRIMITIVES.get(name)
    if primitive is None:
        raise UsageError(f"there is no primitive {name}; {_suggestion(name)}")
    return "\n".join(_description(primitive))


def _description(primitive: Primitive) -> Iterator[str]:
    yield f"{primitive.name}: {primitive.doc}"
    yield ""
    yield columns(
        [
            ("derivative", _record(primitive.derivative)),
            ("lowering", _record(primitive.lower)),
            ("axes", _record(primitive.axes)),
            ("dtypes", " ".join(name for name, dtype in DTYPES.items() if dtype in _dtypes(primitive))),
        ]
    )
    yield "\nsamples"
    yield from (f"  {line}" for line in _sample_lines(primitive))
    yield from _derivatives(primitive)


def _record(record: object) -> str:
    """The kind of a derivative, a lowering or an axis relation, with its plain data."""
    names: tuple[str, ...] = getattr(record, "_fields", ())
    values = [(name, getattr(record, name)) for name in names]
    plain = [f"{name}={value!r}" for name, value in values if _is_plain(value)]
    return " ".join([type(record).__name__, *plain])


def _is_plain(value: object) -> bool:
    parts = cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,)
    return all(isinstance(part, str | int) for part in parts)


# ---- names that are no primitives --------------------------------------------------------------------------------

NAMESPACES = {
    "np": "numpy",
    "np.linalg": "numpy.linalg",
    "np.fft": "numpy.fft",
    "scipy.special": "scipy.special",
    "fnad.nn": "fnad.nn",
}

CHOOSING = [np.ones(3) > 0, np.ones(3), np.zeros(3)]
PROBES = [[2 * np.eye(3)], [2 * np.eye(3)] * 2, [np.ones(3)], [np.ones(3)] * 2]
"""Arguments that most functions take some of."""

OTHER_PROBES = {"np.where": [CHOOSING], "np.clip": [[np.ones(3)] * 3], "np.interp": [[np.ones(3)] * 3]}
"""Those of functions that mean something else with fewer, or take none of these."""

MEANT = {
    "cond is fnad.cond, select is np.where, and Python's if is traced along the branch it takes": {
        *("branch", "branches", "branching", "case", "conditional", "if", "ifelse", "switch", "ternary"),
    },
    "scan is fnad.scan, while_loop is fnad.while_loop, and Python's loops are traced step by step": {
        *("for", "foreach", "foriloop", "iterate", "iteration", "loop", "loops", "repeat_until"),
    },
}
"""The answers for words of control flow."""


def _suggestion(name: str) -> str:
    """The parts of a function of this name, or the primitives that mention it or are nearly spelt like it."""
    functions, name = _functions(), name.rpartition(".")[2]
    said = next((text for text, words in MEANT.items() if name.lower() in words), None)
    if said is not None:
        return said
    meant = [known for known in PRIMITIVES if len(known) > 2 and name.startswith(known)]
    meant += [p.name for p in PRIMITIVES.values() if name.lower() in f"{p.name} {p.doc}".lower()]
    near = [name] if name in functions or meant else get_close_matches(name, [*PRIMITIVES, *functions], 1, 0.75)
    if near and near[0] in functions and (near[0] == name or near[0] not in PRIMITIVES):
        title, function = functions[near[0]]
        made_of = ", ".join(_primitives_of(title, function))
        return f"{title} is {f'made of {made_of}' if made_of else 'traced: fnad dump shows what a call is'}"
    few = sorted({*meant} or near, key=lambda known: (len(known), known))[:LISTED]
    return f"is it {'one of ' * (len(few) > 1)}{', '.join(few)}?" if few else "fnad ops lists all there are"


def _functions() -> dict[str, tuple[str, Callable[..., Any]]]:
    """The functions of NumPy, SciPy and fnad that may be meant, with what they are called there."""
    found: dict[str, tuple[str, Callable[..., Any]]] = {}
    for prefix, module in NAMESPACES.items():
        for name, function in vars(import_module(module)).items():
            if callable(function) and not isinstance(function, type) and not name.startswith("_"):
                found.setdefault(name, (f"{prefix}.{name}", function))
    return found


def _primitives_of(title: str, function: Callable[..., Any]) -> tuple[str, ...]:
    """The primitives that a traced call of a function consists of; none where it takes no argument tried here."""
    for probe in OTHER_PROBES.get(title, PROBES):
        with suppress(Exception):
            return tuple(explain(lambda *args: function(*args), *probe).operations)  # noqa: PLW0108  it has a signature
    return ()


# ---- samples -----------------------------------------------------------------------------------------------------


def _dtypes(primitive: Primitive) -> set[Dtype]:
    """The dtypes of the operands over all samples; of the results if there are no operands."""
    programs = [_program(primitive, sample) for sample in primitive.samples()]
    return {aval.dtype for program in programs for aval in program.in_avals or program.out_avals}


def _summary(dtypes: Iterable[Dtype]) -> str:
    """The dtypes, with one word for a kind that occurs in all its sizes."""
    found = set(dtypes)
    whole = {kind for kind in KINDS if found >= {dtype for dtype in DTYPES.values() if dtype.kind == kind}}
    words = [KINDS[dtype.kind] if dtype.kind in whole else name for name, dtype in DTYPES.items() if dtype in found]
    return " ".join(dict.fromkeys(words))


def _program(primitive: Primitive, sample: Sample) -> Program:
    def apply(*operands: Symbol) -> list[Symbol]:
        results = primitive(*operands, **sample.params, regions=sample.regions)
        return [*results] if isinstance(results, tuple) else [results]

    return trace(apply, *[aval_of(np.asarray(operand)) for operand in sample.operands], name=primitive.name)


def _sample_lines(primitive: Primitive) -> list[str]:
    lines = list(dict.fromkeys(_sample_line(primitive, sample) for sample in primitive.samples()))
    return lines if len(lines) <= SHOWN else [*lines[:SHOWN], f"… and {len(lines) - SHOWN} more"]


def _sample_line(primitive: Primitive, sample: Sample) -> str:
    program = _program(primitive, sample)
    results, operands = (", ".join(map(str, avals)) for avals in (program.out_avals, program.in_avals))
    params = [f"{name}={static_text(value)}" for name, value in sample.params.items()]
    return " ".join([f"{results} = {primitive.name}({operands})", *params])


# ---- derivatives -------------------------------------------------------------------------------------------------


def _derivatives(primitive: Primitive) -> Iterator[str]:
    """The forward-mode and reverse-mode programs for a sample, preferably of f64."""
    programs = [_program(primitive, sample) for sample in primitive.samples()]
    smooth = [program for program in programs if any(_operands_with_derivative(primitive, program))]
    if smooth:
        program = next((p for p in smooth if F64 in {aval.dtype for aval in p.in_avals}), smooth[0])
        wrt = _operands_with_derivative(primitive, program)
        yield f"\nforward\n{simplify(jvp(program, wrt))}"
        yield f"\nreverse\n{simplify(joint(program, wrt))}"


def _operands_with_derivative(primitive: Primitive, program: Program) -> list[bool]:
    """For each operand, whether there is a derivative with respect to it; some functions lack a formula for some."""
    if isinstance(primitive.derivative, (NonDifferentiable, Unknown)):
        return [False] * len(program.inputs)
    partials = primitive.derivative.functions if isinstance(primitive.derivative, Partials) else ()
    unknown = {i for i, partial in enumerate(partials) if isinstance(partial, NoFormula)}
    return [is_inexact(aval.dtype) and i not in unknown for i, aval in enumerate(program.in_avals)]
