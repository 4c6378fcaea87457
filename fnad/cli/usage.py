"""What the commands answer to wrong input: one line on standard error, and exit status 2."""

from __future__ import annotations


class UsageError(Exception):
    """What was asked cannot be done; the message is shown as one line."""


def one_line(error: BaseException) -> str:
    """The message of an error, whose lines say what, where and the way out, on one line."""
    return "; ".join(part for line in str(error).splitlines() if (part := line.strip()))
