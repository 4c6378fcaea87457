"""The notation of operations: infix if they have a symbol, with the parentheses that Python's precedence requires."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from fnad.scalar.operation import Operation

ATOM = 20
PRECEDENCE = {
    **dict.fromkeys(("*", "/", "//", "%"), 12),
    **dict.fromkeys(("+", "-"), 11),
    "&": 9,
    "^": 8,
    "|": 7,
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), 6),
}
PREFIX = 13


class Text(NamedTuple):
    """An expression as text, and how tightly its last operator binds."""

    text: str
    precedence: int = ATOM

    def within(self, precedence: int) -> str:
        """The text as an operand of something that binds this tightly."""
        return self.text if self.precedence >= precedence else f"({self.text})"


def written(operation: Operation, operands: Sequence[Text]) -> Text:
    """An operation on operands as text."""
    sign = operation.symbol
    if sign is None:
        return Text(f"{operation.name}({', '.join(operand.text for operand in operands)})")
    if len(operands) == 1:
        return Text(f"{sign}{operands[0].within(PREFIX + 1)}", PREFIX)
    left, right = operands
    precedence = PRECEDENCE[sign]
    chained = 1 if precedence == PRECEDENCE["=="] else 0
    return Text(f"{left.within(precedence + chained)} {sign} {right.within(precedence + 1)}", precedence)


class TextMaker:
    """Makes texts from templates."""

    def constant(self, value: Any) -> Text:
        return Text(str(value))

    def apply(self, operation: Operation, *operands: Text) -> Text:
        return written(operation, operands)


TEXTS = TextMaker()
