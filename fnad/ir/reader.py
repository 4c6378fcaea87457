"""Reading the notation of the IR: the tokens of a text, avals, strings; errors with line and column, showing the line.

    3:12: there is no primitive sine: is it sin?
        c: f64[3] = sine(a)
                    ^

Parsers of a whole text, a program or the types of arguments, derive from `Reader` and add one method per rule.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple, NoReturn, TypeVar

from fnad.errors import ParseError
from fnad.ir.types import DTYPES, UNKNOWN, Aval, Dtype

Item = TypeVar("Item")

DEEPEST = 50
"""The deepest nesting, of containers, params or regions; anything deeper is surely a mistake."""

LONGEST = 200
"""The characters of a message, and of the line that it shows."""

DIGITS = 18
"""The most digits of an extent: 64 bits hold every number of so many."""

_REAL = r"(?:(?:\d++\.?+\d*+|\.\d++)(?:[eE][-+]?\d++)?|inf|nan)"
_NUMBER = rf"(?:0x[0-9a-fA-F]+|[-+]?{_REAL}(?:[-+]{_REAL}j|j)?)(?![\w.])"
# Repetitions give nothing back, and what begins like a number or a string but is none is one token up to its end: the
# time is linear.
_TOKEN = re.compile(
    rf"""
      (?P<blank>   (?:\s|\#[^\n]*)+ )
    | (?P<literal> (?:{_NUMBER}|True|False):\w+ )
    | (?P<number>  {_NUMBER} )
    | (?P<string>  "(?:[^"\\\n]|\\.)*+" | '(?:[^'\\\n]|\\.)*+' )
    | (?P<word>    [^\W\d]\w* )
    | (?P<mark>    ->|[(){{}}\[\],:=?] )
    | (?P<other>   [\w.]+ | ["'][^\n]* | . )
    """,
    re.VERBOSE,
)


class Token(NamedTuple):
    """A piece of the text."""

    kind: str
    text: str
    offset: int


class Reader:
    """A text that is read token by token: the one to be taken next, the one before it and the one behind it."""

    def __init__(self, text: str, sizes: Mapping[str, int] | None = None) -> None:
        self.text, self.sizes = text, sizes or {}
        self._tokens = (
            Token(str(m.lastgroup), m.group(), m.start()) for m in _TOKEN.finditer(text) if m.lastgroup != "blank"
        )
        self._end = self.before = Token("mark", "end of text", len(text.rstrip()))
        self.token, self.following = self._next(), self._next()
        self.depth = 0

    # ---- tokens --------------------------------------------------------------------------------------------------

    def _next(self) -> Token:
        return next(self._tokens, self._end)

    def take(self) -> Token:
        taken = self.token
        if taken is not self._end:
            self.before, self.token, self.following = taken, self.following, self._next()
        return taken

    def accept(self, mark: str) -> bool:
        """Consume the mark if it comes next."""
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
        """Consume items separated by commas, up to the mark `end`."""
        items: list[Item] = []
        while not self.accept(end):
            items.append(item())
            if not self.accept(","):
                self.expect(end)
                break
        return items

    def nested(self, rule: Callable[[], Item]) -> Item:
        """Consume what a rule describes, one level deeper."""
        if self.depth == DEEPEST:
            self.fail(self.token, f"nested more than {DEEPEST} deep")
        self.depth += 1
        found = rule()
        self.depth -= 1
        return found

    def fail(self, token: Token, message: str) -> NoReturn:
        start = self.line_start(token)
        number, column = self.text.count("\n", 0, start) + 1, token.offset - start
        shown = max(start, token.offset - LONGEST // 2)  # of a long line, what is around the token
        line = self.text[shown : shown + LONGEST].partition("\n")[0]
        mark = " " * (token.offset - shown)
        raise ParseError(f"{number}:{column + 1}: {_shortened(message)}\n    {line}\n    {mark}^")

    def line_start(self, token: Token) -> int:
        return self.text.rfind("\n", 0, token.offset) + 1

    # ---- what texts of the IR have in common -----------------------------------------------------------------------

    def aval(self) -> Aval:
        dtype = self.dtype(self.word("an aval"))
        self.expect("[")
        return Aval(dtype, tuple(self.separated(self.extent, "]")))

    def extent(self) -> int:
        if self.accept("?"):
            return UNKNOWN
        if self.is_size():
            return self.size()
        token = self.take()
        if not token.text.isdecimal() or len(token.text) > DIGITS:
            self.fail(token, f"{token.text} is no extent of an axis")
        return int(token.text)

    def is_size(self) -> bool:
        """True if a polynomial in the sizes of axes comes next."""
        return self.token.text in self.sizes or self.following.text == "*"

    def size(self) -> int:
        """A polynomial in the sizes of axes: `n`, `2*n*n+m-1`."""
        total: int = 0
        while True:
            product = self.factor()
            while self.token.text == "*":
                self.take()
                product = product * self.factor()
            total = total + product
            if self.token.text == "+":
                self.take()
            elif self.token.kind != "number" or self.token.text[0] not in "+-":
                return total

    def factor(self) -> int:
        token = self.take()
        if token.text in self.sizes:
            return self.sizes[token.text]
        if not token.text.lstrip("+-").isdecimal() or len(token.text) > DIGITS:
            self.fail(token, f"{token.text} is no part of a size")
        return int(token.text)

    def dtype(self, token: Token) -> Dtype:
        return DTYPES.get(token.text) or self.fail(token, f"there is no dtype {token.text}: it is one of {_NAMES}")

    def string(self) -> str:
        token = self.take()
        try:
            return json.loads(token.text)
        except ValueError:
            self.fail(token, f"{token.text} is no string of JSON")


def _shortened(message: str) -> str:
    half = LONGEST // 2
    return message if len(message) <= LONGEST else f"{message[:half]} … {message[-half:]}"


_NAMES = ", ".join(DTYPES)
