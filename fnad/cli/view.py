"""`fnad view`: `fnad.view` of a call, or of its gradient, written to a page."""

from __future__ import annotations

from argparse import Namespace

from fnad.api.functions.profile import profile
from fnad.api.functions.view import page_of
from fnad.cli.transformed import on_call
from fnad.cli.usage import UsageError


def view_call(request: Namespace) -> str:
    """Write the page of a call; return its path."""

    def written(*args: object, **kwargs: object) -> str:
        f, *given = args
        found = profile(*args, **kwargs) if request.profile else None  # type: ignore[arg-type]
        page = page_of(f, tuple(given), kwargs, found)  # type: ignore[arg-type]
        page.save(request.output, force=request.force)
        return str(request.output)

    try:
        return on_call(request, written)
    except OSError as error:
        raise UsageError(f"{request.output} cannot be written: {error.strerror}") from error
