"""The remedies that the package's errors may have, from its source.

They are the strings in `remedy=…` and what is passed in that place by position, in assignments to `remedy`, in dicts
under "remedy", in constants that any of these name, and in what functions named for remedies return.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import product
from pathlib import Path

import fnad

ANYTHING = ast.parse("f'{x}'", mode="eval").body
PACKAGE = Path(fnad.__file__).parent
READ = (ast.keyword, ast.Assign, ast.AugAssign, ast.Dict, ast.FunctionDef, ast.ClassDef, ast.Call, ast.ImportFrom)
"""The kinds of nodes that are read."""
Takers = Mapping[str, int]
"""The functions and classes that take a remedy by position, and at which."""


@cache
def remedies() -> dict[str, str]:
    """Each remedy as a regular expression, with the place where it stands."""
    found: dict[str, str] = {}
    texts = {_name(file): file.read_text() for file in sorted(PACKAGE.rglob("*.py"))}
    modules = {name: _read(text) for name, text in texts.items() if "remedy" in text}
    takers = {name: dict(_takers(within)) for name, (_, within) in modules.items()}
    names = "|".join({name for within in takers.values() for name in within})
    called = re.compile(rf"\bFailureKind\.|(?<![.\w])({names})\(")
    modules |= {name: _read(text) for name, text in texts.items() if name not in modules and called.search(text)}
    for name, (module, within) in modules.items():
        constants = dict(_constants(module))
        for expression in _expressions(within, takers.get(name, {}) | dict(_imported(within, takers))):
            for pattern in _patterns(expression, constants):
                found.setdefault(pattern, f"{name}:{expression.lineno}")
    return {pattern: place for pattern, place in found.items() if re.search("[a-z]{3}", pattern)}


def _read(text: str) -> tuple[ast.Module, list[ast.AST]]:
    """The tree of a module, and its nodes of the kinds that are read."""
    module = ast.parse(text)
    return module, [node for node in ast.walk(module) if isinstance(node, READ)]


def _name(file: Path) -> str:
    return ".".join(["fnad", *file.relative_to(PACKAGE).with_suffix("").parts])


def _constants(module: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for statement in module.body:
        match statement:
            case ast.Assign([ast.Name(name)], value) | ast.AnnAssign(ast.Name(name), _, ast.expr() as value):
                yield name, value
            case _:
                pass


def _takers(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, int]]:
    for node in nodes:
        match node:
            case ast.ClassDef(name, body=body):
                fields = [f.target.id for f in body if isinstance(f, ast.AnnAssign) and isinstance(f.target, ast.Name)]
                made = next((f for f in body if isinstance(f, ast.FunctionDef) and f.name == "__init__"), None)
                names = fields if made is None else [argument.arg for argument in made.args.args[1:]]
            case ast.FunctionDef(name, arguments):
                names = [argument.arg for argument in arguments.args]
            case _:
                continue
        if "remedy" in names and not name.startswith("__"):
            yield name, names.index("remedy")


def _imported(nodes: Iterable[ast.AST], takers: Mapping[str, Takers]) -> Iterator[tuple[str, int]]:
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            known = takers.get(node.module or "", {})
            yield from ((alias.name, known[alias.name]) for alias in node.names if alias.name in known)


def _expressions(nodes: Iterable[ast.AST], takers: Takers) -> Iterator[ast.expr]:
    """What has a remedy as its value."""
    for node in nodes:
        match node:
            case ast.keyword("remedy", value):
                yield value
            case ast.Assign([ast.Name("remedy")], value):
                yield value
            case ast.AugAssign(ast.Name("remedy"), _, value):
                yield ast.BinOp(ANYTHING, ast.Add(), value, lineno=node.lineno)
            case ast.Assign([ast.Tuple([_, ast.Name("remedy")])], ast.Tuple([_, value])):
                yield value
            case ast.Dict(keys, values):
                pairs = zip(keys, values, strict=True)
                yield from (v for k, v in pairs if isinstance(k, ast.Constant) and k.value == "remedy")
            case ast.FunctionDef(name=name) if "remedy" in name:
                yield from (n.value for n in ast.walk(node) if isinstance(n, ast.Return) and n.value is not None)
            case ast.Call(ast.Name(name), given) if len(given) > takers.get(name, len(given)):
                yield given[takers[name]]
            case ast.Call(ast.Attribute(ast.Attribute(ast.Name("FailureKind")), "of"), [_, last]):
                yield last
            case _:
                pass


def _patterns(expression: ast.expr, constants: Mapping[str, ast.expr]) -> Iterator[str]:
    match expression:
        case ast.Constant(str(text)):
            yield re.escape(text)
        case ast.JoinedStr(parts):
            yield "".join(re.escape(str(part.value)) if isinstance(part, ast.Constant) else ".*" for part in parts)
        case ast.BinOp(left, ast.Add(), right):
            yield from map("".join, product(_patterns(left, constants), _patterns(right, constants)))
        case _:
            for part in _parts(expression, constants):
                yield from _patterns(part, constants)


def _parts(expression: ast.expr, constants: Mapping[str, ast.expr]) -> Iterable[ast.expr]:
    """The expressions whose value one may have."""
    match expression:
        case ast.IfExp(_, first, second):
            return first, second
        case ast.BoolOp(_, values) | ast.Dict(_, values) | ast.Tuple(values):
            return values
        case ast.Name() | ast.Subscript() | ast.Call():
            named = {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}
            return [constants[name] for name in sorted(named & constants.keys())]
        case _:
            return ()
