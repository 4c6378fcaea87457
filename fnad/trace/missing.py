"""Names that modules do not have: errors with fnad's word, where it has one (`fnad.words`)."""

from __future__ import annotations

from importlib import import_module

import numpy as np

from fnad.errors import MissingAttributeError
from fnad.trace.source import current_source
from fnad.words import WORDS


def missing(module: str, name: str) -> AttributeError:
    """The error for a name that a module does not have."""
    what, word = f"module {module!r} has no attribute {name!r}", _word(module, name)
    return MissingAttributeError(what, source=current_source(), remedy=word) if word else AttributeError(what)


def _word(module: str, name: str) -> str | None:
    word = WORDS.get(f"{module}.{name}")
    if word is not None or module != "fnad":
        return word
    if name.startswith("tree_"):
        own = name.removeprefix("tree_")
        return f"write fnad.tree.{own}" if hasattr(import_module("fnad.tree"), own) else None
    return f"write np.{name}" if name in np.__all__ and callable(getattr(np, name)) else None
