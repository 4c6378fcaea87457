"""The commands that make something of one call, or of its derivative: explain, check, export, view and profile."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, TypeAlias

from fnad import config
from fnad.api.functions.explain import Explanation
from fnad.api.functions.explain import explain as explanation_of
from fnad.api.functions.export import Exported, write_files, write_of_one_name
from fnad.api.functions.export import export as exported_of
from fnad.api.functions.profile import profile as profile_of
from fnad.api.functions.save_load import saved_text
from fnad.api.functions.view import page_of
from fnad.cli.calls import given_call
from fnad.cli.load import load_target, user_code
from fnad.cli.transformed import on_call
from fnad.cli.usage import UsageError
from fnad.testing.check import check as check_of

Answer: TypeAlias = tuple[str, int]
"""The text to print, and the exit status."""

FORMS = {
    "c": "C source with a header, which needs the C library alone",
    "object": "an object file for this CPU with a header; link with -lmvec -lm",
    "python": "a Python module that needs NumPy and Numba alone, to be read, debugged or compiled",
    "njit": "a module whose functions @njit code calls, with the program beside it in a JSON file; it needs fnad",
}
NJIT = """\
import fnad

_exported = fnad.load(__file__.removesuffix(".py") + ".json")
{name} = _exported.njit()
{name}_into = _exported.njit_into()
"""


def explain(request: Namespace) -> Answer:
    """The findings of a trace; with `--plot` also a picture of the memory over time."""
    if request.plot is not None and not request.memory:
        raise UsageError("--plot draws the memory over time: add --memory")

    def explained(*args: Any, **kwargs: Any) -> str:
        found = explanation_of(*args, memory=request.memory, **kwargs)
        if request.plot is not None:
            _draw(found, Path(request.plot), force=request.force)
        return str(found)

    with config.on(request.device):
        return _written(request, explained, request.plot), 0


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


def check(request: Namespace) -> Answer:
    """The checks of the derivatives of a function at given values, or at random ones of given types."""
    target = load_target(request.target)
    with user_code(target.path):
        args, kwargs = given_call(target, request.args, request.values).call()
        report = check_of(target.function, *args, **kwargs)
    return str(report), 0 if report.is_right else 1


def export(request: Namespace) -> Answer:
    """Write the files of an exported call; the declaration in C and the paths."""

    def exported(*args: Any, **kwargs: Any) -> str:
        found = exported_of(*args, **kwargs)
        if request.form == "njit":
            return "\n".join(map(str, _write_for_njit(found, request.output, force=request.force)))
        options = {"blas": True} if request.blas else {}
        files = getattr(found, request.form)(request.output, force=request.force, **options)
        return "\n".join([*([] if request.blas else [found.prototype]), *map(str, files)])

    if request.blas and request.form != "c":
        raise UsageError("--blas is for C sources: give --c")
    return _written(request, exported, request.output, with_names=True), 0


def _write_for_njit(exported: Exported, file: str, *, force: bool) -> list[Path]:
    """Write the module with the functions that `@njit` code calls, and the program that it loads."""
    exported.njit()  # raises for a program that Numba code cannot call
    module, program = NJIT.format(name=exported.name), saved_text(exported)
    return write_of_one_name(file, ".py", {".py": module.encode(), ".json": program.encode()}, force)


def view(request: Namespace) -> Answer:
    """Write the page of a call; its path."""

    def viewed(f: Any, *args: Any, **kwargs: Any) -> str:
        found = profile_of(f, *args, **kwargs) if request.profile else None
        page_of(f, args, kwargs, found).save(request.output, force=request.force)
        return str(request.output)

    return _written(request, viewed, request.output), 0


def profile(request: Namespace) -> Answer:
    """The native time of each line of a call."""
    return on_call(request, lambda *args, **kwargs: str(profile_of(*args, **kwargs))), 0


def _written(request: Namespace, write: Callable[..., str], file: str | None, **options: bool) -> str:
    """The text that `write` makes of the call of a request, with an error for a file that cannot be written."""
    try:
        return on_call(request, write, **options)
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}") from error
