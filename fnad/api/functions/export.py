"""Programs that leave fnad: `export`, and the forms of what it returns."""

from __future__ import annotations

import keyword
import re
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from pickle import PicklingError
from typing import TYPE_CHECKING, Any, cast

from fnad.api.functions.jit import Compiled, jit
from fnad.api.functions.lowered import ShapeDtypeStruct, TracedCall
from fnad.api.inspect.input_names import input_names
from fnad.api.inspect.known_paths import decision_lines, decisions_of
from fnad.api.running.execution import prepared, staged
from fnad.api.running.transformed import Transformed
from fnad.api.staging.inlining import inlined
from fnad.api.staging.leaves import (
    Array,
    Function,
    Structure,
    check_function,
    flatten,
    function_name,
    leaves_of,
    map_leaves,
    paths,
    to_user,
)
from fnad.api.staging.program_pickles import ProgramOfTrees
from fnad.api.staging.stage import Output
from fnad.backends.base import STANDALONE
from fnad.errors import ArgumentTypeError, ExportError, FnadError
from fnad.forks import cached_property
from fnad.ir.builder import is_tracing
from fnad.ir.parser import parse_program
from fnad.ir.printer import print_program
from fnad.ir.program import Program, Source
from fnad.ir.size import LONGEST, Scope, at_size
from fnad.ir.types import DTYPES, Aval
from fnad.numpy.operands import as_symbol
from fnad.records import NamedTuple
from fnad.trace.source import current_source, is_of_library
from fnad.tracebacks import OWN, boundary

if TYPE_CHECKING:
    from fnad.backends.standalone.forms import LoadedFunction, Standalone
    from fnad.backends.standalone.program import Variant


@boundary
def export(f: Function, /, *args: Any, **kwargs: Any) -> Exported:
    """The program of a function for arguments of given types, to be used without fnad: in Numba, C, a file.

    It is compiled without threads and without Python, so it can be called from any native code.

    Parameters:
        f (function): A function of pytrees of arrays and numbers, which may be transformed.
        *args, **kwargs (pytrees of arrays, numbers and ShapeDtypeStructs): Its arguments, of which types are read. A
            name in the shape of a ShapeDtypeStruct leaves the size of an axis open.
    Returns:
        Exported: The program in its forms: `njit()`, `cfunc()`, `c(path)`, `object(path)`, `python(path)`.
    Raises:
        ExportError: If Python decides by values, if the program calls a library or Python, or uses large arrays from
            outside.
        TracerEscapeError: If `f` uses a traced value where an ordinary one is required.
    Examples:
        >>> import numpy as np, fnad
        >>> def f(x):
        ...     return np.sum(x**2)
        >>> gradient = fnad.export(fnad.grad(f), np.ones(3))
        >>> print(gradient.prototype)
        int64_t f_grad(const double *x, double *out);
        >>> gradient.njit()(np.arange(3.0))
        array([0., 2., 4.])
    """
    check_function(f, "export")
    compiled, name = f if isinstance(f, Compiled) else jit(f), _name_of(f)
    axis = _named_axis((args, kwargs))
    if axis is None:
        return _exported(compiled.lower(*args, **kwargs), name)

    def traced(n: int) -> Exported:
        given, by_name = map_leaves(lambda leaf: _with_size(leaf, axis, n), (args, kwargs))
        return _exported(compiled.lower(*given, **by_name), name)

    return _for_all_sizes(traced, axis)


def _named_axis(trees: Any) -> str | None:
    """The name of an axis whose size stays open; raise `ExportError` for two names, or for a word of C or Python."""
    leaves = [leaf for leaf in flatten(trees)[0] if isinstance(leaf, ShapeDtypeStruct)]
    names = dict.fromkeys(str(n) for leaf in leaves for n in cast("tuple[Any, ...]", leaf.shape) if isinstance(n, str))
    if len(names) > 1:
        raise ExportError(f"the sizes {', '.join(names)} are open, where one can be", remedy="give numbers for others")
    name = next(iter(names), None)
    if name is not None and (not name.isidentifier() or name in DTYPES or name in TAKEN or _identifier(name) != name):
        raise ExportError(f"{name!r} cannot name a size", remedy="name it n")
    return name


def _with_size(leaf: Any, axis: str, n: int) -> Any:
    """An example with a size in the place of its name."""
    if not isinstance(leaf, ShapeDtypeStruct):
        return leaf
    return ShapeDtypeStruct([n if str(size) == axis else size for size in leaf.shape], leaf.dtype)


def _for_all_sizes(traced: Callable[[int], Exported], axis: str) -> Exported:
    """The program of one trace for all sizes, with programs for the small sizes that the trace is not right for."""
    scope = Scope(axis)
    try:
        found = traced(scope.size)
    except ExportError as error:
        raise error.at(_line_of(error)) from None
    small: dict[int, OneSize] = {}
    for n in range(min(scope.low, FEW)):
        with suppress(FnadError, ArithmeticError, LookupError, TypeError, ValueError):
            one = traced(n)
            if one.output == found.output and _has_types(one.program, found.program, n):
                small[n] = OneSize(one.program, one.captured)
    found.sizes = checked_sizes(found, Sizes(scope, 0, LONGEST, small))
    return found


def checked_sizes(exported: Exported, sizes: Sizes) -> Sizes:
    """The sizes that a traced program is right for; raises `ExportError` if it is not one for all sizes."""
    scope, name = sizes.scope, exported.name
    if scope.low == scope.high:
        raise ExportError(f"{name} decides by the size {scope.name}, and is for one size alone", remedy=BY_SIZE)
    if scope.name in exported.names or scope.name in exported.leaves:
        raise ExportError(f"{scope.name} is an argument of {name}", remedy="call the size another name")
    if not any(str(n) == scope.name for aval in exported.in_avals for n in aval.shape):
        raise ExportError(f"no argument of {name} has the size {scope.name}", remedy="give an array with such an axis")
    if not all(_has_types(one.program, exported.program, n) for n, one in sizes.small.items()):
        raise ExportError(f"{name} has other types for a small size", remedy="export it again")
    return sizes._replace(low=max(sizes.low, scope.low), high=min(sizes.high, scope.high))


def _has_types(program: Program, general: Program, n: int) -> bool:
    """True if a program has the types of arguments and results that `general`, for all sizes, has for n."""
    outputs = tuple(_aval_at(aval, n) for aval in general.out_avals)
    return program.out_avals == outputs and all(
        own == _aval_at(aval, n) for own, aval in zip(program.in_avals, general.in_avals, strict=False)
    )


def _aval_at(aval: Aval, n: int) -> Aval:
    """A type where the size of the axis is n."""
    return Aval(aval.dtype, tuple(at_size(size, n) for size in aval.shape))


def _line_of(error: BaseException) -> Source | None:
    """The line of user code that an exception passed."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not is_of_library(frame.filename) and not frame.filename.startswith(OWN)]
    return Source(own[-1].filename, own[-1].lineno or 0, own[-1].name) if own else None


def _exported(call: TracedCall, name: str) -> Exported:
    """The program of a traced call; raise `ExportError` if Python has decided by values."""
    path = call.path
    if path.guards:
        lines = "; ".join(decision_lines(decisions_of(path.guards)))
        raise ExportError(
            f"{name} decides by values: {lines}",
            source=current_source(),
            remedy="decide within the program, by np.where, fnad.cond or fnad.while_loop",
        )
    return Exported(name, path.traced, call.names, call.structure, path.output, list(path.captured))


FEW = 16
"""Only sizes below this number have programs of their own."""

BY_SIZE = "export it for each size, or decide by np.where"
TAKEN = frozenset({"np", "njit", "sizes", "size", "out", "True", "False", "None"})


class OneSize(NamedTuple):
    """The program for one size, with its captured arrays."""

    program: Program
    captured: Sequence[Array]


class Sizes(NamedTuple):
    """The sizes that a program is right for, `low` to `high`, and the programs for smaller ones."""

    scope: Scope
    low: int
    high: int
    small: dict[int, OneSize]


class Exported:
    """A function's program for arguments of given types, in forms that need nothing of fnad.

    Arguments and results are arrays in C order of these shapes; pytrees have a parameter a leaf. It can be called, and
    `fnad.save` writes it to a file.
    """

    def __init__(
        self,
        name: str,
        program: Program,
        names: Sequence[str],
        structure: Structure,
        output: Output,
        captured: Sequence[Array],
    ) -> None:
        self.name, self.program, self.captured = name, program, captured
        self.names, self.structure, self.output = names, structure, output
        self.sizes: Sizes | None = None
        trees = structure.unflatten(range(structure.num_leaves))
        self.leaves = paths(trees, names.__getitem__)

    @property
    def in_avals(self) -> Sequence[Aval]:
        """The types of the arguments' leaves."""
        return self.program.in_avals[: len(self.leaves)]

    @boundary
    def __call__(self, /, *args: Any) -> Any:
        """The result for arguments of these types, given by position; raises `ArgumentTypeError` for others."""
        leaves, structure = leaves_of(args, lambda i: self.names[i] if i < len(self.names) else f"argument {i}")
        found = self._at([leaf.aval for leaf in leaves]) if structure == self.structure else None
        if found is None:
            raise ArgumentTypeError(
                f"{self.name} was exported for other types of arguments: {', '.join(map(str, self.in_avals))}",
                source=current_source(),
                remedy="export it for these types, too",
            )
        return found.on_leaves([leaf.value for leaf in leaves])

    def on_leaves(self, operands: Sequence[Any]) -> Any:
        """The result for the leaves of arguments."""
        if is_tracing():
            return self.output.rebuild(
                inlined(self.program, [*map(as_symbol, operands), *map(as_symbol, self.captured)])
            )
        run = prepared(self.program).executor()
        return self.output.rebuild(map(to_user, run([*operands, *self.captured])))

    def _at(self, avals: list[Aval]) -> Exported | None:
        """The program for arguments of given types, if there is one."""
        if self.sizes is None:
            return self if avals == list(self.in_avals) else None
        scope, found = self.sizes.scope, [aval.shape for aval in avals]
        own = [aval.shape for aval in self.in_avals]
        pairs = [pair for shapes in zip(own, found, strict=True) for pair in zip(*shapes)]  # noqa: B905
        n = next((n for size, n in pairs if str(size) == scope.name), -1)
        expected = [_aval_at(aval, n) for aval in self.in_avals]
        one = self._for_size(self.sizes, n) if expected == avals else None
        return one and Exported(self.name, one.program, self.names, self.structure, self.output, one.captured)

    def _for_size(self, sizes: Sizes, n: int) -> OneSize | None:
        """The program for one size, if there is one."""
        if n in sizes.small or not sizes.low <= n <= sizes.high:
            return sizes.small.get(n)
        return OneSize(parse_program(print_program(self.program), {sizes.scope.name: n}), self.captured)

    def __reduce__(self) -> Any:
        if self.sizes is not None:
            raise PicklingError(f"{self.name} is for all sizes: write it by fnad.save")
        return _restored, (
            ProgramOfTrees(self.name, self.program, self.names, self.structure, self.output, self.captured),
        )

    @property
    def prototype(self) -> str:
        """The declaration of the function in C; it returns 0, or the number of an error."""
        return f"{_forms().c_source.prototype(self._standalone)};"

    # ---- in this process

    @boundary
    def cfunc(self) -> CFunction:
        """The native function, by its address."""
        function, parameters = _forms().LoadedFunction(self._standalone), len(self._standalone.parameters)
        return CFunction(function, parameters, for_all_sizes=self.sizes is not None)

    @boundary
    def low_level(self) -> Any:
        """The function as a `scipy.LowLevelCallable`, for `quad` and its like.

        Raises `ExportError` unless it takes numbers of f64 to one number of f64. A run that ends in an error gives nan.
        """
        return _forms().low_level_callable(self._standalone)

    @boundary
    def njit(self) -> Any:
        """The function for code that Numba compiles: it takes arrays, numbers and tuples, and returns new arrays.

        Shapes are compared at each call, dtypes when the caller is compiled. User code that Numba keeps on disk
        (`cache=True`) runs the program that is exported in its process; without one there it raises RuntimeError.
        """
        structure = self.output.structure
        result = _expression(structure.unflatten([f"{_forms().RESULT}{n}" for n in range(structure.num_leaves)]))
        return _forms().numba_function(self._standalone, ", ".join(self.names), self._for_numba(), result)

    @boundary
    def njit_into(self) -> Any:
        """The function for Numba code that writes results into arrays, one for each, which follow the arguments."""
        return _forms().numba_into(self._standalone, ", ".join(self.names), self._for_numba())

    def _for_numba(self) -> list[str]:
        """The expressions of the arguments' leaves, which Numba takes if there is no dict among them."""
        if others := [leaf for leaf in self.leaves if not re.fullmatch(r"\w+(\[\d+\]|\.\w+)*", leaf)]:
            raise ExportError(f"Numba takes no dict for {others[0]}", remedy="give arrays, numbers or tuples of them")
        return self.leaves

    # ---- in files

    def c_source(self, *, blas: bool = False) -> str:
        """The program as C, readable and without dependencies; with `blas`, it calls CBLAS and LAPACKE."""
        return _forms().c_source.source(self._with_blas if blas else self._standalone)

    def c_header(self) -> str:
        """The header of the C source and of the object file."""
        return _forms().c_source.header(self._standalone)

    def python_source(self) -> str:
        """The program as a Python module that needs NumPy and Numba alone."""
        return _forms().python_module.source(self._standalone)

    @boundary
    def c(self, file: str | Path, *, force: bool = False, blas: bool = False) -> list[Path]:
        """Write the C source, and the header beside it; return both paths.

        With `blas`, matrix products call CBLAS, and linear algebra LAPACKE.
        """
        header = _forms().c_source.header(self._with_blas if blas else self._standalone)
        return _written(file, ".c", {".c": self.c_source(blas=blas).encode(), ".h": header.encode()}, force)

    @boundary
    def object(self, file: str | Path, *, force: bool = False) -> list[Path]:
        """Write a relocatable object file for this CPU, and the header beside it; return both paths."""
        code = _forms().object_file(self._standalone)
        return _written(file, ".o", {".o": code, ".h": self.c_header().encode()}, force)

    @boundary
    def python(self, file: str | Path, *, force: bool = False) -> list[Path]:
        """Write the Python module; return its path."""
        return _written(file, ".py", {".py": self.python_source().encode()}, force)

    @cached_property
    def _standalone(self) -> Standalone:
        return self._lowered(with_blas=False)

    @cached_property
    def _with_blas(self) -> Standalone:
        if self.sizes is not None:
            raise ExportError(f"{self.name} is for all sizes, and blas=True for given ones", remedy="leave out blas")
        return self._lowered(with_blas=True)

    def _lowered(self, *, with_blas: bool) -> Standalone:
        names = [_identifier(name) for name in input_names(self.leaves, self.program)]
        arguments = names[: len(self.leaves)]
        count = len(self.program.outputs)
        results = ["out"] if count == 1 else [f"out{n}" for n in range(count)]
        results = [f"{name}_" if name in arguments else name for name in results]
        variants, size = self._variants(with_blas=with_blas), self.sizes and self.sizes.scope.name
        return _forms().standalone(self.name, arguments, results, variants, size)

    def _variants(self, *, with_blas: bool) -> list[Variant]:
        def lowered(program: Program, captured: Sequence[Array]) -> Variant:
            simplified = staged(program).simplified
            return _forms().lowered(simplified, self.name, len(self.leaves), captured, with_blas=with_blas)

        general = lowered(self.program, self.captured)
        if self.sizes is None:
            return [general]
        low, high = max(self.sizes.scope.low, self.sizes.low), min(self.sizes.scope.high, self.sizes.high)
        if low >= high:
            raise ExportError(f"{self.name} has no program for all sizes {self.sizes.scope.name}", remedy=BY_SIZE)
        small = [(n, self._for_size(self.sizes, n)) for n in range(min(low, FEW))]
        return [
            general._replace(low=low, high=high),
            *(lowered(*one)._replace(low=n, high=n) for n, one in small if one is not None),
        ]

    def __repr__(self) -> str:
        results = ", ".join(map(str, self.program.out_avals))
        return f"<exported {self.name}({', '.join(map(str, self.in_avals))}) -> {results}>"


def _restored(pickled: ProgramOfTrees) -> Exported:
    return Exported(*pickled)


class CFunction:
    """A native function: its `address`, and `call(*addresses)`, which returns 0 or the number of an error.

    A function for all sizes takes the size before the addresses.

    The code lives as long as this object or `call`.
    """

    def __init__(self, function: LoadedFunction, parameters: int, *, for_all_sizes: bool) -> None:
        import ctypes  # noqa: PLC0415 - not needed for files

        self.address = function.address
        sizes = [ctypes.c_int64] * for_all_sizes
        kind = ctypes.CFUNCTYPE(ctypes.c_int64, *sizes, *[ctypes.c_void_p] * parameters)
        self.call: Any = kind(function.address)
        self.call.function = function


def _forms() -> Any:
    return import_module(STANDALONE)


def _written(path: str | Path, suffix: str, contents: dict[str, bytes], force: bool) -> list[Path]:
    """Write files of one name."""
    path = Path(path)
    stem = path.with_suffix("") if path.suffix == suffix else path
    files = {stem.with_name(stem.name + ending): content for ending, content in contents.items()}
    write_files(files, force)
    return list(files)


def write_files(contents: dict[Path, bytes], force: bool) -> None:
    """Write files; raise before anything is written if one exists, unless `force`."""
    if not force and (there := [file for file in contents if file.exists()]):
        raise ExportError(
            f"{there[0]} exists", source=current_source(), remedy="give another path, or force=True (--force)"
        )
    for file, content in contents.items():
        file.write_bytes(content)


def _name_of(f: Function) -> str:
    """The name of a function and of its transforms: `loss_grad`."""
    transforms: list[str] = []
    while isinstance(f, Transformed):
        if not isinstance(f, Compiled):
            transforms.insert(0, f.transform_name)
        f = f.__wrapped__
    return _identifier("_".join([re.sub(r"\W+", "_", function_name(f)).strip("_"), *transforms]))


def _identifier(name: str) -> str:
    """A name that is a word in C and in Python."""
    return f"{name}_" if name in C_WORDS or keyword.iskeyword(name) else name


C_WORDS = frozenset(
    """
    auto break case char complex const continue default do double else enum extern float for goto if inline int long
    register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while bool
    true false main status sizes end I malloc free abs acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos
    cosh erf erfc exp exp2 expm1 fabs floor fmax fmin fmod hypot log log10 log1p log2 pow power remainder rint round sin
    sinh sqrt tan tanh trunc gamma lgamma j0 j1 jn y0 y1 yn
    """.split()  # noqa: SIM905
)
"""Words that a function or parameter cannot be called in C: keywords, functions of its library, and names here."""


def _expression(tree: Any) -> str:
    """A pytree of names as source code that Numba takes."""
    if tree is None or isinstance(tree, str):
        return str(tree)
    if type(tree) is tuple:
        return f"({''.join(f'{_expression(child)}, ' for child in tree)})"  # pyright: ignore[reportUnknownVariableType]
    raise ExportError(f"Numba returns no {type(tree).__name__}", remedy="return arrays, numbers or tuples of them")
