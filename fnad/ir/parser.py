"""Reading the text of a program, by recursive descent over the grammar of `fnad.ir.program`: one method a rule.

Results are inferred anew, so a parsed program is well typed. Every error gives line and column and shows the line:

    3:12: there is no primitive sine: is it sin?
        c: f64[3] = sine(a)
                    ^
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple, NoReturn, TypeVar

from fnad.errors import ParseError
from fnad.ir.constant import parse_scalar
from fnad.ir.primitive import PRIMITIVES, Primitive
from fnad.ir.printer import RESERVED
from fnad.ir.program import Atom, Equation, Literal, Program, Var
from fnad.ir.types import DTYPES, Aval, Dtype
from fnad.ir.verifier import INFERENCE_ERRORS, infer_results

Item = TypeVar("Item")

_REAL = r"(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|inf|nan)"
_NUMBER = rf"(?:0x[0-9a-fA-F]+|[-+]?{_REAL}(?:[-+]{_REAL}j|j)?)(?![\w.])"
_TOKEN = re.compile(
    rf"""
      (?P<blank>   (?:\s|\#[^\n]*)+ )
    | (?P<literal> (?:{_NUMBER}|True|False):\w+ )
    | (?P<number>  {_NUMBER} )
    | (?P<string>  "(?:[^"\\\n]|\\.)*" )
    | (?P<word>    [A-Za-z_]\w* )
    | (?P<mark>    ->|[(){{}}\[\],:=] )
    | (?P<other>   . )
    """,
    re.VERBOSE,
)


def parse_program(text: str) -> Program:
    """Return the program that a text stands for; raise `ParseError` where it is not in the grammar or not well typed.

    The primitives are those that are registered, by importing `fnad.ops` for instance.
    """
    parser = _Parser(text)
    program = parser.program()
    parser.expect("end of text")
    return program


class Token(NamedTuple):
    """A piece of the text."""

    kind: str
    text: str
    offset: int


class Declared(NamedTuple):
    """A name as it is declared."""

    word: Token
    aval: Aval


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        found = [Token(str(m.lastgroup), m.group(), m.start()) for m in _TOKEN.finditer(text)]
        end = Token("mark", "end of text", len(text.rstrip()))
        self.tokens = [token for token in found if token.kind != "blank"] + [end]
        self.position = 0

    # ---- tokens --------------------------------------------------------------------------------------------------

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    def take(self) -> Token:
        token = self.token
        self.position = min(self.position + 1, len(self.tokens) - 1)
        return token

    def accept(self, mark: str) -> bool:
        """Take the mark if it comes next."""
        found = self.token.kind == "mark" and self.token.text == mark
        if found:
            self.take()
        return found

    def expect(self, mark: str) -> None:
        if not self.accept(mark):
            self.fail(self.token, f"expected {mark}, got {self.token.text}")

    def word(self, what: str) -> Token:
        if self.token.kind != "word":
            self.fail(self.token, f"expected {what}, got {self.token.text}")
        return self.take()

    def separated(self, item: Callable[[], Item], end: str) -> list[Item]:
        """Take items with commas between, up to the mark `end`."""
        items: list[Item] = []
        while not self.accept(end):
            items.append(item())
            if not self.accept(","):
                self.expect(end)
                break
        return items

    def fail(self, token: Token, message: str) -> NoReturn:
        start = self.line_start(token)
        line = self.text[start:].partition("\n")[0]
        number, column = self.text.count("\n", 0, start) + 1, token.offset - start
        raise ParseError(f"{number}:{column + 1}: {message}\n    {line}\n    {' ' * column}^")

    def line_start(self, token: Token) -> int:
        return self.text.rfind("\n", 0, token.offset) + 1

    # ---- the grammar ---------------------------------------------------------------------------------------------

    def program(self) -> Program:
        name = self.string() if self.token.kind == "string" else self.word("the name of a program").text
        scope: dict[str, Var] = {}
        self.expect("(")
        inputs = self.define(self.separated(self.typed, ")"), scope)
        self.expect("->")
        avals = self.separated(self.aval, "{")
        equations: list[Equation] = []
        while not (self.token.kind == "word" and self.token.text == "return"):
            equations.append(self.equation(scope))
        return Program(name, inputs, tuple(equations), self.outputs(avals, scope))

    def outputs(self, avals: list[Aval], scope: dict[str, Var]) -> tuple[Atom, ...]:
        word = self.take()
        atoms = tuple(self.separated(lambda: self.atom(scope), "}"))
        returned = [atom.aval for atom in atoms]
        if returned != avals:
            self.fail(word, f"returns {_listed(returned)} where the signature says {_listed(avals)}")
        return atoms

    def equation(self, scope: dict[str, Var]) -> Equation:
        declared = self.separated(self.typed, "=")
        word = self.word("a primitive")
        primitive = PRIMITIVES.get(word.text) or self.fail(word, f"there is no primitive {_or_alike(word.text)}")
        self.expect("(")
        operands = tuple(self.separated(lambda: self.atom(scope), ")"))
        params = self.params()
        regions = self.regions()
        self.check(word, primitive, operands, params, declared)
        return Equation(self.define(declared, scope), primitive, operands, params, regions)

    def typed(self) -> Declared:
        word = self.word("a value's name")
        if word.text in RESERVED:
            self.fail(word, f"{word.text} cannot name a value")
        self.expect(":")
        return Declared(word, self.aval())

    def atom(self, scope: dict[str, Var]) -> Atom:
        token = self.take()
        if token.kind == "literal":
            return self.literal(token)
        if token.kind == "number":
            self.fail(token, f"a constant has a dtype: {token.text}:f64")
        if token.kind != "word":
            self.fail(token, f"expected a value, got {token.text}")
        return scope.get(token.text) or self.fail(token, f"{token.text} is not defined")

    def literal(self, token: Token) -> Literal:
        digits, _, name = token.text.partition(":")
        dtype = self.dtype(Token("word", name, token.offset + len(digits) + 1))
        try:
            return Literal(parse_scalar(digits, dtype))
        except (ValueError, ArithmeticError):
            self.fail(token, f"{digits} is no {name}")

    def aval(self) -> Aval:
        dtype = self.dtype(self.word("an aval"))
        self.expect("[")
        return Aval(dtype, tuple(self.separated(self.extent, "]")))

    def extent(self) -> int:
        token = self.take()
        return int(token.text) if token.text.isdecimal() else self.fail(token, f"{token.text} is no extent of an axis")

    def dtype(self, token: Token) -> Dtype:
        return DTYPES.get(token.text) or self.fail(token, f"there is no dtype {token.text}: it is one of {_NAMES}")

    def params(self) -> dict[str, Any]:
        params: dict[str, Any] = {}
        while self.at_param():
            word = self.take()
            if word.text in params:
                self.fail(word, f"param {word.text} is given twice")
            self.expect("=")
            params[word.text] = self.static()
        return params

    def at_param(self) -> bool:
        """Say whether a param comes next; a `word =` that starts a line is an equation that lacks its aval."""
        if self.token.kind != "word" or self.tokens[self.position + 1].text != "=":
            return False
        return self.text[self.line_start(self.token) : self.token.offset].strip() != ""

    def static(self) -> Any:
        if self.accept("("):
            return tuple(self.separated(self.static, ")"))
        if self.token.kind == "string":
            return self.string()
        token = self.take()
        if token.kind == "number":
            return self.number(token)
        if token.text in _CONSTANTS:
            return _CONSTANTS[token.text]
        if token.kind != "word":
            self.fail(token, f"expected the value of a param, got {token.text}")
        return self.dtype(token)

    def number(self, token: Token) -> int | float:
        try:
            return float(token.text) if set(".enij") & set(token.text) else int(token.text)
        except ValueError:
            self.fail(token, f"{token.text} is no number that a param can have")

    def string(self) -> str:
        token = self.take()
        try:
            return json.loads(token.text)
        except ValueError:
            self.fail(token, f"{token.text} is no string of JSON")

    def regions(self) -> tuple[Program, ...]:
        regions: list[Program] = []
        if self.accept("{"):
            while not self.accept("}"):
                regions.append(self.program())
        return tuple(regions)

    # ---- types ---------------------------------------------------------------------------------------------------

    def check(
        self,
        word: Token,
        primitive: Primitive,
        operands: Sequence[Atom],
        params: dict[str, Any],
        declared: Sequence[Declared],
    ) -> None:
        """Check the declared avals against those that inference gives."""
        try:
            avals = infer_results(primitive, [atom.aval for atom in operands], params)
        except INFERENCE_ERRORS as error:
            self.fail(word, f"{word.text} does not take this: {str(error).splitlines()[0]}")
        if len(avals) != len(declared):
            self.fail(word, f"{word.text} has {len(avals)} results, {len(declared)} are declared")
        for name, aval in zip(declared, avals, strict=True):
            if name.aval != aval:
                self.fail(name.word, f"{name.word.text} is declared {name.aval}, {word.text} gives {aval}")

    def define(self, declared: Sequence[Declared], scope: dict[str, Var]) -> tuple[Var, ...]:
        """Enter names into the scope."""
        for word, aval in declared:
            if word.text in scope:
                self.fail(word, f"{word.text} is defined twice")
            scope[word.text] = Var(aval)
        return tuple(scope[word.text] for word, _ in declared)


_CONSTANTS = {"True": True, "False": False, "None": None}
_NAMES = ", ".join(DTYPES)


def _listed(avals: Sequence[Aval]) -> str:
    return ", ".join(map(str, avals)) or "nothing"


def _or_alike(name: str) -> str:
    alike = get_close_matches(name, PRIMITIVES, n=1)
    return f"{name}: is it {alike[0]}?" if alike else name
