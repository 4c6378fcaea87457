"""Printed kernels read back: text to typed statements.

A kernel's text is a Python function, so Python's parser reads it; the types are added. Parameters are flat arrays of
given dtypes (`counters`, `stacks` and `status` of i64); a variable has the kind of its first value. Python's literals
are i64, f64 and bool_.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad.backends.cpu.compiler import NativeFunction, compile_kernel
from fnad.kernel.prelude import SPELLINGS
from fnad.kernel.python_source import WORDS
from fnad.kernel.routines import routine_named
from fnad.kernel.statements import (
    Apply,
    Assign,
    Break,
    Constant,
    Evaluate,
    Expression,
    For,
    If,
    Kernel,
    Load,
    LoopKind,
    Name,
    Return,
    Statement,
    Store,
    While,
    apply,
    integer,
)
from fnad.scalar.operation import INDEX, Dtype, OperandError, Pointer
from fnad.scalar.operations import BINARY, DTYPES, UNARY
from fnad.scalar.template import SIGNS, number_of

KINDS = {word: kind for kind, word in WORDS.items()}


def parse_kernel(source: str, name: str, parameters: Sequence[Dtype]) -> Kernel:
    """The kernel `name` of a text, whose parameters are flat arrays of these dtypes."""
    functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef) and node.name == name]
    arguments = [argument.arg for argument in functions[0].args.args]
    names = tuple(Name(a, Pointer(np.dtype(d))) for a, d in zip(arguments, parameters, strict=True))
    reader = _Reader({n.name: n for n in names})
    return Kernel(name, names, reader.block(functions[0].body))


def compile_source(source: str, name: str, parameters: Sequence[Dtype]) -> NativeFunction:
    """Compile the printed kernel `name`, whose parameters are flat arrays of these dtypes."""
    return compile_kernel(parse_kernel(source, name, parameters))


class _Reader:
    def __init__(self, names: dict[str, Name]) -> None:
        self.names = names

    def block(self, nodes: Sequence[ast.stmt]) -> list[Statement]:
        return [statement for node in nodes for statement in self.statement(node)]

    def statement(self, node: ast.stmt) -> list[Statement]:
        match node:
            case ast.Assign([target], value):
                return self._assignment(target, value)
            case ast.For(ast.Name(counter), ast.Call(ast.Name(kind), bounds), body):
                return [self._for(counter, bounds, body, kind)]
            case ast.While(test, body):
                return [While([*self._ending(test), *self.block(body)])]
            case ast.If():
                return [self._if(node)]
            case ast.Expr(ast.Call() as call):
                found = self.expression(call)
                assert isinstance(found, Apply)
                return [Evaluate(found)]
            case ast.Break() | ast.Return():
                return [Break() if isinstance(node, ast.Break) else Return()]
            case ast.Pass():
                return []
            case _:
                raise OperandError(f"a kernel has no statement like {ast.unparse(node)}")

    def _ending(self, test: ast.expr) -> list[Statement]:
        """The statements that end a loop where its test fails, before each iteration."""
        if isinstance(test, ast.Constant):
            return []
        return [If(apply(UNARY["not"], self.expression(test)), [Break()])]

    def _if(self, node: ast.If) -> If:
        """A branch; each part of a conjunction is computed only where those before it hold."""
        match node.test:
            case ast.BoolOp(ast.And(), [first, *others]) if not node.orelse:
                rest = others[0] if len(others) == 1 else ast.BoolOp(ast.And(), others)
                return If(self.expression(first), [self._if(ast.If(rest, node.body, []))])
            case test:
                return If(self.expression(test), self.block(node.body), self.block(node.orelse))

    def _assignment(self, target: ast.expr, value: ast.expr) -> list[Statement]:
        match target, value:
            case ast.Tuple(targets), ast.Tuple(values):
                return [self._assign(t, self.expression(v)) for t, v in zip(targets, values, strict=True)]
            case ast.Tuple(targets), _:
                return [self._assign_all(targets, self.expression(value))]
            case _:
                return [self._assign(target, self.expression(value))]

    def _assign(self, target: ast.expr, value: Expression) -> Statement:
        if isinstance(target, ast.Subscript):
            array, index = self.expression(target.value), self.expression(target.slice)
            assert isinstance(array, Name)
            return Store(array, index, stored(array, index, value))
        return Assign((self._name(target, value.kind),), value)

    def _assign_all(self, targets: Sequence[ast.expr], value: Expression) -> Statement:
        assert isinstance(value.kind, tuple)
        return Assign(tuple(self._name(t, kind) for t, kind in zip(targets, value.kind, strict=True)), value)

    def _name(self, target: ast.expr, kind: Any) -> Name:
        assert isinstance(target, ast.Name)
        name = self.names.setdefault(target.id, Name(target.id, kind))
        if name.kind != kind:
            raise OperandError(f"{target.id} is of {name.kind}, and is assigned a value of {kind}: cast it first")
        return name

    def _for(self, counter: str, bounds: Sequence[ast.expr], body: Sequence[ast.stmt], kind: str) -> For:
        given = [self.expression(bound) for bound in bounds]
        start, stop = (integer(0), given[0]) if len(given) == 1 else given[:2]
        step = int(given[2].value) if len(given) == 3 and isinstance(given[2], Constant) else 1
        name = self.names.setdefault(counter, Name(counter, INDEX))
        return For(name, start, stop, step, self.block(body), KINDS.get(kind, LoopKind.PLAIN))

    def expression(self, node: ast.expr) -> Expression:
        number = number_of(node)
        if number is not None:
            return Constant(np.result_type(number).type(number))
        match node:
            case ast.Constant(value=bool() as value):
                return Constant(np.bool_(value))
            case ast.Name(id=name):
                return self.names[name]
            case ast.Subscript(array, index):
                return load(self.expression(array), self.expression(index))
            case ast.UnaryOp(op, operand):
                return apply(UNARY[SIGNS[type(op)]], self.expression(operand))
            case ast.BinOp(left, op, right) | ast.Compare(left, [op], [right]):
                return apply(BINARY[SIGNS[type(op)]], self.expression(left), self.expression(right))
            case ast.BoolOp(op, values):
                return self._all(values, BINARY["&" if isinstance(op, ast.And) else "|"])
            case ast.Call(ast.Name(name), operands):
                return self._call(name, operands)
            case _:
                raise OperandError(f"a kernel has no expression like {ast.unparse(node)}")

    def _all(self, values: Sequence[ast.expr], operation: Any) -> Expression:
        first, *others = map(self.expression, values)
        for other in others:
            first = apply(operation, first, other)
        return first

    def _call(self, name: str, operands: Sequence[ast.expr]) -> Expression:
        if name in DTYPES and (number := number_of(operands[0])) is not None:
            return Constant(DTYPES[name].type(number))
        if name == "bool_" and isinstance(operands[0], ast.Constant):
            return self.expression(operands[0])
        operation = SPELLINGS.get(name) or routine_named(name)
        if operation is None:
            raise OperandError(f"a kernel cannot call {name}")
        return apply(operation, *map(self.expression, operands))


def load(array: Expression, index: Expression) -> Load:
    """An element of an array."""
    if not isinstance(array, Name) or not isinstance(array.kind, Pointer) or index.kind != INDEX:
        raise OperandError(f"a load takes an array and an i64 index, not {array.kind} and {index.kind}")
    return Load(array, index)


def stored(array: Name, index: Expression, value: Expression) -> Expression:
    """The value, which must have the array's dtype."""
    if load(array, index).kind != value.kind:
        raise OperandError(f"a value of dtype {value.kind} is stored in {array.kind}: cast it first")
    return value
