"""`fnad explain`: `fnad.explain` of a call, or of its gradient, whose arguments have given values or given types."""

from __future__ import annotations

from argparse import Namespace
from io import BytesIO
from pathlib import Path
from typing import Any

from fnad.api.functions.explain import Explanation, explain
from fnad.api.functions.export import write_files
from fnad.cli.transformed import on_call
from fnad.cli.usage import UsageError


def explain_call(request: Namespace) -> str:
    """The findings of a trace, as text; with `--plot` also a picture of the memory over time."""
    if request.plot is not None and not request.memory:
        raise UsageError("--plot draws the memory over time: add --memory")

    def explained(*args: Any, **kwargs: Any) -> str:
        found = explain(*args, memory=request.memory, **kwargs)
        if request.plot is not None:
            _draw(found, Path(request.plot), force=request.force)
        return str(found)

    try:
        return on_call(request, explained)
    except OSError as error:
        raise UsageError(f"{request.plot} cannot be written: {error.strerror}") from error


def _draw(found: Explanation, file: Path, *, force: bool) -> None:
    """Write the picture, in the format in which the name of the file ends."""
    if found.timeline is None:
        raise UsageError(f"{found.function} has a part without loop nests, so its memory over time is not known")
    picture = BytesIO()
    try:
        found.timeline.plot().figure.savefig(picture, format=file.suffix[1:] or "png")
    except ValueError as error:
        raise UsageError(f"{file} cannot be drawn: {error}") from error
    write_files({file: picture.getvalue()}, force)
