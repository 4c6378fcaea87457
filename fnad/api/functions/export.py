"""Programs that leave fnad: `export`, and the forms of what it returns."""

from __future__ import annotations

import keyword
import re
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from fnad.api.functions.jit import Compiled, jit
from fnad.api.functions.lowered import ShapeDtypeStruct, TracedCall
from fnad.api.inspect.input_names import as_word, input_names, unique
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
from fnad.api.staging.program_pickles import ProgramOfTrees, pickled_code
from fnad.api.staging.stage import Output
from fnad.backends.base import STANDALONE
from fnad.errors import ArgumentTypeError, ExportError, FnadError
from fnad.forks import cached_property
from fnad.ir.builder import is_tracing
from fnad.ir.parser import parse_program
from fnad.ir.printer import print_program
from fnad.ir.program import Program, Source
from fnad.ir.size import SizeScope, at_sizes, is_same
from fnad.ir.types import DTYPES, Aval
from fnad.kernel.statements import MOST_SIZES
from fnad.numpy.operands import as_symbol
from fnad.trace.source import is_of_library
from fnad.tracebacks import OWN, boundary

if TYPE_CHECKING:
    from fnad.backends.standalone.forms import LoadedFunction, Standalone
    from fnad.backends.standalone.program import Intervals, Variant


@boundary
def export(f: Function, /, *args: Any, **kwargs: Any) -> Exported:
    """The program of a function for arguments of given types, to be used without fnad: in Numba, C, a file.

    It is compiled without threads and without Python, so it can be called from any native code. Arrays from outside
    keep the content that they have at the export.

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
    names = _names_of_sizes((args, kwargs))

    def traced(sizes: Mapping[str, Any]) -> Exported:
        given, by_name = map_leaves(lambda leaf: _with_sizes(leaf, sizes), (args, kwargs)) if sizes else (args, kwargs)
        return _exported(compiled.lower(*given, **by_name), name)

    exported = _for_all_sizes(traced, names) if names else traced({})
    exported.qualname = _qualname(f)
    return exported


def _names_of_sizes(trees: Any) -> Sequence[str]:
    """The names of sizes that stay open."""
    leaves = [leaf for leaf in flatten(trees)[0] if isinstance(leaf, ShapeDtypeStruct)]
    names = list(dict.fromkeys(str(n) for leaf in leaves for n in cast("Any", leaf.shape) if isinstance(n, str)))
    check_names_of_sizes(names)
    return names


def check_names_of_sizes(names: Sequence[str]) -> None:
    """Raise `ExportError` for words of C or Python, for a name twice, and for too many names."""
    for name in names:
        if (
            names.count(name) > 1
            or not name.isidentifier()
            or name in DTYPES
            or re.fullmatch(TAKEN, name)
            or _identifier(name) != name
        ):
            raise ExportError(f"{name!r} cannot name a size", remedy="name it n")
    if len(names) > MOST_SIZES:
        raise ExportError(f"{len(names)} sizes are open; at most {MOST_SIZES} can be", remedy="give numbers for others")


def _with_sizes(leaf: Any, sizes: Mapping[str, Any]) -> Any:
    """An example with sizes in the place of names."""
    if not isinstance(leaf, ShapeDtypeStruct):
        return leaf
    return ShapeDtypeStruct([sizes[str(n)] if isinstance(n, str) else n for n in leaf.shape], leaf.dtype)


def _for_all_sizes(traced: Callable[[Mapping[str, Any]], Exported], names: Sequence[str]) -> Exported:
    """The program of one trace for all sizes, with programs for the small sizes that the trace is not right for."""

    def traced_for(fixed: Mapping[str, int]) -> tuple[Exported, Sized]:
        scope = SizeScope(names, fixed)
        one = traced({**scope.sizes, **fixed})
        return one, Sized(one.program, one.captured, dict(fixed), scope, scope.intervals)

    try:
        found, general = traced_for({})
    except ExportError as error:
        raise error.at(_line_of(error)) from None

    def small(fixed: Mapping[str, int]) -> Sized | None:
        if not fixed:
            return general
        quiet = warnings.catch_warnings(action="ignore", category=RuntimeWarning)  # of sizes that no user passed
        with quiet, suppress(FnadError, ArithmeticError, LookupError, TypeError, ValueError):
            one, way = traced_for(fixed)
            if one.output == found.output and _has_types(way, found.program) and not way.scope.is_for_one:
                return way
        return None

    found.sizes = Sizes(names, list(for_small_sizes(small)))
    check_sizes(found, found.sizes)
    return found


def for_small_sizes(find: Callable[[Mapping[str, int]], Sized | None]) -> Iterator[Sized]:
    """The program for large sizes, and those where small sizes, which it is not right for, are numbers."""
    pending: list[dict[str, int]] = [{}]
    for count, fixed in enumerate(pending):
        way = find(fixed) if count < MOST_PROGRAMS else None
        if way is not None:
            yield way
            smaller = [{**fixed, name: n} for name in way.scope.open for n in range(min(way.scope.low[name], FEW))]
            pending += [one for one in smaller if one not in pending]


def check_sizes(exported: Exported, sizes: Sizes) -> None:
    """Raise `ExportError` if a program is not one for all sizes."""
    name, general = exported.name, sizes.ways[0]
    if general.scope.is_for_one:
        raise ExportError(f"{name} decides by a size, and is for one size alone", remedy=BY_SIZE)
    axes = {str(n) for aval in exported.in_avals for n in aval.shape}
    for size in sizes.names:
        if size in exported.names or size in exported.leaves:
            raise ExportError(f"{size} is an argument of {name}", remedy="call the size another name")
        if size not in axes:
            raise ExportError(f"no argument of {name} has the size {size}", remedy="give an array with such an axis")
    if not all(_has_types(way, exported.program) for way in sizes.ways):
        raise ExportError(f"{name} has other types for a small size", remedy="export it again")


def _has_types(way: Sized, general: Program) -> bool:
    """True if a program has the types of arguments and results that `general`, for all sizes, has for its sizes."""
    sizes, program = {**way.scope.sizes, **way.fixed}, way.program
    outputs = [_aval_at(aval, sizes) for aval in general.out_avals]
    inputs = [_aval_at(aval, sizes) for aval in general.in_avals]
    pairs = [*zip(program.in_avals, inputs, strict=False), *zip(program.out_avals, outputs, strict=False)]
    are_same = [own.dtype == aval.dtype and _is_same_shape(own.shape, aval.shape) for own, aval in pairs]
    return len(outputs) == len(program.out_avals) and all(are_same)


def _is_same_shape(a: Sequence[int], b: Sequence[int]) -> bool:
    return len(a) == len(b) and all(map(is_same, a, b))


def _aval_at(aval: Aval, sizes: Mapping[str, Any]) -> Aval:
    """A type for given sizes of the axes."""
    return Aval(aval.dtype, tuple(at_sizes(size, sizes) for size in aval.shape))


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
        raise ExportError.here(
            f"{name} decides by values: {lines}",
            remedy="decide within the program, by np.where, fnad.cond or fnad.while_loop",
        )
    names = unique(map(as_word, call.names))  # names of elements of *args have brackets
    return Exported(name, path.traced, names, call.structure, path.output, list(path.captured))


FEW = 16
"""Only sizes below this number have programs of their own."""

MOST_PROGRAMS = 40
"""The most combinations of small sizes that programs are made for."""

BY_SIZE = "export it for each size, or decide by np.where"
TAKEN = r"np|njit|sizes|size\d*|out\d*_?|True|False|None"
"""Names that sizes cannot have."""


class Sized(NamedTuple):
    """A program with its captured arrays, for `fixed` sizes of some axes and intervals of sizes for the others.

    Lowering may narrow the intervals of the scope further.
    """

    program: Program
    captured: Sequence[Array]
    fixed: dict[str, int]
    scope: SizeScope
    intervals: Intervals

    def __reduce__(self) -> Any:
        text, captured = pickled_code(self.program.name, self.program, self.captured)
        return sized, (text, captured, self.scope.names, self.fixed, self.intervals)

    def at(self, sizes: Mapping[str, int]) -> Sized | None:
        """The program with numbers as sizes of some axes, if it is right for them."""
        given = {name: n for name, n in sizes.items() if name in self.intervals}
        is_in = all(self.intervals[name][0] <= n <= self.intervals[name][1] for name, n in given.items())
        if not is_in or {**sizes, **self.fixed} != sizes:
            return None
        if not given:
            return self
        fixed = {**self.fixed, **given}
        return sized(print_program(self.program), self.captured, self.scope.names, fixed, self.intervals)


def sized(
    text: str, captured: Sequence[Array], names: Sequence[str], fixed: dict[str, int], intervals: Intervals
) -> Sized:
    """The program of a text, for sizes of these names that are `fixed` or in intervals."""
    scope = SizeScope(names, fixed)
    for name in scope.open:
        scope.limit(name, *intervals[name])
    program = parse_program(text, {**scope.sizes, **fixed})
    return Sized(program, captured, fixed, scope, scope.intervals)


class Sizes(NamedTuple):
    """The names of sizes that are open, and the programs: the first one for large sizes, others for small ones."""

    names: Sequence[str]
    ways: Sequence[Sized]

    def at(self, sizes: Mapping[str, int]) -> Sized | None:
        """The program where the sizes of some axes are numbers, if there is one."""
        return next(filter(None, (way.at(sizes) for way in reversed(self.ways))), None)


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
        self.qualname = ""
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
            raise ArgumentTypeError.here(
                f"{self.name} was exported for other types of arguments: {', '.join(map(str, self.in_avals))}",
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
        own, found = self.in_avals, [aval.shape for aval in avals]
        pairs = [pair for aval, shape in zip(own, found, strict=True) for pair in zip(aval.shape, shape)]  # noqa: B905
        given = {str(size): n for size, n in reversed(pairs) if str(size) in self.sizes.names}
        is_right = given.keys() == set(self.sizes.names) and [_aval_at(aval, given) for aval in own] == avals
        one = self.sizes.at(given) if is_right else None
        if is_right and one is None:
            message, remedy = self._standalone.missing, "export it for arguments of these sizes, too"
            raise ArgumentTypeError.here(message, remedy=remedy)
        return one and Exported(self.name, one.program, self.names, self.structure, self.output, one.captured)

    def __reduce__(self) -> Any:
        program = self.program if self.sizes is None else Program(self.name, (), (), ())  # its first way is the program
        pickled = ProgramOfTrees(self.name, program, self.names, self.structure, self.output, self.captured)
        return _restored, (pickled, self.sizes)

    @property
    def prototype(self) -> str:
        """The declaration of the function in C; it returns 0, or the number of an error."""
        return f"{_forms().c_source.prototype(self._standalone)};"

    # ---- in this process

    @boundary
    def cfunc(self) -> CFunction:
        """The native function, by its address."""
        function, parameters = _forms().LoadedFunction(self._standalone), len(self._standalone.parameters)
        return CFunction(function, parameters, len(self.sizes.names) if self.sizes else 0)

    @boundary
    def low_level(self) -> Any:
        """The function as a `scipy.LowLevelCallable`, for `quad` and its like, and for `ndimage.generic_filter`.

        Raises `ExportError` unless it takes numbers of f64, or for a filter one axis of them, to one number of f64. An
        integrand whose run ends in an error gives nan.
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
        return write_of_one_name(file, ".c", {".c": self.c_source(blas=blas).encode(), ".h": header.encode()}, force)

    @boundary
    def object(self, file: str | Path, *, force: bool = False) -> list[Path]:
        """Write a relocatable object file for this CPU, and the header beside it; return both paths."""
        code = _forms().object_file(self._standalone)
        return write_of_one_name(file, ".o", {".o": code, ".h": self.c_header().encode()}, force)

    @boundary
    def python(self, file: str | Path, *, force: bool = False) -> list[Path]:
        """Write the Python module; return its path."""
        return write_of_one_name(file, ".py", {".py": self.python_source().encode()}, force)

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
        variants, sizes = self._variants(with_blas=with_blas), self.sizes.names if self.sizes else ()
        return _forms().standalone(self.name, arguments, results, variants, sizes)._replace(qualname=self.qualname)

    def _variants(self, *, with_blas: bool) -> list[Variant]:
        def lowered(program: Program, captured: Sequence[Array]) -> Variant:
            simplified = staged(program).simplified
            return _forms().lowered(simplified, self.name, len(self.leaves), captured, with_blas=with_blas)

        if self.sizes is None:
            return [lowered(self.program, self.captured)]
        variants: list[Variant] = []
        sizes = self.sizes

        def small(fixed: Mapping[str, int]) -> Sized | None:
            way = sizes.at(fixed)
            if way is None:
                return None
            try:
                variant = lowered(way.program, way.captured)
            except FnadError:
                if fixed:
                    return None  # these sizes are an error of a run
                raise
            if any(low >= high for low, high in way.scope.intervals.values()):
                return None
            intervals = {**{name: (n, n) for name, n in fixed.items()}, **way.scope.intervals}
            variants.append(variant._replace(intervals={name: intervals[name] for name in sizes.names}))
            return way

        for _ in for_small_sizes(small):
            pass
        if not variants:
            raise ExportError(f"{self.name} has no program for all sizes {', '.join(sizes.names)}", remedy=BY_SIZE)
        return variants

    def __repr__(self) -> str:
        results = ", ".join(map(str, self.program.out_avals))
        return f"<exported {self.name}({', '.join(map(str, self.in_avals))}) -> {results}>"


def _restored(pickled: ProgramOfTrees, sizes: Sizes | None) -> Exported:
    exported = Exported(*(pickled if sizes is None else pickled._replace(program=sizes.ways[0].program)))
    exported.sizes = sizes
    return exported


class CFunction:
    """A native function: its `address`, and `call(*addresses)`, which returns 0 or the number of an error.

    A function for all sizes takes the sizes before the addresses.

    The code lives as long as this object or `call`.
    """

    def __init__(self, function: LoadedFunction, parameters: int, sizes: int) -> None:
        import ctypes  # noqa: PLC0415 - not needed for files

        self.address = function.address
        kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * sizes, *[ctypes.c_void_p] * parameters)
        self.call: Any = kind(function.address)
        self.call.function = function


def _forms() -> Any:
    return import_module(STANDALONE)


def write_of_one_name(path: str | Path, suffix: str, contents: dict[str, bytes], force: bool) -> list[Path]:
    """Write files of one name."""
    path = Path(path)
    stem = path.with_suffix("") if path.suffix == suffix else path
    files = {stem.with_name(stem.name + ending): content for ending, content in contents.items()}
    write_files(files, force)
    return list(files)


def write_files(contents: dict[Path, bytes], force: bool) -> None:
    """Write files; raise before anything is written if one exists, unless `force`."""
    if not force and (there := [file for file in contents if file.exists()]):
        raise ExportError.here(f"{there[0]} exists", remedy="give another path, or force=True (--force)")
    if missing := [file.parent for file in contents if not file.parent.is_dir()]:
        raise ExportError.here(f"{missing[0]} is not a folder", remedy="create it, or give another path")
    for file, content in contents.items():
        file.write_bytes(content)


def _name_of(f: Function) -> str:
    """The name of a function and of its transforms: `loss_grad`."""
    transforms: list[str] = []
    while isinstance(f, Transformed):
        if not isinstance(f, Compiled):
            transforms.insert(0, f.transform_name)
        f = f.__wrapped__
    return _identifier("_".join([as_word(function_name(f)), *transforms]))


def _qualname(f: Function) -> str:
    """The module and the qualified name of the function below transforms."""
    while isinstance(f, Transformed):
        f = f.__wrapped__
    return f"{getattr(f, '__module__', '')}.{getattr(f, '__qualname__', '')}"


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
