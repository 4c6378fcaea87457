"""The page docs/numpy_coverage.md, from the tables of calls that the tests run.

    python -m tests.numpy.coverage

Each call of the tables is traced, and the functions whose rules it meets are noted. What the tests check of a call
(`test_array_functions`, `test_derivatives_of_calls`) is then known of these functions:

    value           against NumPy's own
    forward         against central differences
    reverse         against forward mode
    second order    forward over forward against central differences, reverse over forward against it
    compiled        value, and gradient if any, in native code against the interpreter
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.polynomial as series
import optree
import scipy.linalg
import scipy.signal
import scipy.special

import fnad.numpy.series
import fnad.scipy.linalg
import fnad.scipy.signal
import fnad.scipy.special
import fnad.scipy.stats
from fnad.numpy.bodies import Body
from fnad.numpy.registry import RULES, WRITERS, Bound
from fnad.numpy.scipy_ufuncs import special_rule
from fnad.trace import dispatch, stand_ins, tracer
from fnad.trace.handle import Handle
from tests.numpy.against_numpy import traced
from tests.numpy.left_out import LEFT_OUT, NOTES
from tests.numpy.test_derivatives_of_calls import ALL, DIFFERENTIABLE

PAGE = Path(__file__).parents[2] / "docs" / "numpy_coverage.md"
MODULES: dict[str, ModuleType] = {
    "numpy": np,
    "numpy.linalg": np.linalg,
    "numpy.fft": np.fft,
    "numpy.emath": np.emath,
    **{
        f"numpy.polynomial.{module.__name__.rpartition('.')[2]}": module
        for module in (
            *(series.polynomial, series.chebyshev, series.legendre, series.laguerre, series.hermite, series.hermite_e),
        )
    },
    "scipy.special": scipy.special,
    "scipy.linalg": scipy.linalg,
    "scipy.signal": scipy.signal,
}
OURS: dict[str, ModuleType] = {
    "scipy.special": fnad.scipy.special,
    "scipy.linalg": fnad.scipy.linalg,
    "scipy.signal": fnad.scipy.signal,
}
"""Where there stands what SciPy cannot hand on."""

METHODS_OF_DISTRIBUTIONS = ("cdf", "entropy", "logcdf", "logpdf", "logpmf", "logsf", "pdf", "pmf", "sf")
APART = ("numpy.linalg", "numpy.fft")
CHECKED, CONSTANT, UNCHECKED = "✓", "0", ""
COLUMNS = ("function", "value", "forward", "reverse", "second order", "compiled", "batched", "notes")


@dataclass
class Met:
    """What was checked of a rule: its value, all of it; and whether a result can carry a derivative."""

    value: bool = False
    derivative: bool = False
    has_derivative: bool = False


def public(module: ModuleType) -> dict[str, Any]:
    """Return the functions of a module by name."""
    names = getattr(module, "__all__", dir(module))
    found = {name: getattr(module, name) for name in names if not name.startswith("_")}
    return {name: f for name, f in sorted(found.items()) if callable(f) and not isinstance(f, type)}


def rule_of(module: str, name: str) -> Any:
    """Return the rule of a function, if it has one that is not the body which every function of SciPy has."""
    ours, theirs = (getattr(namespace, name) for namespace in (OURS.get(module, MODULES[module]), MODULES[module]))
    is_own = ours is theirs or name in vars(OURS[module])
    return rule_or_body_of(module, name) if is_own else None


def rule_or_body_of(module: str, name: str) -> Any:
    """Return what traced values follow in a function."""
    function = getattr(OURS.get(module, MODULES[module]), name)
    known = RULES.get(unwrapped(function)) or WRITERS.get(function)
    return known or (special_rule(function) if isinstance(function, np.ufunc) else None)


def unwrapped(function: Any) -> Any:
    """Return the function with a rule in what wraps it, or what is wrapped."""
    return inspect.unwrap(function, stop=lambda inner: inner in RULES)


def unbound(rule: Any) -> Any:
    """Return the rule that several names of a function have, each as it is called."""
    return rule.rule if isinstance(rule, Bound) else rule


# ---- what the tables meet --------------------------------------------------------------------------------------------


@contextmanager
def noting(note: Callable[[Any, Any], None]) -> Iterator[None]:
    """Tell of every rule that the user's code calls, with its result."""
    bodies: list[Any] = []  # what NumPy's bodies call in their turn is not the user's

    def noted(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(rule: Any, args: Any, kwargs: Any) -> Any:
            is_body = isinstance(rule, Body)
            bodies.extend([rule] * is_body)
            try:
                result = original(rule, args, kwargs)
            finally:
                del bodies[len(bodies) - is_body :]
            if not bodies:
                note(rule, result)
            return result

        return call

    call = noted(dispatch.call)
    with (
        patch.object(dispatch, "call", call),
        patch.object(tracer, "call", call),
        patch.object(stand_ins, "call", call),
        patch.object(dispatch, "call_body", noted(dispatch.call_body)),
    ):
        yield


def met() -> dict[Any, Met]:
    """Return what the tables check of each rule."""
    found: dict[Any, Met] = {}
    for name, case in ALL.items():
        for rule, has_derivative in rules_met(case):
            known = found.setdefault(unbound(rule), Met())
            known.value = True
            known.has_derivative |= has_derivative
            known.derivative |= has_derivative and name in DIFFERENTIABLE
    return found


def rules_met(case: Any) -> list[tuple[Any, bool]]:
    """Return the rules that a call meets, and whether they have results that can carry a derivative."""
    function, *xs = case
    rules: list[tuple[Any, bool]] = []

    def note(rule: Any, result: Any) -> None:
        rules.append((rule, is_inexact(result)))

    with noting(note), warnings.catch_warnings(action="ignore"):
        traced(function, *xs)
    return rules


def is_inexact(result: Any) -> bool:
    """Say whether there is a number with a derivative in a result."""
    return any(isinstance(leaf, Handle) and leaf.aval.dtype.kind in "fc" for leaf in optree.tree_leaves(result))


# ---- the page --------------------------------------------------------------------------------------------------------


def marks(known: Met | None) -> tuple[str, ...]:
    """Return the marks of a function: value, forward, reverse, second order, compiled, batched."""
    if known is None or not known.value:
        return (UNCHECKED,) * 6
    derivative = CHECKED if known.derivative else UNCHECKED if known.has_derivative else CONSTANT
    return (CHECKED, derivative, derivative, derivative, CHECKED, UNCHECKED)


@cache
def rows() -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the marks of every function that has a rule, by module and name."""
    known = met()
    table = {
        module: {
            name: rule
            for name in public(namespace)
            if (rule := rule_or_body_of(module, name)) and (rule_of(module, name) or unbound(rule) in known)
        }
        for module, namespace in MODULES.items()
    }
    table["scipy.stats"] = dict(methods_of_distributions())
    table["numpy.ndarray"] = {
        name: rule_or_itself(f) for name, f in sorted((tracer.FUNCTIONS | tracer.METHODS).items())
    }
    table["methods of ufuncs"] = dict(sorted(ufunc_methods()))
    return {
        module: {name: marks(known.get(unbound(rule))) for name, rule in rules.items()}
        for module, rules in table.items()
    }


def rule_or_itself(function: Any) -> Any:
    """Return the rule of what a method calls, which may be a rule by itself."""
    return RULES.get(function) or WRITERS.get(function, function)


def methods_of_distributions() -> Iterable[tuple[str, Any]]:
    """Yield the rules of the methods of distributions by name."""
    for name in fnad.scipy.stats.__all__:
        distribution = getattr(fnad.scipy.stats, name)
        for method in METHODS_OF_DISTRIBUTIONS:
            function = getattr(distribution, method, None)
            if isinstance(function, partial) and (rule := RULES.get(unwrapped(function.func))):
                yield f"{name}.{method}", rule


def ufunc_methods() -> Iterable[tuple[str, Any]]:
    """Yield the rules of the methods of NumPy's ufuncs by name."""
    for key, rule in (RULES | WRITERS).items():
        if isinstance(key, tuple) and getattr(np, key[0].__name__, None) is key[0]:
            yield f"{key[0].__name__}.{key[1]}", rule


def is_complete(row: tuple[str, ...]) -> bool:
    """Say whether all is checked but batching."""
    return all(row[:-1])


def page() -> str:
    """Return the text of the page."""
    table = rows()
    sections = [line for module, functions in table.items() for line in section(module, functions)]
    return "\n".join([*heading(table), *sections, *omitted()])


def heading(table: dict[str, dict[str, tuple[str, ...]]]) -> Iterable[str]:
    """Yield the beginning of the page, with the totals."""
    yield "# NumPy coverage"
    yield ""
    yield "Generated by `python -m tests.numpy.coverage` from the tables of calls that the tests run: a ✓ marks what"
    yield "they check. A `0` is a derivative that is zero everywhere, since the results are integers or bools."
    yield ""
    yield "A name counts once in each namespace in which NumPy or SciPy has it, aliases (`acos`) included."
    yield "It is complete if its value, both modes, the second order and native code are checked; errors do not count."
    yield "Ufuncs are among the functions of `numpy`. The first line excludes `numpy.linalg`, `numpy.fft`,"
    yield f"methods and SciPy; without aliases {len(first_names(table))} functions are complete."
    yield ""
    yield "| | functions with a rule | complete: all checked | of these with derivatives other than 0 |"
    yield "|-|-|-|-|"
    yield totals("**public functions of NumPy**", [row for module in of_numpy() for row in table[module].values()])
    for module, functions in table.items():
        yield totals(module, functions.values())
    yield totals("all", [row for functions in table.values() for row in functions.values()])
    yield ""


def of_numpy() -> list[str]:
    """Return the modules of NumPy's that are counted together."""
    return [module for module in MODULES if module.startswith("numpy") and module not in APART]


def first_names(table: dict[str, dict[str, tuple[str, ...]]]) -> set[Any]:
    """Return the functions of NumPy's that are complete."""
    complete = [(module, name) for module in of_numpy() for name, row in table[module].items() if is_complete(row)]
    return {getattr(MODULES[module], name) for module, name in complete}


def totals(name: str, of: Collection[tuple[str, ...]]) -> str:
    """Return the line that counts the functions of a module."""
    complete = list(filter(is_complete, of))
    return f"| {name} | {len(of)} | {len(complete)} | {sum(CONSTANT not in row for row in complete)} |"


def section(module: str, functions: dict[str, tuple[str, ...]]) -> Iterable[str]:
    """Yield the table of a module."""
    yield f"## {module}"
    yield ""
    yield f"| {' | '.join(COLUMNS)} |"
    yield f"|{'-|' * len(COLUMNS)}"
    for name, row in functions.items():
        yield f"| {' | '.join([f'`{name}`', *row, NOTES.get(name, '')])} |"
    yield ""


def omitted() -> Iterable[str]:
    """Yield the functions left out, with the reason."""
    yield "## Left out"
    yield ""
    yield "On untraced arguments these are NumPy's own, also while a trace runs."
    yield ""
    for reason, names in LEFT_OUT.items():
        yield f"- {reason}: {listed(names)}"
    without = [name for name in public(scipy.special) if not rule_of("scipy.special", name)]
    yield f"- in `scipy.special`, without a formula for a derivative or not of numbers: {listed(without)}"
    yield ""


def listed(names: Iterable[str]) -> str:
    """Return names in their order, as code."""
    return ", ".join(f"`{name}`" for name in sorted(names))


if __name__ == "__main__":
    PAGE.write_text(page())
