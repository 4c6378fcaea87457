"""The command `fnad`: dumps of a function on its way to native code, the primitives, the state of the machine."""

from fnad.cli.command import main

__all__ = ["main"]
