"""Names that modules do not have: errors with fnad's word, where it has one (`fnad.words`)."""

from __future__ import annotations

from fnad.errors import MissingAttributeError
from fnad.trace.source import current_source
from fnad.words import WORDS


def missing(module: str, name: str) -> AttributeError:
    """The error for a name that a module does not have."""
    what, word = f"module {module!r} has no attribute {name!r}", WORDS.get(f"{module}.{name}")
    return MissingAttributeError(what, source=current_source(), remedy=word) if word else AttributeError(what)
