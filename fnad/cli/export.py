"""`fnad export`: `fnad.export` of a call, or of a derivative, written to files."""

from __future__ import annotations

from argparse import Namespace

from fnad.api.functions.export import export
from fnad.cli.transformed import on_call
from fnad.cli.usage import UsageError

FORMS = {
    "c": "C source with a header, which needs the C library alone",
    "object": "an object file for this CPU with a header; link with -lmvec -lm",
    "python": "a Python module that needs NumPy and Numba alone",
}


def export_call(request: Namespace) -> str:
    """Write the files of an exported call; return the declaration in C and the paths."""

    def written(*args: object, **kwargs: object) -> str:
        exported = export(*args, **kwargs)  # type: ignore[arg-type]
        options = {"blas": True} if request.blas else {}
        files = getattr(exported, request.form)(request.output, force=request.force, **options)
        return "\n".join([*([] if request.blas else [exported.prototype]), *map(str, files)])

    if request.blas and request.form != "c":
        raise UsageError("--blas is for C sources: give --c")
    try:
        return on_call(request, written, with_names=True)
    except OSError as error:
        raise UsageError(f"{request.output} cannot be written: {error.strerror}") from error
