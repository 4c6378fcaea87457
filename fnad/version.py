"""The version of fnad, and when it was loaded."""

from time import time_ns

__version__ = "0.1.0.dev0"

LOADED = time_ns()
"""When this process loaded fnad, in nanoseconds: what is newer on disk is not what runs."""
