"""`fnad view`: `fnad.view` of a call, or of its gradient, written to a page."""

from __future__ import annotations

from argparse import Namespace

from fnad.api.viewing import view
from fnad.cli.calls import given_call
from fnad.cli.explain import MODES
from fnad.cli.load import load_target, user_code
from fnad.cli.usage import UsageError


def view_call(request: Namespace) -> str:
    """Write the page of a call; raises `UsageError` if the function does not exist or cannot be traced."""
    if request.argnums is not None and request.mode is None:
        raise UsageError("--argnums says in what to differentiate: add --grad or --value-and-grad")
    target = load_target(request.target)
    with user_code(target.path):
        args, kwargs = given_call(target, request.args, request.values).call()
        f = target.function
        if request.mode is not None:
            f = MODES[request.mode](f, tuple(request.argnums or (0,)))
        try:
            view(f, *args, **kwargs).save(request.output, force=request.force)
        except OSError as error:
            raise UsageError(f"{request.output} cannot be written: {error.strerror}") from error
    return str(request.output)
