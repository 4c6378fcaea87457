"""Native code from functions in a small part of Python: what is not a kernel but reads objects or shares work.

    module    ::= [function], with the names of its Python module: integers are constants, `StaticMemory` is an address
    function  ::= def name(parameters): [statement]; `...` if it is a C function or one of another module
    statement ::= variable = e | e[e] = e | e | return e | break | continue
                | if/elif/else | while | for n in range(e) | match e, with integers as cases
    e         ::= integer | variable | e[e] | e + e … | e < e | e and e | not e | e if e else e | function(e, …)

Every value is a word of 64 bits: an integer with a sign, or an address. `e[n]` is the word n places behind the address.
`//`, `%` and `>>` are those of numbers without a sign. A variable that is called is the address of a function of words.
C functions may take and return other types, which their annotations name. The code that results has each variable in
registers, so LLVM generates instructions without any passes before.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeAlias, cast

import llvmlite.binding as llvm
import llvmlite.ir as ir

from fnad.backends.cpu.codegen import HIGHEST
from fnad.backends.cpu.loader import Engine, key_of, link, object_code
from fnad.backends.llvm.emitter import Value
from fnad.codes import parsed

Word: TypeAlias = Any
Int: TypeAlias = Any
Double: TypeAlias = Any
"""The annotations of words, among them pointers, and of what C calls `int` and `double`, which can only be stored."""

WORD, INT = ir.IntType(64), ir.IntType(32)
TYPES = {"Word": WORD, "Int": INT, "Double": ir.DoubleType(), "None": ir.VoidType()}
OPERATIONS: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.FloorDiv: "udiv", ast.Mod: "urem", ast.LShift: "shl",
    ast.RShift: "lshr", ast.BitAnd: "and_", ast.BitOr: "or_", ast.BitXor: "xor",
}  # fmt: skip
SIGNS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class StaticMemory:
    """Memory of so many words, all 0 in the beginning, or what another module or Python has under the name."""

    words: int
    is_elsewhere: bool = False


def _at(builder: ir.IRBuilder, address: Value, type_: ir.Type = WORD) -> Value:
    return builder.inttoptr(address, type_.as_pointer())


INSTRUCTIONS: dict[str, Callable[..., Any]] = {
    "room": lambda builder, words: builder.ptrtoint(builder.alloca(WORD, words), WORD),
    "int_at": lambda builder, place: builder.sext(builder.load(_at(builder, place, INT)), WORD),
    "least": lambda builder, a, b: builder.select(builder.icmp_signed("<", a, b), a, b),
    "largest": lambda builder, a, b: builder.select(builder.icmp_signed(">", a, b), a, b),
    "load_relaxed": lambda builder, place: builder.load_atomic(_at(builder, place), "monotonic", 8),
    "store_relaxed": lambda builder, place, x: builder.store_atomic(x, _at(builder, place), "monotonic", 8),
    "store_release": lambda builder, place, x: builder.store_atomic(x, _at(builder, place), "release", 8),
    "add_relaxed": lambda builder, place, x: builder.atomic_rmw("add", _at(builder, place), x, "monotonic"),
    "exchange_acquire": lambda builder, place, x: builder.atomic_rmw("xchg", _at(builder, place), x, "acquire"),
}
"""The functions that are instructions.

`room` is words on the stack, `int_at` the C `int` at an address. The last four are atomic, the last two return the word
that was there before.
"""

room = int_at = least = largest = load_relaxed = store_relaxed = store_release = add_relaxed = exchange_acquire = cast(
    Any, None
)


def linked(exports: Sequence[str], *modules: ModuleType, level: int = HIGHEST) -> Engine:
    """The code of modules in this process, generated at a `level`, with the addresses of the functions `exports`."""
    key = key_of(" ".join(module.__name__ for module in modules))  # sources of fnad are part of each key
    return link(object_code(key, lambda: llvm.parse_assembly(llvm_text(exports, *modules)), level))


def llvm_text(exports: Sequence[str], *modules: ModuleType) -> str:
    """The functions of modules as LLVM code; each may call those of the others."""
    code = ir.Module("native")
    code.triple = ""
    names: dict[str, Any] = {}
    nodes: list[ast.FunctionDef] = []
    for module in modules:
        names |= vars(module)
        nodes += [node for node in parsed(inspect.getsource(module)).body if isinstance(node, ast.FunctionDef)]
    functions: dict[str, ir.Function] = {}
    for node in nodes:
        if node.name not in functions:
            functions[node.name] = _declared(code, node)
    for node in nodes:
        if not _is_declared(node):
            functions[node.name].linkage = "" if node.name in exports else "internal"
            _FunctionWriter(functions, names, code).write(node)
    return str(code)


def _declared(code: ir.Module, node: ast.FunctionDef) -> ir.Function:
    """The function of a definition; in our own ones all is a word."""
    annotated = [argument.annotation for argument in node.args.args]
    result, *parameters = (TYPES[ast.unparse(a)] if a is not None else WORD for a in (node.returns, *annotated))
    return ir.Function(code, ir.FunctionType(result, parameters), node.name)


class _Label:
    """A block, and with which variables it is reached from which blocks."""

    def __init__(self, block: ir.Block) -> None:
        self.block = block
        self.edges: list[tuple[ir.Block, Mapping[str, Value]]] = []


class _FunctionWriter:
    """Writes a function; `values` are the variables at the end of the block that is written."""

    def __init__(self, functions: Mapping[str, ir.Function], names: Mapping[str, Any], code: ir.Module) -> None:
        self.functions, self.names, self.code = functions, names, code
        self.values: Mapping[str, Value] = {}
        self.loops: list[tuple[_Label, _Label]] = []

    def write(self, node: ast.FunctionDef) -> None:
        self.function = self.functions[node.name]
        self.builder = ir.IRBuilder(self.function.append_basic_block())
        self.values = dict(zip([argument.arg for argument in node.args.args], self.function.args, strict=True))
        self.block(node.body)
        if not self.builder.block.is_terminated:
            self.builder.ret_void()

    # ---- blocks ------------------------------------------------------------------------------------------------------

    def label(self) -> _Label:
        return _Label(self.function.append_basic_block())

    def jump(self, label: _Label) -> None:
        if not self.builder.block.is_terminated:
            label.edges.append((self.builder.block, self.values))
            self.builder.branch(label.block)

    def enter(self, label: _Label) -> None:
        """Continue at a label, with the variables that each way to it has."""
        self.builder.position_at_end(label.block)
        first, *others = [values for _, values in label.edges]
        shared = [name for name in first if all(name in values for values in others)]
        self.values = {name: self.merged(name, label) for name in shared}

    def merged(self, name: str, label: _Label) -> Value:
        """A variable at a label, a phi if the ways to it have different values."""
        found = [(values[name], block) for block, values in label.edges]
        first = found[0][0]
        if all(value is first for value, _ in found):
            return first
        phi = self.builder.phi(first.type)
        for value, block in found:
            phi.add_incoming(value, block)
        return phi

    # ---- statements --------------------------------------------------------------------------------------------------

    def block(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if self.builder.block.is_terminated:
                return
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:  # noqa: C901 - a case for each kind
        match node:
            case ast.Assign([ast.Name(name)], value):
                self.values = {**self.values, name: self.value(value)}
            case ast.Assign([ast.Subscript(place, index)], value):
                found = self.value(value)
                self.builder.store(found, self.place(place, index, found.type))
            case ast.Expr(ast.Constant()) | ast.Pass():
                pass
            case ast.Expr(value):
                self.value(value)
            case ast.Return(value):
                self.builder.ret(self.value(value)) if value is not None else self.builder.ret_void()
            case ast.Break() | ast.Continue():
                self.jump(self.loops[-1][isinstance(node, ast.Continue)])
            case ast.If():
                self.branch(node)
            case ast.While():
                self.loop(node.test, node.body)
            case ast.For(ast.Name(name), ast.Call(ast.Name("range"), [stop]), body) if not _continues(body):
                self.values = {**self.values, f"end of {name}": self.value(stop), name: WORD(0)}
                test = ast.Compare(ast.Name(name), [ast.Lt()], [ast.Name(f"end of {name}")])
                self.loop(test, [*body, _statement(f"{name} = {name} + 1")])
            case ast.Match():
                self.cases(node)
            case _:
                raise SyntaxError(f"native code has no {ast.unparse(node)}")

    def branch(self, node: ast.If) -> None:
        then, otherwise, end = self.label(), self.label(), self.label()
        self.test(node.test, then, otherwise)
        for label, body in ((then, node.body), (otherwise, node.orelse)):
            self.enter(label)
            self.block(body)
            self.jump(end)
        self.leave(end)

    def leave(self, end: _Label) -> None:
        """Continue at the end of branches, unless none of them comes there."""
        if end.edges:
            self.enter(end)
        else:
            self.function.blocks.remove(end.block)

    def loop(self, test: ast.expr, body: Sequence[ast.stmt]) -> None:
        top, inside, end = self.label(), self.label(), self.label()
        self.jump(top)
        self.builder.position_at_end(top.block)
        changed = {n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        phis = {name: self.builder.phi(WORD) for name in self.values if name in changed}
        self.values = {**self.values, **phis}
        self.test(test, inside, end)
        self.loops.append((end, top))
        self.enter(inside)
        self.block(body)
        self.jump(top)
        self.loops.pop()
        for block, values in top.edges:
            for name, phi in phis.items():
                phi.add_incoming(values[name], block)
        self.leave(end)

    def cases(self, node: ast.Match) -> None:
        before, kind = self.values, self.value(node.subject)
        default, end = self.label(), self.label()
        switch, start = self.builder.switch(kind, default.block), self.builder.block
        for case in node.cases:
            label = default if isinstance(case.pattern, ast.MatchAs) else self.label()
            for pattern in getattr(case.pattern, "patterns", [case.pattern]):
                if isinstance(pattern, ast.MatchValue):
                    switch.add_case(self.value(pattern.value), label.block)
            label.edges.append((start, before))
            self.enter(label)
            self.block(case.body)
            self.jump(end)
        self.leave(end)

    # ---- tests -------------------------------------------------------------------------------------------------------

    def test(self, node: ast.expr, then: _Label, otherwise: _Label) -> None:
        """Go where a condition leads; of `and` and `or` the second part is computed only if it decides."""
        match node:
            case ast.Constant(True):
                self.jump(then)
            case ast.UnaryOp(ast.Not(), inner):
                self.test(inner, otherwise, then)
            case ast.BoolOp(operation, [*earlier, last]):
                for part in earlier:
                    rest = self.label()
                    ways = (rest, otherwise) if isinstance(operation, ast.And) else (then, rest)
                    self.test(part, *ways)
                    self.enter(rest)
                self.test(last, then, otherwise)
            case ast.Compare(left, [operator], [right]):
                self.choose(self.compared(left, operator, right), then, otherwise)
            case _:
                self.choose(self.builder.icmp_signed("!=", self.value(node), WORD(0)), then, otherwise)

    def choose(self, condition: Value, then: _Label, otherwise: _Label) -> None:
        for label in (then, otherwise):
            label.edges.append((self.builder.block, self.values))
        self.builder.cbranch(condition, then.block, otherwise.block)

    def compared(self, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> Value:
        return self.builder.icmp_signed(SIGNS[type(operator)], self.value(left), self.value(right))

    def chosen(self, test: ast.expr, values: Sequence[Callable[[], Value]]) -> Value:
        """One of two values, of which only that one is computed."""
        ways, end = [self.label(), self.label()], self.label()
        self.test(test, *ways)
        for way, value in zip(ways, values, strict=True):
            self.enter(way)
            self.values = {**self.values, "": value()}
            self.jump(end)
        self.enter(end)
        found = self.values[""]
        self.values = {name: value for name, value in self.values.items() if name}
        return found

    # ---- values ------------------------------------------------------------------------------------------------------

    def value(self, node: ast.expr) -> Value:  # noqa: C901 - likewise
        match node:
            case ast.Name(name) if name in self.values:
                return self.values[name]
            case ast.Constant(int(number)):
                return WORD(number)
            case ast.Attribute(ast.Name(name), member):
                return WORD(getattr(self.names[name], member))
            case ast.Name(name):
                return self.named(name)
            case ast.UnaryOp(ast.USub(), inner):
                return self.builder.neg(self.value(inner))
            case ast.Subscript(place, index):
                return self.builder.load(self.place(place, index, WORD))
            case ast.BinOp(left, operator, right):
                return getattr(self.builder, OPERATIONS[type(operator)])(self.value(left), self.value(right))
            case ast.Compare(left, [operator], [right]):
                return self.builder.zext(self.compared(left, operator, right), WORD)
            case ast.BoolOp() | ast.UnaryOp(ast.Not()):
                return self.chosen(node, [lambda: WORD(1), lambda: WORD(0)])
            case ast.IfExp(test, then, otherwise):
                return self.chosen(test, [lambda: self.value(then), lambda: self.value(otherwise)])
            case ast.Call(ast.Name(name), operands):
                return self.called(name, [self.value(operand) for operand in operands])
            case _:
                raise SyntaxError(f"native code has no {ast.unparse(node)}")

    def named(self, name: str) -> Value:
        """A constant of the module: an integer, or the address of a function or of memory."""
        if name in self.functions:
            return self.functions[name].ptrtoint(WORD)
        found = self.names[name]
        if not isinstance(found, StaticMemory):
            return WORD(found)
        memory = self.code.globals.get(name)
        if memory is None:
            memory = ir.GlobalVariable(self.code, ir.ArrayType(WORD, found.words), name)
            if not found.is_elsewhere:
                memory.align = 64
                memory.initializer = ir.Constant(memory.type.pointee, None)
        return memory.ptrtoint(WORD)

    def place(self, address: ast.expr, index: ast.expr, type_: ir.Type) -> Value:
        array = self.builder.inttoptr(self.value(address), type_.as_pointer())
        return self.builder.gep(array, [self.value(index)])

    def called(self, name: str, operands: Sequence[Value]) -> Value:
        if name in INSTRUCTIONS:
            return INSTRUCTIONS[name](self.builder, *operands)
        function = self.functions.get(name)
        if function is None:
            type_ = ir.FunctionType(WORD, [WORD] * len(operands))
            function = self.builder.inttoptr(self.values[name], type_.as_pointer())
            return self.builder.call(function, operands)
        pairs = zip(operands, function.args, strict=True)
        given = [self.builder.trunc(value, INT) if parameter.type == INT else value for value, parameter in pairs]
        found = self.builder.call(function, given)
        return self.builder.sext(found, WORD) if found.type == INT else found


def _is_declared(node: ast.FunctionDef) -> bool:
    """True if the body is `...`."""
    match node.body:
        case [ast.Expr(ast.Constant(value))]:
            return value is ...
        case _:
            return False


def _continues(body: Sequence[ast.stmt]) -> bool:
    return any(isinstance(inner, ast.Continue) for statement in body for inner in ast.walk(statement))


def _statement(text: str) -> ast.stmt:
    return parsed(text).body[0]
