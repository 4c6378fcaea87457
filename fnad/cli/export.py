"""`fnad export`: `fnad.export` of a call, or of its gradient, written to files."""

from __future__ import annotations

from argparse import Namespace

from fnad.api.exporting import export
from fnad.cli.calls import given_call
from fnad.cli.explain import MODES
from fnad.cli.load import load_target, user_code
from fnad.cli.usage import UsageError

FORMS = {
    "c": "C source with a header, which needs the C library alone",
    "object": "an object file for this CPU with a header; link with -lmvec -lm",
    "python": "a Python module that needs NumPy and Numba alone",
}


def export_call(request: Namespace) -> str:
    """Write the files of an exported call; raises `UsageError` if it does not exist or cannot be exported."""
    if request.argnums is not None and request.mode is None:
        raise UsageError("--argnums says in what to differentiate: add --grad or --value-and-grad")
    target = load_target(request.target)
    with user_code(target.path):
        args, kwargs = given_call(target, request.args, request.values).call()
        f = target.function
        if request.mode is not None:
            f = MODES[request.mode](f, tuple(request.argnums or (0,)))
        exported = export(f, *args, **kwargs)
        try:
            written = getattr(exported, request.form)(request.output, force=request.force)
        except OSError as error:
            raise UsageError(f"{request.output} cannot be written: {error.strerror}") from error
    return "\n".join([exported.prototype, *map(str, written)])
