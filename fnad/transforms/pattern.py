"""Rules as data: an equation whose left side is matched, and an action that builds its right side.

    Rule("sub(x, neg(y)) = add(x, y)", lambda x, y: add(x, y))
    Rule("transpose(transpose(x, permutation=p), permutation=q) = transpose(x)", lambda x, p, q: ...)

    rule     ::= pattern = text for the reader
    pattern  ::= name                       any value; the same name twice is the same value
               | number                     a constant of that value to the bit, in any shape
               | constant(name)             any constant, in any shape; the name is bound to its scalar
               | finite(name)               a value that is never inf or nan
               | name := pattern            also names the value that the pattern matches
               | primitive(pattern, …, param=name, …)
               | primitive(pattern, …, *name, param=name, …)       the name is bound to the remaining operands

An action takes the bound values in the order in which the names first appear, and returns a symbol, or None if the rule
does not apply after all. A rule holds to the bit for *all* values of its dtypes, inf, nan and the signs of
zero included, unless it says up to what it holds. (The bits of a nan do not count.)
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import product
from typing import Any, NamedTuple, TypeAlias
from typing import Literal as OneOf

from fnad.codes import parsed
from fnad.ir.builder import atom_keys
from fnad.ir.primitive import PRIMITIVES, Primitive
from fnad.ir.program import Literal, Params
from fnad.ir.symbol import Symbol
from fnad.ir.types import Dtype
from fnad.ops.constructors import ANY
from fnad.ops.shape import broadcast_in_dim
from fnad.transforms.finite import is_finite
from fnad.transforms.rewrite import Head, Rewrite, application, constant_of, head_of

Bindings: TypeAlias = dict[str, Any]

CONSTANTS = Literal, broadcast_in_dim
"""The heads of values that are filled with a scalar."""


class OperandPattern(ABC):
    """The pattern of an operand."""

    @abstractmethod
    def match(self, symbol: Symbol, bindings: Bindings) -> bool:
        """True if a value matches; binds the names."""

    @abstractmethod
    def names(self) -> Iterable[str]:
        """The names in the order in which they are written."""

    def variants(self) -> Iterable[OperandPattern]:
        """The pattern with the operands of commutative primitives in each order."""
        return (self,)

    def takes(self, head: Head) -> bool:
        """False if no value with this head matches."""
        return True


@dataclass(frozen=True, slots=True, eq=False)
class Named(OperandPattern):
    """A value that is bound to a name."""

    name: str

    def names(self) -> Iterable[str]:
        return (self.name,)

    def match(self, symbol: Symbol, bindings: Bindings) -> bool:
        known = bindings.setdefault(self.name, symbol)
        return known is symbol or same_values([known], [symbol])


class Anything(Named):
    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class NumberPattern(OperandPattern):
    value: float | bool

    def names(self) -> Iterable[str]:
        return ()

    def takes(self, head: Head) -> bool:
        return head in CONSTANTS

    def match(self, symbol: Symbol, bindings: Bindings) -> bool:
        found = constant_of(symbol)
        return found is not None and found.tobytes() == found.dtype.type(self.value).tobytes()


class ConstantPattern(Named):
    __slots__ = ()

    def takes(self, head: Head) -> bool:
        return head in CONSTANTS

    def match(self, symbol: Symbol, bindings: Bindings) -> bool:
        found = constant_of(symbol)
        return found is not None and bindings.setdefault(self.name, found).tobytes() == found.tobytes()


class Finite(Named):
    __slots__ = ()

    def match(self, symbol: Symbol, bindings: Bindings) -> bool:
        return is_finite(symbol) and super().match(symbol, bindings)


@dataclass(frozen=True, slots=True, eq=False)
class Alias(Named):
    pattern: OperandPattern

    def names(self) -> Iterable[str]:
        return (self.name, *self.pattern.names())

    def match(self, symbol: Symbol, bindings: Bindings) -> bool:
        return Named.match(self, symbol, bindings) and self.pattern.match(symbol, bindings)

    def variants(self) -> Iterator[Alias]:
        return (Alias(self.name, pattern) for pattern in self.pattern.variants())

    def takes(self, head: Head) -> bool:
        return self.pattern.takes(head)


@dataclass(frozen=True, slots=True, eq=False)
class Application(OperandPattern):
    primitive: Primitive
    operands: tuple[OperandPattern, ...]
    params: tuple[tuple[str, str], ...]
    rest: str | None = None

    def names(self) -> Iterable[str]:
        yield from (name for operand in self.operands for name in operand.names())
        yield from () if self.rest is None else (self.rest,)
        yield from (name for _, name in self.params)

    def takes(self, head: Head) -> bool:
        return head is self.primitive

    def match(self, symbol: Symbol, bindings: Bindings) -> bool:
        found = application(symbol, self.primitive)
        return found is not None and self.match_parts(*found, bindings)

    def match_parts(self, operands: Sequence[Symbol], params: Params, bindings: Bindings) -> bool:
        """True if an equation of the pattern's primitive has these operands and params."""
        for param, name in self.params:
            if bindings.setdefault(name, params[param]) != params[param]:
                return False
        if self.rest is not None:
            left = operands[len(self.operands) :]
            if not same_values(bindings.setdefault(self.rest, left), left):
                return False
        for pattern, operand in zip(self.operands, operands, strict=self.rest is None):
            if not pattern.match(operand, bindings):
                return False
        return True

    def variants(self) -> Iterator[Application]:
        for operands in product(*(operand.variants() for operand in self.operands)):
            yield Application(self.primitive, operands, self.params, self.rest)
            if self.primitive.commutative:
                yield Application(self.primitive, operands[::-1], self.params, self.rest)


class Rule(NamedTuple):
    """An equation between values of the dtypes `on` (those of its first operand), read from left to right."""

    equation: str
    action: Callable[..., Symbol | None]
    on: frozenset[Dtype] = ANY
    up_to: OneOf["nothing", "the sign of zero", "rounding"] = "nothing"

    @property
    def pattern(self) -> Application:
        """The left side."""
        found = parse_pattern(self.equation.partition(" = ")[0])
        assert isinstance(found, Application)
        return found


def same_values(left: Sequence[Symbol], right: Sequence[Symbol]) -> bool:
    """True if two lists of symbols stand for the same values."""
    return atom_keys([symbol.atom for symbol in left]) == atom_keys([symbol.atom for symbol in right])


# ---- reading a pattern -------------------------------------------------------------------------------------------


def parse_pattern(text: str) -> OperandPattern:
    """The pattern that a text describes."""
    return _pattern(parsed(text, mode="eval").body)


def _pattern(node: ast.expr) -> OperandPattern:
    match node:
        case ast.Name(name):
            return Anything(name)
        case ast.Constant(bool() | int() | float() as value):
            return NumberPattern(value)
        case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as value)):
            return NumberPattern(-value)
        case ast.NamedExpr(ast.Name(name), value):
            return Alias(name, _pattern(value))
        case ast.Call(ast.Name("constant"), [ast.Name(name)], []):
            return ConstantPattern(name)
        case ast.Call(ast.Name("finite"), [ast.Name(name)], []):
            return Finite(name)
        case ast.Call(ast.Name(primitive), [*operands, ast.Starred(ast.Name(name))], keywords):
            return Application(PRIMITIVES[primitive], tuple(map(_pattern, operands)), _params(keywords), name)
        case ast.Call(ast.Name(primitive), operands, keywords):
            return Application(PRIMITIVES[primitive], tuple(map(_pattern, operands)), _params(keywords))
        case _:
            raise ValueError(f"no pattern: {ast.unparse(node)}")


def _params(keywords: Iterable[ast.keyword]) -> tuple[tuple[str, str], ...]:
    return tuple((str(keyword.arg), ast.unparse(keyword.value)) for keyword in keywords)


# ---- applying a table --------------------------------------------------------------------------------------------


def by_rules(rules: Sequence[Rule]) -> Rewrite:
    """The rewrite that applies the first rule of a table that fires.

    The rules of a primitive are parsed when its first equation is offered, and chosen by the heads of the operands.
    """
    by_name: defaultdict[str, list[Rule]] = defaultdict(list)
    for rule in rules:
        by_name[rule.equation.partition("(")[0]].append(rule)

    @cache
    def entries(name: str) -> Sequence[Entry]:
        return [
            (pattern, tuple(dict.fromkeys(rule.pattern.names())), rule)
            for rule in by_name[name]
            for pattern in rule.pattern.variants()
        ]

    @lru_cache(MOST_FITTING)
    def fitting(primitive: Primitive, heads: Sequence[Head]) -> Sequence[Entry]:
        return [
            entry
            for entry in entries(primitive.name)
            if entry[0].takes(primitive)
            and all(operand.takes(head) for operand, head in zip(entry[0].operands, heads, strict=False))
        ]

    def apply(primitive: Primitive, operands: Sequence[Symbol], params: Params) -> Symbol | None:
        if primitive.name not in by_name:
            return None
        for pattern, names, rule in fitting(primitive, tuple(map(head_of, operands[:HEADS]))):
            bindings: Bindings = {}
            if operands[0].dtype in rule.on and pattern.match_parts(operands, params, bindings):
                found = rule.action(*[bindings[name] for name in names])
                if found is not None:
                    return found
        return None

    return apply


Entry: TypeAlias = tuple[Application, tuple[str, ...], Rule]

HEADS = 3
"""The number of operands by whose heads rules are chosen; hardly any pattern has more."""

MOST_FITTING = 2**12
"""The most combinations of a primitive and heads whose rules are kept."""
