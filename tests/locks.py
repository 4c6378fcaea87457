"""Lines at which tests of interrupts raise nothing, since Python handles no signal there."""

import re
from linecache import getline

LINES = re.compile(r"\s*(try:|with (LOCK|_LOCK|self\.(_?lock|_compiling))\b)")


def takes_lock(file: str, line: int) -> bool:
    """Whether a lock is taken and given back at a line, in C; or nothing is done there, which no block protects."""
    return bool(LINES.match(getline(file, line)))
