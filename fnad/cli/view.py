"""`fnad view`: `fnad.view` of a call, or of its gradient, written to a page."""

from __future__ import annotations

from argparse import Namespace

from fnad.api.functions.view import view
from fnad.cli.transformed import on_call
from fnad.cli.usage import UsageError


def view_call(request: Namespace) -> str:
    """Write the page of a call; return its path."""

    def written(*args: object, **kwargs: object) -> str:
        view(*args, **kwargs).save(request.output, force=request.force)  # type: ignore[arg-type]
        return str(request.output)

    try:
        return on_call(request, written)
    except OSError as error:
        raise UsageError(f"{request.output} cannot be written: {error.strerror}") from error
