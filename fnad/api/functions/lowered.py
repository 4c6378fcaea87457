"""The program of a call as an object, and calls of which only the types are known: `lower`, `eval_shape`."""

from __future__ import annotations

from collections.abc import Sequence
from pickle import PicklingError
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from fnad import config
from fnad.api.inspect.input_names import input_names
from fnad.api.inspect.rows import program_table
from fnad.api.inspect.stages import STAGES, stage_text
from fnad.api.running.paths import TracedPath
from fnad.api.staging.aliasing import check_written
from fnad.api.staging.arguments import with_traced_arrays
from fnad.api.staging.inlining import inlined
from fnad.api.staging.leaves import (
    Array,
    Function,
    Leaf,
    Structure,
    argument_name,
    check_function,
    flatten,
    function_name,
    leaves_of,
    paths,
    structure_text,
    to_user,
)
from fnad.api.staging.program_pickles import ProgramOfTrees
from fnad.api.staging.stage import stage
from fnad.backends.tiers import staged
from fnad.errors import ArgumentTypeError, GuardFailed, OtherPathError, SettingError
from fnad.ir.builder import is_tracing
from fnad.ir.content import content_key
from fnad.ir.program import Program, Source
from fnad.ir.types import Aval, Dtype, Shape, native_dtype
from fnad.ir.walk import all_equations
from fnad.trace.environment import Environment
from fnad.trace.source import current_source
from fnad.tracebacks import boundary


class ShapeDtypeStruct:
    """The shape and dtype of an array, in place of an argument whose values are not needed.

    Parameters:
        shape: Sequence of ints; in `fnad.export`, a name leaves the size of an axis open.
        dtype: Dtype or its name.
    Raises:
        DtypeError: If fnad does not compute in the dtype.
    Examples:
        >>> import fnad
        >>> fnad.ShapeDtypeStruct((2, 3), "float32")
        ShapeDtypeStruct(shape=(2, 3), dtype=dtype('float32'))
    """

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: Sequence[int | str], dtype: Any) -> None:
        self.shape = cast("Shape", tuple(shape))
        self.dtype: Dtype = native_dtype(dtype)

    def __repr__(self) -> str:
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and (self.shape, self.dtype) == (other.shape, other.dtype)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))


def eval_shape(f: Function, *args: Any, **kwargs: Any) -> Any:
    """The shapes and dtypes of the result of `f(*args, **kwargs)`, without computing it.

    Parameters:
        f (function): Python must not decide by a value that a `ShapeDtypeStruct` replaces.
        *args, **kwargs: Pytrees of arrays, numbers and ShapeDtypeStructs.
    Returns:
        pytree of ShapeDtypeStructs: With the structure of the result of `f`.
    Raises:
        ArgumentTypeError: If a leaf is not an array, number or `ShapeDtypeStruct`.
    Examples:
        >>> import numpy as np, fnad
        >>> fnad.eval_shape(np.dot, np.ones((2, 3)), fnad.ShapeDtypeStruct((3, 4), float))
        ShapeDtypeStruct(shape=(2, 4), dtype=dtype('float64'))
    """
    check_function(f, "eval_shape")
    trees = (*args, *kwargs.values())
    leaves, structure = leaves_or_types(trees, [*[argument_name(f, i) for i in range(len(args))], *kwargs])

    def attempt(f: Function) -> Any:
        def call(tracers: Sequence[Any]) -> Any:
            given = cast("Sequence[Any]", structure.unflatten(tracers))
            return f(*given[: len(args)], **dict(zip(kwargs, given[len(args) :], strict=True)))

        return stage(f, leaves, call)

    staged = with_traced_arrays(f, attempt)
    avals = staged.program.out_avals[: staged.outputs]
    return staged.structure.unflatten([ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals])


def leaves_or_types(trees: Sequence[Any], names: Sequence[str]) -> tuple[list[Leaf], Structure]:
    """The leaves of pytrees, of which a `ShapeDtypeStruct` stands for an array without a value."""
    values, structure = flatten(tuple(trees))
    for value in values:
        if isinstance(value, ShapeDtypeStruct) and any(isinstance(n, str) for n in value.shape):
            raise ArgumentTypeError(
                f"{value} has a size without a number", remedy="give one: fnad.export alone has names"
            )
    types = {i: Aval(value.dtype, value.shape) for i, value in enumerate(values) if isinstance(value, ShapeDtypeStruct)}
    examples = structure.unflatten([0 if i in types else value for i, value in enumerate(values)])
    leaves, _ = leaves_of(cast("Sequence[Any]", examples), names.__getitem__)
    return [
        Leaf(cast("Any", None), types[i], False) if i in types else leaf for i, leaf in enumerate(leaves)
    ], structure


class TracedCall:
    """The program of a function for arguments of given types.

    It prints, it is equal to one of the same content, and it can be called with such arguments, without the static
    ones. Where Python has decided by values, it is the program of the path that it took.
    """

    def __init__(
        self,
        f: Function,
        path: TracedPath,
        structure: Structure,
        leaves: Sequence[Leaf],
        names: Sequence[str],
        positional: int,
    ) -> None:
        self._f, self.path, self.structure = f, path, structure
        self._avals = [leaf.aval for leaf in leaves]
        self.names, self._positional = names, positional
        trees = structure.unflatten(range(len(leaves)))
        self._inputs = paths(trees, names.__getitem__)

    @property
    def program(self) -> Program:
        """The program as it was traced, with its guards; inputs are the leaves of arguments, then captured arrays."""
        return self.path.own[0]

    @property
    def in_avals(self) -> tuple[Aval, ...]:
        """The dtypes and shapes of the leaves of the arguments."""
        return tuple(self._avals)

    @property
    def out_avals(self) -> tuple[Aval, ...]:
        """The dtypes and shapes of the leaves of the result."""
        return self.path.traced.out_avals

    @property
    def sources(self) -> list[Source]:
        """The lines of user code that the program comes from, in their order."""
        return list(dict.fromkeys(e.source for e in all_equations(self.program) if e.source is not None))

    @boundary
    def as_text(self, stage: str = "traced") -> str:
        """The program at a stage of its way to machine code, as `fnad dump` prints it.

        The stages are "traced", "simplified", "loops", "source", "llvm", "asm"; on a GPU
        "ptx" and "sass" in the place of these two. Raises `SettingError` for another one,
        `LoweringError` where there is no native code.
        """
        if stage not in STAGES:
            names = ", ".join(map(repr, STAGES))
            raise SettingError.here(f"there is no stage {stage!r}", remedy=f"give one of {names}")
        names = input_names(self._inputs, self.program)
        with config.on(self.path.device):
            return stage_text([(staged(program), names) for program in self.path.own], stage, self.path.guards)

    @boundary
    def compile(self) -> TracedCall:
        """The same, compiled now; what the compiler cannot lower stays interpreted."""
        for program in self.path.programs:
            program.native()
        return self

    @boundary
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        with config.on(self.path.device):
            return self._call(args, kwargs)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        arrays = self._arrays(args, kwargs)
        path = self.path
        try:
            if is_tracing():
                if path.guards:
                    raise GuardFailed(0, None)  # noqa: TRY301
                results = inlined(path.traced, [*arrays, *path.captured])
            else:
                results = list(map(to_user, path.run(arrays)))
        except GuardFailed as failure:
            where = path.guards[failure.args[0]].source
            raise OtherPathError.here(
                f"{function_name(self._f)} decides otherwise for these arguments, at {where}",
                remedy="call the compiled function itself, fnad.jit(f), which keeps all paths",
            ) from None
        if path.written:
            check_written(self._f, flatten((*args, *kwargs.values()))[0], path.written, path.outside, current_source())
        return path.output.rebuild(results)

    def operands(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Array]:
        """The inputs of the program for these arguments, captured arrays at their end."""
        return [*self._arrays(args, kwargs), *self.path.captured]

    def _arrays(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Array]:
        """The leaves of the arguments; raises `ArgumentTypeError` for others than it is for."""
        names = self.names[self._positional :]
        is_given = len(args) == self._positional and kwargs.keys() == set(names)
        trees = (*args, *[kwargs[name] for name in names]) if is_given else ()
        leaves, structure = leaves_of(trees, self.names.__getitem__)
        found = [leaf.aval for leaf in leaves]
        if is_given and structure == self.structure and found == self._avals:
            return [cast("Array", leaf.value) for leaf in leaves]
        raise ArgumentTypeError.here(
            f"the program of {function_name(self._f)} is for {_text(self.structure, self._avals)}, not for "
            f"{_text(structure, found) if is_given else 'so many arguments'}",
            remedy="call the compiled function itself, fnad.jit(f), which takes any; leave out static arguments here",
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TracedCall) and self._content == other._content

    def __hash__(self) -> int:
        return hash(content_key(self.program))

    @property
    def _content(self) -> Any:
        captured = [(array.dtype, array.shape, np.asarray(array).tobytes()) for array in self.path.captured]
        return content_key(self.program), self.structure, self.names, self.path.output, captured

    def __repr__(self) -> str:
        return self.as_text()

    def _repr_html_(self) -> str:
        return program_table(self.as_text())

    def __reduce__(self) -> Any:
        path, name = self.path, function_name(self._f)
        if path.guards or path.written:
            why = "decides by values" if path.guards else "writes into its arguments"
            raise PicklingError(f"the program of {name} {why}: pickle the function, or a program that does not")
        pickled = ProgramOfTrees(name, path.traced, self.names, self.structure, path.output, path.captured)
        return _traced_again, (pickled, self._positional, path.donated)


def _traced_again(pickled: ProgramOfTrees, positional: int, donated: tuple[int, ...]) -> TracedCall:
    """The traced call of a program that was pickled, without its function."""
    program, structure = pickled.program, pickled.structure
    path = TracedPath(program, (), pickled.captured, pickled.output, Environment(), (), (), donated)
    leaves = [Leaf(cast("Any", None), aval, False) for aval in program.in_avals[: structure.num_leaves]]
    f = cast("Any", SimpleNamespace(__name__=pickled.name))
    return TracedCall(f, path, structure, leaves, pickled.names, positional)


def _text(structure: Structure, avals: Sequence[Aval]) -> str:
    """The types of arguments: `({'w': f64[3]}, f64[])`."""
    words = iter(map(str, avals))
    return "".join(next(words) if letter == "*" else letter for letter in structure_text(structure))
