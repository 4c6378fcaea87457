"""The command `fnad`: dumps of a function at each stage of compilation, the primitives, the state of the machine."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with these arguments, by default those of the process; return the exit status."""
    try:
        from fnad.cli.command import run  # noqa: PLC0415 - an interrupt while modules load is one line, too

        return run(argv)
    except KeyboardInterrupt:
        print("fnad: interrupted", file=sys.stderr)
        return 130
