"""Reads the text of a PTX module: functions as basic blocks of instructions, variables, and the space that they take.

What an instruction means is in `table.py`; how threads run is in `emulator.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

SIZES = {
    "b8": 1,
    "u8": 1,
    "s8": 1,
    "b16": 2,
    "u16": 2,
    "s16": 2,
    "f16": 2,
    "b32": 4,
    "u32": 4,
    "s32": 4,
    "f32": 4,
    "b64": 8,
    "u64": 8,
    "s64": 8,
    "f64": 8,
    "pred": 0,
}
SYNCS = ("bar", "barrier", "shfl", "vote", "redux", "match")
"""Instructions at which threads wait for others: each is a block of its own."""

STATEMENT = re.compile(
    r"\s*(?:(?P<open>\{)|(?P<close>\})|(?P<label>[\w$]+)\s*:(?!:)|(?P<text>[^\s{};][^;{}]*(?:\{[^{}]*\}[^;{}]*)*;))"
)
HEAD = re.compile(r"\.(entry|func)\s*(?:\(([^)]*)\)\s*)?([\w$]+)\s*(?:\(([^)]*)\))?([^;{]*)([;{])")
VARIABLE = re.compile(
    r"\.(global|const|shared|local)\s+(?:\.attribute\([^)]*\)\s*)?(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([\w$]+)"
    r"(?:\[(\d*)\])?(?:\s*=\s*(\{[^}]*\}|[^;]+))?;"
)
PARAMETER = re.compile(
    r"\.param\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+(?:\.ptr\s*(?:\.(?!align)\w+\s*)*(?:\.align\s+\d+\s+)?)?"
    r"(?:\.align\s+(\d+)\s+)?([A-Za-z_$%][\w$]*)(?:\[(\d+)\])?"
)


class UnsupportedError(Exception):
    """Something that this emulator does not know."""


@dataclass
class Variable:
    """A variable of a module or function: where it is, how long, and what is in it at first."""

    space: str
    name: str
    size: int
    align: int
    content: bytes | None = None
    offset: int = 0


@dataclass
class Instruction:
    """An operation with its modifiers, operands, and the predicate that guards it."""

    name: str
    mods: list[str]
    operands: list[Any]
    guard: tuple[int, bool] | None
    text: str

    @property
    def types(self) -> list[str]:
        return [m for m in self.mods if m in SIZES]


@dataclass
class Block:
    """Instructions without a jump into them or out of them but at the ends."""

    number: int
    body: list[Instruction] = field(default_factory=list)
    end: Instruction | None = None
    sync: Instruction | None = None
    steps: list[Any] = field(default_factory=list)
    static: Any = None


@dataclass
class Function:
    """A kernel or a function that one calls."""

    name: str
    is_entry: bool
    parameters: list[tuple[str, int, int]] = field(default_factory=list)
    results: list[tuple[str, int, int]] = field(default_factory=list)
    widths: list[int] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    scoped: dict[str, int] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    tables: dict[str, list[str]] = field(default_factory=dict)
    local_size: int = 0
    shared_size: int = 0
    max_threads: int = 0


@dataclass
class Module:
    """All of a text."""

    target: str
    version: str
    functions: dict[str, Function]
    variables: dict[str, Variable]


def parse(text: str) -> Module:
    """The module of a text."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(r"//[^\n]*", "", text)
    target, version = re.search(r"\.target\s+(\w+)", text), re.search(r"\.version\s+([\d.]+)", text)
    text = re.sub(r"^\s*\.(version|target|address_size|file|loc|pragma)\b[^\n]*$", "", text, flags=re.MULTILINE)
    module = Module(target[1] if target else "", version[1] if version else "", {}, {})
    place, outside, found = 0, [], []
    while head := HEAD.search(text, place):
        outside.append(text[place : head.start()])
        place = head.end()
        if head[6] == ";":
            continue
        start, depth = place, 1
        for brace in re.finditer(r"[{}]", text[place:]):
            depth += 1 if brace[0] == "{" else -1
            if not depth:
                place += brace.end()
                break
        found.append((head, text[start : place - 1]))
    outside.append(text[place:])
    for part in outside:
        for match in VARIABLE.finditer(part):
            variable = variable_of(match)
            module.variables[variable.name] = variable
    for head, body in found:
        module.functions[head[3]] = Reader(module, head, body).function
    return module


def variable_of(match: re.Match[str]) -> Variable:
    space, align, kind, name, count, initial = match.groups()
    size = SIZES[kind]
    content = None
    total = size * int(count or 1)
    if initial is not None:
        numbers = [x.strip() for x in initial.strip("{} \n").split(",") if x.strip()]
        content = b"".join((bits_of(x, kind) & ((1 << 8 * size) - 1)).to_bytes(size, "little") for x in numbers)
        content = content.ljust(total, b"\0")
    return Variable(space, name, total, int(align or size), content)


def bits_of(text: str, kind: str = "b64") -> int:
    """The bits of a constant."""
    text = text.strip()
    if re.fullmatch(r"0[fF][0-9a-fA-F]{8}", text) or re.fullmatch(r"0[dD][0-9a-fA-F]{16}", text):
        return int(text[2:], 16)  # noqa: FURB166
    text = text.rstrip("U")
    if re.fullmatch(r"-?0[xX][0-9a-fA-F]+|-?\d+", text):
        return int(text, 0) if not re.fullmatch(r"-?0\d+", text) else int(text, 8)
    raise UnsupportedError(f"constant {text}")


class Reader:
    """Reads the body of a function."""

    def __init__(self, module: Module, head: re.Match[str], body: str) -> None:
        self.module = module
        self.function = Function(head[3], head[1] == "entry")
        self.function.parameters, self.function.results = layout(head[4] or ""), layout(head[2] or "")
        if bound := re.search(r"\.maxntid\s+(\d+)", head[5]):
            self.function.max_threads = int(bound[1])
        self.scopes: list[dict[str, str]] = [{}]
        self.count = 0
        self.block = self._new_block()
        pending_label = None
        for found in STATEMENT.finditer(body):
            if found["open"]:
                self.scopes.append({})
                self.count += 1
            elif found["close"]:
                if len(self.scopes) > 1:
                    self.scopes.pop()
            elif found["label"]:
                pending_label = found["label"]
                if self.block.body or self.block.end or self.block.sync:
                    self.block = self._new_block()
                self.function.labels[found["label"]] = self.block.number
            else:
                self._statement(" ".join(found["text"][:-1].split()), pending_label)
        self._new_block().end = Instruction("ret", [], [], None, "(end)")
        self._place_variables()

    def _new_block(self) -> Block:
        block = Block(len(self.function.blocks))
        self.function.blocks.append(block)
        return block

    def _statement(self, text: str, label: str | None) -> None:
        if text.startswith(".branchtargets"):
            self.function.tables[str(label)] = [x.strip() for x in text.split(None, 1)[1].split(",")]
        elif text.startswith(".reg"):
            _, kind, names = text.split(None, 2)
            for name in (x.strip() for x in names.split(",")):
                if many := re.fullmatch(r"([^<]+)<(\d+)>", name):
                    for n in range(int(many[2])):
                        self._register(f"{many[1]}{n}", kind[1:])
                else:
                    self._register(name, kind[1:])
        elif text.startswith(".param"):
            for name, size, _ in layout(text):
                self.function.scoped[self._declared(name)] = size
        elif match := VARIABLE.fullmatch(text + ";"):
            variable = variable_of(match)
            self.function.variables[variable.name] = variable
        elif text.startswith("."):
            if not text.startswith((".pragma", ".callprototype")):
                raise UnsupportedError(text)
        else:
            self._instruction(text)

    def _declared(self, name: str) -> str:
        unique = name if len(self.scopes) == 1 else f"{name}~{self.count}"
        self.scopes[-1][name] = unique
        return unique

    def _register(self, name: str, kind: str) -> None:
        unique = self._declared(name)
        self.function.names[unique] = len(self.function.widths)
        self.function.widths.append(SIZES[kind])

    def _instruction(self, text: str) -> None:
        whole, guard = text, None
        if match := re.match(r"@(!?)([%\w$]+)\s+", text):
            guard = (self._operand(match[2])[1], not match[1])
            text = text[match.end() :]
        name, _, rest = text.partition(" ")
        base, *mods = name.split(".")
        operands = [self._operand(x) for x in split(rest)]
        mods = [m for m in mods if m]
        made = Instruction(base, mods, operands, guard, whole)
        if base in ("bra", "brx", "ret", "exit", "trap"):
            self.block.end = made
            self.block = self._new_block()
        elif base in SYNCS:
            if self.block.body:
                self.block = self._new_block()
            self.block.sync = made
            self.block = self._new_block()
        else:
            self.block.body.append(made)

    def _operand(self, text: str) -> Any:
        text = text.strip()
        if text == "_":
            return ("sink",)
        if text.startswith("{"):
            return ("vector", [self._operand(x) for x in split(text[1:-1])])
        if text.startswith("("):
            return ("list", [self._operand(x) for x in split(text[1:-1])])
        if text.startswith("["):
            base, offset = text[1:-1].strip(), 0
            if match := re.fullmatch(r"(.+?)\s*\+\s*(-?\d+)", base):
                base, offset = match[1], int(match[2])
            return ("memory", self._operand(base), offset)
        if text.startswith("!"):
            return ("not", self._operand(text[1:]))
        if "|" in text:
            first, second = text.split("|")
            return ("pair", self._operand(first), self._operand(second))
        for scope in reversed(self.scopes):
            if text in scope:
                unique = scope[text]
                if unique in self.function.names:
                    return ("register", self.function.names[unique])
                return ("symbol", unique)
        if re.fullmatch(r"-?\d.*", text):
            return ("constant", bits_of(text))
        if text.startswith("%"):
            return ("special", text)
        return ("symbol", text)

    def _place_variables(self) -> None:
        """Give variables of the function, and shared ones of the module that it names, their places."""
        function = self.function
        used = {x[1] for b in function.blocks for i in (*b.body, b.end, b.sync) if i for x in symbols(i.operands)}
        for variable in (*self.module.variables.values(), *function.variables.values()):
            if variable.space == "shared" and variable.name in used:
                place = aligned(function.shared_size, max(variable.align, 1))
                function.variables[variable.name] = Variable(
                    "shared", variable.name, variable.size, variable.align, None, place
                )
                function.shared_size = place + variable.size
            elif variable.space == "local":
                variable.offset = aligned(function.local_size, variable.align)
                function.local_size = variable.offset + variable.size


def symbols(operands: list[Any]) -> list[Any]:
    found = []
    for operand in operands:
        if operand[0] == "symbol":
            found.append(operand)
        elif operand[0] in ("vector", "list"):
            found += symbols(operand[1])
        elif operand[0] in ("memory", "not"):
            found += symbols([operand[1]])
    return found


def layout(text: str) -> list[tuple[str, int, int]]:
    """Parameters: name, size, offset."""
    found, place = [], 0
    for align, kind, later, name, count in PARAMETER.findall(text):
        size = SIZES[kind] * int(count or 1)
        place = aligned(place, int(align or later or SIZES[kind]))
        found.append((name, size, place))
        place += size
    return found


def split(text: str) -> list[str]:
    """What stands between commas that are in no brackets."""
    parts, depth, start = [], 0, 0
    for n, c in enumerate(text):
        if c in "{[(":
            depth += 1
        elif c in "}])":
            depth -= 1
        elif c == "," and not depth:
            parts.append(text[start:n])
            start = n + 1
    return [p for p in [*parts, text[start:]] if p.strip()]


def aligned(place: int, align: int) -> int:
    return -(-place // align) * align
