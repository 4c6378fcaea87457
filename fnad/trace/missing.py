"""Names that modules do not have: errors with fnad's word, where it has one (`fnad.words`)."""

from __future__ import annotations

import sys
from importlib import import_module

import numpy as np

from fnad.errors import MissingAttributeError
from fnad.trace.source import current_source
from fnad.words import WORDS, alike


def missing(module: str, name: str) -> AttributeError:
    """The error for a name that a module does not have."""
    what = f"module {module!r} has no attribute {name!r}"
    is_import = sys._getframe(3).f_code.co_name == "_handle_fromlist"  # pyright: ignore[reportPrivateUsage]
    word = None if is_import else _word(module, name)  # of which an import shows nothing
    return MissingAttributeError(what, source=current_source(), remedy=word) if word else AttributeError(what)


def _word(module: str, name: str) -> str | None:
    word = WORDS.get(f"{module}.{name}")
    if word is not None or name.startswith("_"):
        return word
    if module == "fnad" and name.startswith("tree_"):
        own = name.removeprefix("tree_")
        return f"write fnad.tree.{own}" if hasattr(import_module("fnad.tree"), own) else None
    if module == "fnad" and name in np.__all__ and callable(getattr(np, name)):
        return f"write np.{name}"
    found = import_module(module)
    near = alike(name, getattr(found, "__all__", None) or dir(found))
    return near and f"did you mean {module}.{near}?"
