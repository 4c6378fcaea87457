"""User code compiled a second time, with hooks: calls, attributes, elements, iterations and `is` go through fnad.

A trace calls a twin of the user function, with the same globals, closure and defaults, and other code. The
other code is compiled from the source of the function, with hooks (`fnad.trace.rewriting`). They are a constant of the
code (`fnad.trace.hooks`), so no namespace changes. Tracebacks, debuggers and `inspect` show the user's source.

Note [Proof of source]
    The source of a function is used only if it is what runs. The unchanged source is compiled first, and its code
    object at that place has to equal the function's: instructions, names, constants and the table of positions, which
    tells two lambdas on one line apart. An edited file, a function that a decorator replaced and generated code fail
    that comparison and are not converted. So how the text of a function is found may be a guess: its own lines are
    tried first, then its file.
"""

from __future__ import annotations
import __future__

import ast
import functools
import keyword
import linecache
import operator
import re
import sys
import warnings
import weakref
from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import combinations, islice
from types import CodeType, FunctionType
from typing import Any

from fnad.codes import inner_codes, names_of, notes_of, original_of, parsed, with_code
from fnad.forks import lock
from fnad.trace.nodes import MARK
from fnad.trace.rewriting import Hooked
from fnad.trace.variables import FACTS, Facts


class Hooks:
    """Functions by name. Debuggers hash code, and with it this constant."""


HOOKS = Hooks()
"""The constant in converted code that has the hooks; `fnad.trace.hooks` fills it."""

FUTURES = functools.reduce(
    operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)
"""The flags of code that says which features of later versions it uses."""

Converted = dict[tuple[str, int], list[tuple[CodeType, CodeType]]]
"""Code objects as they are in a source, each with the converted one, by name and first line."""

_LOCK = lock()
"""Held while something is compiled: the filters of warnings are those of the process."""


# ---- the source ------------------------------------------------------------------------------------------------------


def indentation(line: str) -> int:
    """The number of characters before the first that is none of white space."""
    return len(line) - len(line.lstrip())


def is_code(line: str) -> bool:
    """True unless a line is empty, a comment or the end of a bracket, which say nothing by their indentation."""
    return line.strip()[:1] not in ("", "#", ")", "]", "}")


def headers_of(lines: Sequence[str], first: int) -> list[int]:
    """The lines around a line that are less indented than what they contain, outermost first, and the line itself."""
    found, depth = [first], indentation(lines[first])
    for i in range(first - 1, -1, -1):
        if depth == 0:
            break
        if is_code(lines[i]) and indentation(lines[i]) < depth:
            found.append(i)
            depth = indentation(lines[i])
    return found[::-1]


PARTIAL = ("try:", "except", "else:", "elif ", "finally:")
"""The begins of lines that are no statement without others."""


def text_around(lines: Sequence[str], first: int) -> str:
    """The text of the outermost function around a line, or of the statement, after as many empty lines as precede it.

    A method is put into a class with the name of its class, because private names depend on that name.
    """
    headers = headers_of(lines, first)
    start = next((i for i in headers if lines[i].lstrip().startswith(("def ", "async def "))), None)
    if start is None:
        outermost = 1 if lines[headers[0]].startswith(PARTIAL) and len(headers) > 1 else 0
        start = first if lines[first].lstrip().startswith("@") else headers[outermost]
    depth, end = indentation(lines[start]), start
    while end < len(lines) and lines[end].lstrip().startswith("@"):  # the decorators, each of which may have many lines
        end = next((i for i in range(end + 1, len(lines)) if _ends(lines[i], depth)), len(lines))
    end = next((i for i in range(max(end, first) + 1, len(lines)) if _ends(lines[i], depth)), len(lines))
    outer = [lines[i].split("(")[0].split(":")[0].strip() for i in headers if i < start]
    classes = [f"{' ' * i}{name}:\n" for i, name in enumerate(name for name in outer if name.startswith("class "))]
    if depth and not classes:
        classes = ["if True:\n"]
    return "".join(["\n" * (start - len(classes)), *classes, *lines[start:end]])


def _ends(line: str, depth: int) -> bool:
    return is_code(line) and indentation(line) <= depth


PYTESTS = "@pytest_ar"
"""A name in the code of asserts that pytest has rewritten."""

IMPORT = re.compile(r"^[ \t]*(?:lazy[ \t]+)?(?:from[ \t]+[\w.]+[ \t]+)?import[ \t]+(\([^)]*\)|[^\n#;]*)", re.MULTILINE)
_IMPORTED: dict[str, tuple[list[str], tuple[str, ...]]] = {}


def imported_in(file: str, lines: list[str]) -> tuple[str, ...]:
    """The names that the text of a file imports: the compiler calls attributes of modules in another way."""
    known = _IMPORTED.get(file)
    if known is None or known[0] is not lines:
        items = (item.split() for names in IMPORT.findall("".join(lines)) for item in names.strip("()").split(","))
        found = {item[-1].partition(".")[0] for item in items if item}
        known = _IMPORTED[file] = (
            lines,
            tuple(sorted(x for x in found if x.isidentifier() and not keyword.iskeyword(x))),
        )
    return known[1]


@functools.lru_cache(maxsize=16)
def compiled(text: str, file: str, flags: int, imported: tuple[str, ...], has_asserts: bool) -> Converted:
    """The code objects of a text, as it is and with hooks, in a module that imports these names.

    There are none of a text that is not Python. If it `has_asserts`, pytest has rewritten them. The results of the
    last calls are kept, because one statement may have many lambdas.
    """
    found: Converted = {}
    with _LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it was compiled before, with the warnings that the user has seen
        try:
            tree = parsed(text, file)
            if has_asserts:
                import_module("_pytest.assertion.rewrite").rewrite_asserts(tree, text.encode())
            if imported:
                tree.body[:0] = parsed(f"import {', '.join(imported)}").body
            own = compile(tree, file, "exec", flags, dont_inherit=True)
            other = compile(Hooked().visit(tree), file, "exec", flags, dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return found
    for pair in paired(own, other):
        found.setdefault(place_of(pair[0]), []).append(pair)
    return found


def paired(own: CodeType, other: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """The code objects in one, at any depth, each with that in the other at the same place."""
    for pair in each_pair(own, other):
        yield pair
        yield from paired(*pair)


def each_pair(own: CodeType, other: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """The code objects among the constants of one, each with that of the other at the same place."""
    places: dict[tuple[str, int], list[CodeType]] = {}
    for code in inner_codes(other):
        places.setdefault(place_of(code), []).append(code)
    for code in inner_codes(own):
        alike = places.get(place_of(code))
        if alike:
            yield code, alike.pop(0)


def place_of(code: CodeType) -> tuple[str, int]:
    """The name of what is defined, and its first line."""
    return code.co_qualname, code.co_firstlineno


# ---- the code of a function ------------------------------------------------------------------------------------------


def converted_code(code: CodeType, namespace: dict[str, Any]) -> CodeType | None:
    """The code of a function with hooks; None if its source is missing, or is not what runs."""
    notes = notes_of(code)
    if "converted" not in notes:
        notes["converted"] = None if "original" in notes else _convert(code, namespace)
    return notes["converted"]


def lines_of(file: str, namespace: dict[str, Any]) -> list[str]:
    """The lines of a file, or of the command that Python was started with."""
    command = sys.orig_argv[1:3]
    if file == "<string>" and command[0] == "-c":
        return command[1].splitlines(keepends=True)
    return linecache.getlines(file, namespace)


def _convert(code: CodeType, namespace: dict[str, Any]) -> CodeType | None:
    lines = lines_of(code.co_filename, namespace)
    first, flags = code.co_firstlineno - 1, code.co_flags & FUTURES
    if not 0 <= first < len(lines):
        return None
    text = text_around(lines, first)
    has_asserts = PYTESTS in code.co_names
    attempts = (
        compiled(text, code.co_filename, flags, names, has_asserts)
        for names in _imports_tried(code, imported_in(code.co_filename, lines))
    )
    other = next(filter(None, (_proved(code, found) for found in attempts)), None)
    if other is None:
        other = _proved(code, compiled("".join(lines), code.co_filename, flags, (), has_asserts))
    return None if other is None else with_hooks(other, code)


MOST = 16
"""The most sets of imported names that are tried, because the blocks of a page share a file."""


def _imports_tried(code: CodeType, imported: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The sets of imported names to compile code with: all of the file, then subsets of those that the code uses."""
    yield imported  # first, so that a statement with several functions is compiled once
    own = names_of(code)
    yield from islice(subsets([name for name in imported if name in own]), MOST)


def no_source(code: CodeType) -> str:
    """The sentence that code has no source, with the reason."""
    why = "its file has another text" if linecache.getlines(code.co_filename) else "its text is in no file"
    name = re.sub(r"(\.<locals>\.<(list|set|dict)comp>)+$", "", code.co_qualname)
    return f"{name} has no source that is what runs: {why}"


def is_generated(function: FunctionType) -> bool:
    """True for methods that `dataclasses` and `namedtuple` have made, which read attributes of arguments alone."""
    code, module = function.__code__, str(function.__globals__.get("__name__"))
    is_known = code.co_qualname.startswith("__create_fn__.") or module.startswith("namedtuple_")
    return code.co_filename == "<string>" and is_known


def subsets(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The subsets of some names but all of them: the empty one first, then the larger ones."""
    if names:
        yield ()
    for count in range(len(names) - 1, 0, -1):
        yield from combinations(names, count)


def _proved(code: CodeType, found: Converted) -> CodeType | None:
    """The converted code for that which equals a function's (Note [Proof of source])."""
    return next((other for own, other in found.get(place_of(code), ()) if is_same(own, code)), None)


def is_same(own: CodeType, code: CodeType) -> bool:
    """True if two code objects have the same instructions, names, constants and positions."""
    return own == code and own.co_qualname == code.co_qualname and own.co_linetable == code.co_linetable


def with_hooks(other: CodeType, own: CodeType) -> CodeType:
    """Converted code with the hooks in the place of their mark; notes which code it was made of."""
    originals = {id(there): here for here, there in each_pair(own, other)}
    inner = {id(code): with_hooks(code, originals.get(id(code), own)) for code in inner_codes(other)}
    constants = [
        HOOKS if c == MARK else _with_facts(c) if type(c) is tuple else inner.get(id(c), c) for c in other.co_consts
    ]
    made = other.replace(co_consts=tuple(constants))
    notes_of(made)["original"] = weakref.ref(own)
    notes_of(own)["converted"] = made
    return made


def _with_facts(constant: tuple[Any, ...]) -> tuple[Any, ...]:
    return Facts.of(*constant[1:]) if constant[:1] == (FACTS,) else constant


def facts_of(function: FunctionType) -> Facts | None:
    """The variables of outer scopes that a user function uses; None if there are none, or it is not converted."""
    code = converted_code(original_of(function.__code__), function.__globals__)
    return facts_in(code) if code else None


def facts_in(code: CodeType) -> Facts | None:
    """The variables of outer scopes that converted code uses."""
    return next((c for c in code.co_consts if type(c) is Facts), None)


def converted_text(text: str, mode: str) -> CodeType:
    """The code of a text for `eval` or `exec`, with hooks. Raises `SyntaxError` as Python does."""
    own = compile(text, "<string>", mode, dont_inherit=True)
    with _LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = compile(Hooked().visit(parsed(text, "<string>", mode)), "<string>", mode, dont_inherit=True)
    return with_hooks(other, own)


# ---- the text of converted code --------------------------------------------------------------------------------------


def text_with_hooks(function: FunctionType) -> str | None:
    """The source of a function with hooks, without decorators; None where `converted_code` is None."""
    code = function.__code__
    if converted_code(code, function.__globals__) is None:
        return None
    tree = parsed("".join(linecache.getlines(code.co_filename, function.__globals__)))
    found = node_of(code, Hooked().visit(tree))
    return None if found is None else ast.unparse(Shown().visit(found))


def node_of(code: CodeType, tree: ast.AST) -> ast.AST | None:
    """The definition in the syntax of a file that code was compiled from; its decorators are removed."""
    positions = set(code.co_positions())
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if (node.name, first) == (code.co_name, code.co_firstlineno):
                node.decorator_list = []
                return node
        elif isinstance(node, ast.Lambda) and code.co_name == "<lambda>":
            body = node.body
            if (body.lineno, body.end_lineno, body.col_offset, body.end_col_offset) in positions:
                return node
    return None


class Shown(ast.NodeTransformer):
    """Replaces the constants of hooks by what a reader understands: the name HOOKS, and a dict for facts."""

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        value: Any = node.value
        if value == MARK:
            return ast.Name("HOOKS", ast.Load())
        if type(value) is tuple and value[:1] == (FACTS,):
            _, of_module, of_functions = value
            return ast.Constant(dict((*of_module, *of_functions)))  # pyright: ignore[reportArgumentType]
        return node


# ---- twins -----------------------------------------------------------------------------------------------------------

TWINS: dict[FunctionType, FunctionType] = {}
"""The twins of functions; both are kept alive until no trace is under way (`fnad.trace.user_methods`)."""
_OWN: weakref.WeakKeyDictionary[FunctionType, weakref.ref[FunctionType]] = weakref.WeakKeyDictionary()
"""The functions of twins."""


def converted(function: FunctionType) -> FunctionType:
    """The twin of a function, which runs converted code; the function itself where there is none."""
    other = converted_code(function.__code__, function.__globals__)
    if other is None:
        return function
    twin = TWINS.get(function)
    if twin is None or twin.__code__ is not other:
        twin = TWINS[function] = with_code(function, other)
        _OWN[twin] = weakref.ref(function)
    if twin.__defaults__ is not function.__defaults__ or twin.__kwdefaults__ is not function.__kwdefaults__:
        twin.__defaults__, twin.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    return twin


def own_function(value: Any) -> Any:
    """The user's function that a twin was made of; any other value itself."""
    if type(value) is not FunctionType or original_of(value.__code__) is value.__code__:
        return value
    own = _OWN.get(value)
    return (own and own()) or value


def unconverted(value: Any) -> Any:
    """A function without hooks, of one that was made while converted code ran; any other value itself."""
    if not isinstance(value, FunctionType):
        return value
    code = original_of(value.__code__)
    return value if code is value.__code__ else with_code(value, code)
