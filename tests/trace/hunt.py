"""Functions of installed packages, called with random arguments from a traced function, in both attempts.

Whatever they do with traced values, the process lives, and the derivative of what they have no part in is right. Some
functions end the process whoever calls them: after a crash the same calls are made on ordinary arrays, and where these
crash too, the hunt goes on behind them.

    python -m tests.trace.hunt --count 1000 --seed 0
    python -m tests.trace.hunt --count 100000 --seed 1 --seconds 3600 --packages pandas sklearn mpmath
"""

import argparse
import contextlib
import importlib
import inspect
import io
import pkgutil
import random
import signal
import subprocess
import sys
import tempfile
import time
import types
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import fnad

STANDARD = (
    *("abc", "array", "ast", "base64", "binascii", "bisect", "calendar", "cmath", "codecs", "collections", "colorsys"),
    *("copy", "csv", "dataclasses", "datetime", "decimal", "difflib", "enum", "fractions", "functools", "hashlib"),
    *("heapq", "html", "inspect", "ipaddress", "itertools", "json", "keyword", "math", "numbers", "operator", "pickle"),
    *("pprint", "queue", "random", "re", "reprlib", "statistics", "string", "struct", "textwrap", "tokenize", "types"),
    *("typing", "unicodedata", "urllib.parse", "uuid", "zlib"),
)
PACKAGES = ("numpy", "scipy", "sklearn", "mpmath", "pandas")
LEFT_OUT = (
    *("test", "conftest", "_examples", "distutils", "datasets", "setup", "__main__", "show_config", "pydoc"),
    *("main", "file", "load", "save", "open", ".io", "genfromtxt"),
    *("f2py", ".blas", ".lapack", "_fast", "._"),
)
"""Parts of the names that are not called: tests, builds, files, and what trusts its caller.

What is private or called fast does, and the wrappers that f2py makes of Fortran: they crash on ordinary arrays of odd
sizes, and lose a reference to a dtype for each argument that raises in `__array__`, whoever wrote it.
"""

DANGEROUS = {"breakpoint", "input", "exit", "quit", "seterrcall", "set_printoptions", "seterr", "setbufsize", "memmap"}
SECONDS = 0.5
"""How long a function may take; then it is interrupted."""


class TooLong(BaseException):
    """A function takes its time."""


def modules(packages: tuple[str, ...]) -> Iterator[types.ModuleType]:
    """Yield the modules of the standard library that have no effects, then those of packages."""
    for name in STANDARD:
        yield importlib.import_module(name)
    for package in packages:
        with contextlib.suppress(ImportError):
            yield (top := importlib.import_module(package))
            for found in pkgutil.walk_packages(top.__path__, f"{package}.", onerror=lambda _: None):
                if not any(part in found.name for part in LEFT_OUT):
                    with contextlib.suppress(Exception, SystemExit):
                        yield importlib.import_module(found.name)


def functions(packages: tuple[str, ...]) -> dict[str, object]:
    """Return the functions and classes of modules, and methods of NumPy's generators, by name."""
    found: dict[int, tuple[str, object]] = {}
    for module in modules(packages):
        for name, value in sorted(vars(module).items()):
            is_named = not (name.startswith("_") or name in DANGEROUS or any(part in name for part in LEFT_OUT))
            if is_named and callable(value) and not isinstance(value, types.GenericAlias):
                found.setdefault(id(value), (f"{module.__name__}.{name}", value))
    for owner in (np.random.RandomState(0), np.random.default_rng(0)):
        for name, value in inspect.getmembers(owner, callable):
            if not name.startswith("_"):
                found[id(value)] = f"{type(owner).__name__}.{name}", value
    return dict(found.values())


def argument(pick: random.Random, x: Any, made: Any) -> object:
    """Return an argument: traced, made by NumPy, constant, or no number at all."""
    return pick.choice(
        (
            lambda: x * 1.0,
            lambda: x[0],
            lambda: made * 1.0,
            lambda: np.ones((2, 3)) * x[1],
            lambda: np.arange(4),
            lambda: np.linspace(0.1, 0.9, 5),
            lambda: [x[0], 1.0, 2.0],
            lambda: [0.25, 0.75],
            lambda: pick.choice((0, 1, 2, 3, -1, 0.5, 2.5, 1j, True, None)),
            lambda: pick.choice(("a", "float", "1.5", b"abc", (2, 3), {"a": 1}, np.float64, slice(1, 2))),
            lambda: pick.choice((np.sin, len, lambda *a: a[0] if a else 0.0)),
        )
    )()


def count_of(function: object, pick: random.Random) -> int:
    """Return how many arguments to give: as many as are needed, or some more."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return pick.randint(0, 4)
    plain = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = sum(p.default is p.empty for p in plain)
    return pick.randint(needed, max(needed, min(len(plain), needed + 2)))


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Interrupt a block that takes longer, if Python gets to it."""

    def interrupt(*_: object) -> None:
        raise TooLong

    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


def call(function: object, seed: int, x: object, made: object) -> object:
    """Call a function on random arguments; whatever it raises is its own affair."""
    pick = random.Random(seed)
    with contextlib.suppress(Exception, SystemExit, TooLong), limited(SECONDS):
        result = function(*[argument(pick, x, made) for _ in range(count_of(function, pick))])
        for _ in zip(range(3), result if isinstance(result, (list, types.GeneratorType)) else (), strict=False):
            pass
    return None


def traced(function: object, seed: int, *, is_plain: bool = False) -> None:
    """Trace a function that calls `function` in its first attempt, and twice in its second, on a filled array too.

    Where `is_plain`, call it on ordinary arrays.
    """

    def f(x):
        call(function, seed, x, x)
        u = np.zeros(3)
        u[0] = x[0]
        call(function, seed + 1, x, u)
        return np.sum(u) * x[1]

    x = np.array([0.5, 1.5, 2.5])
    if is_plain:
        f(x)
        return
    try:
        gradient = fnad.grad(f)(x)
    except fnad.errors.FnadError as error:  # which `call` would have caught
        if not (error.is_final or isinstance(error, fnad.errors.MutationError)):
            raise
        return
    assert np.array_equal(gradient, [1.5, 0.5, 0.0]), gradient


def hunt(given: argparse.Namespace, log: io.TextIOBase) -> None:
    """Trace calls of functions that are drawn, each with its number and name in the log before."""
    every = functions(tuple(given.packages))
    names = sorted(every)
    random.Random(given.seed).shuffle(names)
    end = time.perf_counter() + given.seconds
    for i, name in list(enumerate(names[: given.count]))[given.start :]:
        if time.perf_counter() > end:
            return
        log.write(f"{i} {name}\n")
        log.flush()
        traced(every[name], given.seed + i, is_plain=given.plain)


def options(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the options of the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--packages", nargs="*", default=PACKAGES)
    parser.add_argument("--start", type=int, default=None, help="in this process, from this number on")
    parser.add_argument("--plain", action="store_true", help="on ordinary arrays")
    return parser.parse_args(arguments)


def child(arguments: list[str], *more: str) -> tuple[int, list[str], str]:
    """Hunt in a process of its own; return its code, the lines of its log and what it has to say."""
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.trace.hunt", *arguments, *more]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout.splitlines(), ran.stderr


def survived(arguments: list[str]) -> int:
    """Return how many functions were traced; raise where one ends the process only because it is traced."""
    given = options(arguments)
    start, end = 0, time.perf_counter() + given.seconds
    while True:
        left = str(end - time.perf_counter())
        code, lines, said = child(arguments, "--start", str(start), "--seconds", left)
        if code == 0:  # to the end, or until the time was up, before the first of these perhaps
            return int(lines[-1].split()[0]) + 1 if lines else start
        if not lines:
            raise RuntimeError(said)
        number, name = lines[-1].split()
        is_own = child(arguments, "--start", number, "--count", str(int(number) + 1), "--plain")[0] != 0
        if not is_own:
            raise RuntimeError(f"{name}, number {number}, ends the process where it is traced\n{said[:4000]}")
        print(f"{name}, number {number}, ends the process on ordinary arrays too")
        start = int(number) + 1


def main() -> None:
    """Hunt, and say how many functions were traced."""
    given = options()
    if given.start is None:
        print(f"traced {survived(sys.argv[1:])} functions")
        return
    warnings.simplefilter("ignore")
    sys.stdin = io.StringIO()
    log, sys.stdout = sys.stdout, io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        hunt(given, log)


if __name__ == "__main__":
    main()
