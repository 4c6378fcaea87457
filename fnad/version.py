"""The version of fnad."""

__version__ = "0.1.0.dev0"
