"""Functions of other packages, unchanged, on fnad: values and derivatives beside those of differences.

    pip install lmfit statsmodels filterpy colour-science numpy-financial quantecon scikit-learn astropy scikit-image
    pip install empyrical-reloaded control fluids ht chemicals PyPortfolioOpt properscoring pvlib
    pip install transforms3d pyquaternion AHRS PsychroLib iapws HydroErr vollib tmm seawater scikit-fuzzy
    pip install haversine geopy PyAstronomy pytransform3d
    python examples/clients/foreign_code.py [package ...] [--write docs/foreign_code.md]

Each function of foreign_functions.py is differentiated at two points, without and with `jit`. What is compiled at the
first point is run at the second, so that anything taken for constant shows. The truth are central differences
extrapolated to step 0 (Richardson), of the function as NumPy runs it. One function's numbers differ from these:
PsychroLib's bisection to 0.001 K is a staircase to differences, and its derivative is that of the last step.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import warnings
from _thread import interrupt_main
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import optree
from foreign_functions import PACKAGES

import fnad

Function = Callable[..., Any]
SECONDS = 60.0


class Outcome(NamedTuple):
    """A line of the table."""

    package: str
    function: str
    plain: str
    jit: str
    reason: str


# ---- the truth -------------------------------------------------------------------------------------------------------


def numbers(value: Any) -> list[np.ndarray]:
    """The arrays of floats in a result, in order; what else it has is left out."""
    return [np.asarray(leaf) for leaf in optree.tree_leaves(value) if has_derivative(leaf)]


def has_derivative(leaf: Any) -> bool:
    """Whether there are floats in it."""
    return np.asarray(leaf).dtype.kind in "fc"


def weighted(value: Any) -> Any:
    """One number of all numbers of a result, in which each has a weight of its own."""
    return sum(float(np.sum(np.real(array) * weights_of(array))) for array in numbers(value))


def weights_of(array: Any) -> Any:
    """Weights of no symmetry that NumPy would not change."""
    return np.cos(1.0 + np.arange(np.size(array))).reshape(np.shape(array))


def shifted(args: Sequence[Any], i: int, at: tuple[int, ...], by: float) -> list[Any]:
    """The arguments with one number of the i-th moved."""
    moved = np.array(args[i], float)
    moved[at] += by
    return [*args[:i], moved if np.ndim(args[i]) else float(moved), *args[i + 1 :]]


def slope(f: Function, args: Sequence[Any], i: int, at: tuple[int, ...]) -> tuple[float, float]:
    """The derivative of the weighted result in one number, and how far it may be off, by Ridders' method."""
    x = np.abs(np.asarray(args[i]))
    h = 0.02 * (max(float(x[at]), 0.1 * float(np.max(x))) or 1.0)
    table: list[list[float]] = []
    best, error = 0.0, np.inf
    rounding = 1e-15 * sum(float(np.sum(np.abs(array))) for array in numbers(f(*args)))
    for row in range(9):
        step = h * 0.5**row
        difference = weighted(f(*shifted(args, i, at, step))) - weighted(f(*shifted(args, i, at, -step)))
        table.append([difference / (2 * step)])
        for k in range(row):
            table[row].append(table[row][k] + (table[row][k] - table[row - 1][k]) / (4.0 ** (k + 1) - 1))
            doubt = max(abs(table[row][k + 1] - table[row][k]), abs(table[row][k + 1] - table[row - 1][k]))
            doubt = max(doubt, rounding / step)
            if doubt < error:
                best, error = table[row][k + 1], doubt
    return best, error


def floats(args: Sequence[Any]) -> list[int]:
    """The positions of the arguments that are differentiated."""
    return [i for i, arg in enumerate(args) if np.asarray(arg, object if arg is None else None).dtype.kind == "f"]


def differences(f: Function, args: Sequence[Any]) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each argument of floats the derivatives and their doubts."""
    found = []
    for i in floats(args):
        both = np.array([slope(f, args, i, at) for at in np.ndindex(np.shape(args[i]))]).reshape(*np.shape(args[i]), 2)
        found.append((both[..., 0], both[..., 1]))
    return found


# ---- fnad ------------------------------------------------------------------------------------------------------------


def with_derivatives(f: Function, places: Sequence[int], args: Sequence[Any]) -> Function:
    """The function of its floats that returns its result and the derivatives of the weighted result."""
    keeps = [has_derivative(leaf) for leaf in optree.tree_leaves(f(*args))]
    rest = [None if i in places else arg for i, arg in enumerate(args)]

    def of_floats(*given: Any) -> Any:
        moved = dict(zip(places, given, strict=True))
        value = f(*[moved.get(i, arg) for i, arg in enumerate(rest)])
        return [leaf for leaf, kept in zip(optree.tree_leaves(value), keeps, strict=True) if kept]

    def both(*given: Any) -> Any:
        value, pullback = fnad.vjp(of_floats, *given)
        return value, pullback([weights_of(leaf) + (0j if np.iscomplexobj(leaf) else 0.0) for leaf in value])

    return both


def compare(found: Any, f: Function, args: Sequence[Any], truth: Any) -> str:
    """'right', or what is wrong."""
    value, derivatives = found
    for got, wanted in zip(value, numbers(f(*args)), strict=True):
        if not np.allclose(got, wanted, rtol=1e-9, atol=1e-12, equal_nan=True):
            return f"WRONG value {got!r}, not {wanted!r}"
    for i, got, (wanted, doubt) in zip(floats(args), derivatives, truth, strict=True):
        scale = max(
            float(np.max(np.abs(wanted), initial=0.0)), 1e-9 * sum(np.sum(np.abs(one)) for one in numbers(value))
        )
        allowed = 1e-6 * np.abs(wanted) + 1e-7 * scale + 10 * doubt
        if np.any(doubt > 1e-3 * scale):
            return f"no truth: differences in argument {i} do not settle"
        if not np.all(np.abs(got - wanted) <= allowed):
            return f"WRONG derivative in argument {i}: {got!r}, not {wanted!r}"
    return "right"


def elsewhere(args: Sequence[Any]) -> list[Any]:
    """A second point, not far from the first."""
    return [arg * 1.01 if i in floats(args) else arg for i, arg in enumerate(args)]


def attempt(
    transform: Function, f: Function, points: Sequence[Sequence[Any]], truths: Sequence[Any]
) -> tuple[str, str]:
    """How a transform fares at all points: a word, and the reason if it is not 'right'."""
    args = points[0]
    places = floats(args)
    run = transform(with_derivatives(f, places, args))
    timer = threading.Timer(SECONDS, interrupt_main)
    timer.start()
    try:
        for point, truth in zip(points, truths, strict=True):
            verdict = compare(run(*[point[i] for i in places]), f, point, truth)
            if verdict != "right":
                return ("WRONG" if verdict.startswith("WRONG") else "no truth"), verdict
    except KeyboardInterrupt:
        return "slow", f"more than {SECONDS:.0f} s"
    except Exception as error:  # noqa: BLE001 (what a function raises is a line of the table)
        return "refused" if isinstance(error, fnad.errors.FnadError) else "failed", first_line(error)
    finally:
        timer.cancel()
    return "right", ""


def first_line(error: Exception) -> str:
    """The class and the first line of an error."""
    return f"{type(error).__name__}: {error}".splitlines()[0][:160]


def outcomes(package: str) -> list[Outcome]:
    """The lines of one package."""
    lines = []
    for name, f, args in PACKAGES[package]():
        points = [args, elsewhere(args)]
        try:
            truths = [differences(f, point) for point in points]
        except Exception as error:  # noqa: BLE001 (a function that NumPy does not run is not fnad's to run)
            lines.append(Outcome(package, name, "broken", "broken", first_line(error)))
            continue
        plain, reason = attempt(lambda run: run, f, points, truths)
        jit, with_jit = attempt(fnad.jit, f, points, truths)
        lines.append(Outcome(package, name, plain, jit, reason or with_jit))
    return lines


# ---- the table -------------------------------------------------------------------------------------------------------


def in_process(package: str) -> list[Outcome]:
    """The lines of one package, from a process of its own."""
    command = [sys.executable, __file__, package, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return [Outcome(package, "(the process)", "failed", "failed", done.stderr.strip().splitlines()[-1])]
    return [Outcome(*line) for line in json.loads(done.stdout.splitlines()[-1])]


def counts(lines: Sequence[Outcome]) -> str:
    """How many are right."""
    plain, jit = (sum(getattr(line, how) == "right" for line in lines) for how in ("plain", "jit"))
    of = len(lines)
    wrong = sum("WRONG" in (line.plain, line.jit) for line in lines)
    right = f"{plain} right without `jit` ({plain / of:.0%}), {jit} with it ({jit / of:.0%})"
    return f"{of} functions: {right}, {wrong} `WRONG`: other numbers in silence"


def page(lines: Sequence[Outcome]) -> str:
    """The document: how many are right by package, and each function."""
    packages = {package: [line for line in lines if line.package == package] for package in PACKAGES}
    told = __doc__.split("\n\n")[2].strip().replace("\n", " ")
    parts = ["# Code of others", "", f"{told} The page is written by `examples/clients/foreign_code.py`.", ""]
    parts += [f"{counts(lines)}.", ""]
    parts += ["| package | functions | right | right with `jit` |", "|---|---|---|---|"]
    for package, own in packages.items():
        plain, jit = (sum(getattr(line, how) == "right" for line in own) for how in ("plain", "jit"))
        parts.append(f"| {package} {version(package)} | {len(own)} | {plain} | {jit} |")
    for package, own in packages.items():
        parts += ["", f"## {package}", "", "| function | plain | `jit` | reason |", "|---|---|---|---|"]
        parts += [f"| {line.function} | {line.plain} | {line.jit} | {cell(line.reason)} |" for line in own]
    return "\n".join(parts) + "\n"


def cell(text: str) -> str:
    """A text as a cell of a table."""
    return f"`{text.replace('|', '/').replace('`', '')}`" if text else ""


def main() -> None:
    """Run the packages that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", default=[*PACKAGES])
    parser.add_argument("--json", action="store_true", help="in this process, as JSON")
    parser.add_argument("--write", type=Path, help="where the table goes")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    if options.json:
        print(json.dumps([line for package in options.packages for line in outcomes(package)]))
        return
    lines = []
    for package in options.packages:
        found = in_process(package)
        lines += found
        print(package, counts(found))
        for line in found:
            if (line.plain, line.jit) != ("right", "right"):
                print(f"  {line.function}: {line.plain}, {line.jit}: {line.reason}")
    print(counts(lines))
    if options.write:
        options.write.write_text(page(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
