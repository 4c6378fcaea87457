"""Lines of locks, at which tests of interrupts raise nothing."""

import re
from linecache import getline


def takes_lock(file: str, line: int) -> bool:
    """Whether a lock is taken and given back at a line: in C, where no signal is handled between that and the block."""
    return bool(re.match(r"\s*with (LOCK|_LOCK|self\.(_?lock|_compiling))\b", getline(file, line)))
