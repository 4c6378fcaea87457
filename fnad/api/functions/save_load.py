"""Exported programs in files: `save` and `load`.

A file is JSON, with the program as text. Reading it runs no code: containers, arrays and the program are built by this
file and the parser alone.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fnad.api.functions.export import Exported, Sized, Sizes, check_names_of_sizes, check_sizes, sized, write_files
from fnad.api.staging.leaves import Array, flatten
from fnad.api.staging.stage import Output
from fnad.backends.keys import is_told
from fnad.errors import ExportError, FnadError
from fnad.ir.printer import print_program
from fnad.ir.program import Program
from fnad.ir.types import DTYPES, NAMES
from fnad.ir.walk import all_equations
from fnad.tracebacks import boundary
from fnad.version import __version__

FORMAT = 2
"""The version of the format of files."""

WITHOUT_SIZES = 1
"""The version that has all but programs for all sizes."""


@boundary
def save(file: str | Path, exported: Exported, *, force: bool = False) -> None:
    """Write an exported program to a file, for `load` in a process that does not have the function.

    Parameters:
        file (str or Path): The file to write.
        exported (Exported): The result of `fnad.export`.
        force (bool): Replace a file that is there.
    Returns:
        None: The file has text in JSON.
    Raises:
        ExportError: If the file exists, if the program calls functions of this process, or if a pytree has other
            containers than tuples, lists and dicts with strings and integers as keys.
    Examples:
        >>> import tempfile, numpy as np, fnad
        >>> file = tempfile.mkdtemp() + "/gradient.json"
        >>> fnad.save(file, fnad.export(fnad.grad(lambda x: np.sum(x**2)), np.ones(2)))
        >>> fnad.load(file)(np.array([1.0, 2.0]))
        array([2., 4.])
    """
    write_files({Path(file): saved_text(exported).encode()}, force)


def saved_text(exported: Exported) -> str:
    """The text of a file with an exported program."""
    programs = [exported.program, *(one.program for one in (exported.sizes.ways if exported.sizes else ()))]
    if not all(is_told(equation) for program in programs for equation in all_equations(program)):
        raise ExportError(f"{exported.name} calls functions of this process", remedy="leave callbacks out of it")
    content = {
        "format": WITHOUT_SIZES,
        "fnad": __version__,
        "name": exported.name,
        "parameters": list(exported.names),
        "arguments": _described(exported.structure.unflatten([LEAF] * exported.structure.num_leaves)),
        "result": _described(exported.output.structure.unflatten([LEAF] * exported.output.structure.num_leaves)),
        "arrays": sorted(exported.output.arrays),
        "halves": sorted(exported.output.halves),
        **_code(exported.program, exported.captured),
    }
    if exported.sizes is not None:
        content["format"], content["sizes"] = FORMAT, _sizes_text(exported.sizes)
    return json.dumps({**content, "digest": _digest(content)}, indent=1)


@boundary
def load(file: str | Path) -> Exported:
    """The program in a file that `save` wrote. Nothing of the file is run while it is read.

    Parameters:
        file (str or Path): The file to read.
    Returns:
        Exported: The program; call it, or write it in another form.
    Raises:
        ExportError: If the file has been cut or changed, or is of a later version of fnad.
        OSError: If the file cannot be read.
    Examples:
        See `fnad.save`.

        >>> import fnad
        >>> fnad.load("no_such_file")
        Traceback (most recent call last):
        FileNotFoundError: [Errno 2] No such file or directory: 'no_such_file'
    """
    text = Path(file).read_bytes()
    try:
        return _read(_checked(json.loads(text)))
    except (FnadError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise ExportError.here(
            f"{file} is not a program that fnad.save wrote: {str(error).partition(chr(10))[0]:.100}", remedy=WRITE_AGAIN
        ) from None


WRITE_AGAIN = "write it again by fnad.save"


def _checked(content: Any) -> Any:
    """The content of a file of a known format that has not been changed; raises some error otherwise."""
    if content["format"] > FORMAT:
        raise ValueError(f"fnad {content['fnad']!s:.20} wrote it, which is later than {__version__}")
    if content.pop("digest") != _digest(content):
        raise ValueError("it was changed after it was written")
    return content


def _read(content: Any) -> Exported:
    """The program of a file's content; raises some error if it is not one."""
    sizes = content.get("sizes", {"names": [], "small": []})
    open_names = list(map(_word, sizes["names"]))
    check_names_of_sizes(open_names)
    ways = [_way(open_names, {**content, **sizes, "fixed": {}}), *(_way(open_names, one) for one in sizes["small"])]
    program, captured = ways[0].program, ways[0].captured
    structure = flatten(tuple(_rebuilt(content["arguments"])))[1]
    result = flatten(_rebuilt(content["result"]))[1]
    names = list(map(str, content["parameters"]))
    for way in ways:
        inputs = [(array.dtype, array.shape) for array in way.captured]
        if [(aval.dtype, aval.shape) for aval in way.program.in_avals[structure.num_leaves :]] != inputs:
            raise ValueError("the captured arrays are not those of the program")
    if result.num_leaves != len(program.outputs) or structure.num_children != len(names):
        raise ValueError("the program has other arguments or results")
    output = Output(result, frozenset(map(int, content["arrays"])), frozenset(map(int, content["halves"])))
    exported = Exported(_word(content["name"]), program, list(map(_word, names)), structure, output, captured)
    if open_names:
        exported.sizes = Sizes(open_names, ways)
        check_sizes(exported, exported.sizes)
    return exported


def _sizes_text(sizes: Sizes) -> dict[str, Any]:
    """The sizes of a program for all sizes, with the programs for small ones."""
    small = [
        {"fixed": way.fixed, "intervals": way.intervals, **_code(way.program, way.captured)} for way in sizes.ways[1:]
    ]
    return {"names": sizes.names, "intervals": sizes.ways[0].intervals, "small": small}


def _code(program: Program, captured: Sequence[Array]) -> dict[str, Any]:
    """A program with its captured arrays, as text."""
    return {"program": print_program(program).split("\n"), "captured": list(map(_array_text, captured))}


def _way(names: Sequence[str], described: Any) -> Sized:
    """A program in which sizes of these names are numbers, or in intervals."""
    fixed = {name: int(n) for name, n in described["fixed"].items() if name in names}
    intervals = {name: (int(low), int(high)) for name, (low, high) in described.get("intervals", {}).items()}
    text, captured = "\n".join(described["program"]), list(map(_array, described["captured"]))
    return sized(text, captured, names, fixed, intervals)


def _word(name: str) -> str:
    """A name that is a word, as names in source code are."""
    if not str(name).isidentifier():
        raise ValueError(f"{name!r} is not a name")
    return str(name)


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


# ---- pytrees ---------------------------------------------------------------------------------------------------------

LEAF = "leaf"


def _described(tree: Any) -> Any:
    """A pytree of `LEAF` in JSON: the kind of the container, and its children."""
    if tree is None or tree is LEAF:
        return tree
    if type(tree) in (tuple, list):
        return [type(tree).__name__, *map(_described, tree)]
    if type(tree) is dict and all(type(key) in (str, int) for key in tree):
        return ["dict", *[[key, _described(child)] for key, child in tree.items()]]
    raise ExportError.here(f"a file has no {type(tree).__name__}", remedy="use tuples, lists and dicts")


def _rebuilt(described: Any) -> Any:
    if described is None or described == LEAF:
        return described
    kind, *children = described
    if kind == "dict":
        return {_key(key): _rebuilt(child) for key, child in children}
    build: Callable[[Any], Any] = {"tuple": tuple, "list": list}[kind]
    return build(map(_rebuilt, children))


def _key(key: Any) -> str | int:
    if type(key) not in (str, int):
        raise ValueError(f"a key is {type(key).__name__}")
    return key


# ---- arrays ----------------------------------------------------------------------------------------------------------


def _array_text(array: Array) -> dict[str, Any]:
    data = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    return {"dtype": NAMES[array.dtype], "shape": list(array.shape), "data": base64.b64encode(data).decode()}


def _array(described: Any) -> Array:
    dtype = DTYPES[described["dtype"]]
    data = base64.b64decode(described["data"], validate=True)
    return np.frombuffer(data, dtype.newbyteorder("<")).reshape(list(map(int, described["shape"]))).astype(dtype)
