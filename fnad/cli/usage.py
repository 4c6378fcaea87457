"""Errors in the input of a command: one line on standard error, and exit status 2."""

from __future__ import annotations


class UsageError(Exception):
    """The command cannot do what was asked; the message is shown as one line."""


def one_line(error: BaseException) -> str:
    """The message of an error, with its lines joined into one; of a syntax error without the place in the text."""
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    return "; ".join(part for line in message.splitlines() if (part := line.strip()))
