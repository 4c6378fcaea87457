"""The command `fnad`: dumps of a function at each stage of compilation, the primitives, the state of the machine."""

from fnad.cli.command import main

__all__ = ["main"]
