"""The place in user code: the innermost frame outside fnad, its dependencies and the standard library."""

from __future__ import annotations

import ast
import inspect
import linecache
import os
import sys
import textwrap
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import islice
from types import CodeType, FrameType, TracebackType
from typing import Any, NamedTuple, TypeAlias

from fnad.codes import notes_of, original_of, parsed
from fnad.ir.program import Source
from fnad.trace.libraries import is_library, package_of
from fnad.upward import UPWARD

HOOKS = {__file__.replace("source.py", f"{name}.py") for name in ("compiled", "hooks", "sourceless")}
"""The files of the hooks in converted code, some of which return a function around the callee."""


PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep  # noqa: PTH120 - pathlib takes long to import


def warning_users(warn: Callable[..., None]) -> Callable[..., None]:
    """`warnings.warn` with a level that does not count frames of fnad between those of user code."""

    def call(message: Any, category: Any = None, stacklevel: int = 1, *args: Any, **options: Any) -> None:
        frame, own, count = sys._getframe(1), 1, 0  # pyright: ignore[reportPrivateUsage]
        while frame is not None and count < stacklevel:
            is_own = frame.f_code.co_filename.startswith(PACKAGE)
            own, count, frame = own + is_own, count + (not is_own), frame.f_back
        warn(message, category, stacklevel + own, *args, **options)

    return call


class _OfLibraries(dict[str, bool]):
    """True if files are those of libraries, as far as they were asked for: to look here takes half as long."""

    def __missing__(self, file: str) -> bool:
        if len(self) >= MOST:
            self.clear()
        return self.setdefault(file, is_library(file))


MOST = 4096
_OF_LIBRARIES = _OfLibraries()


def user_frame() -> FrameType | None:
    """The innermost frame outside the libraries."""
    frame: FrameType | None = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]  # the last one is fnad's
    while frame is not None and _OF_LIBRARIES[frame.f_code.co_filename]:
        frame = frame.f_back
    return frame


def is_called_by(*packages: str) -> bool:
    """True if a function is called by modules whose names begin like this."""
    frame: Any = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    while frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    return str(frame.f_globals.get("__name__")).startswith(packages)


def user_lines(within: CodeType | None = None) -> tuple[tuple[str, int], ...]:
    """File and line of each frame outside the libraries, innermost first, up to the one that runs a code."""
    frame, lines = user_frame(), []
    while frame is not None and frame.f_code is not within:
        if not _OF_LIBRARIES[frame.f_code.co_filename]:
            lines.append((frame.f_code.co_filename, line_of(frame).line))
        frame = frame.f_back
    return tuple(lines)


def library_frames() -> list[FrameType]:
    """The frames that the user's code called, innermost first."""
    frames: list[FrameType] = []
    frame: FrameType | None = inspect.currentframe()
    while frame is not None and is_library(frame.f_code.co_filename):
        frames.append(frame)
        frame = frame.f_back
    return frames


def current_source() -> Source | None:
    """The line of user code."""
    frame = user_frame()
    return None if frame is None else line_of(frame)


def caller_of(source: object) -> Source | None:
    """The line of user code that runs a line of an installed package; None where the line is the user's."""
    if not isinstance(source, Source) or package_of(source.file) is None:
        return None
    passed = places_passed(sys.exception())
    if (source.file, source.line) in ((t.tb_frame.f_code.co_filename, t.tb_lineno) for t in passed):
        own = [t for t in passed if _is_own(t.tb_frame)]
        if own:
            return _line_passed(own[-1])
    frame = user_frame()
    while frame is not None and not _is_own(frame):
        frame = frame.f_back
    return None if frame is None else line_of(frame)


def _is_own(frame: FrameType) -> bool:
    """True for a frame of user code that is not of an installed package."""
    file = frame.f_code.co_filename
    return not (is_library(file) or file.endswith(COMPILED) or package_of(file))


def places_passed(error: BaseException | None) -> list[TracebackType]:
    """The places that an exception passed, outermost first."""
    places, traceback = [], error and error.__traceback__
    while traceback is not None:
        places.append(traceback)
        traceback = traceback.tb_next
    return places


UPWARD.caller_of, UPWARD.current_source, UPWARD.is_called_by = caller_of, current_source, is_called_by


def line_of(frame: FrameType) -> Source:
    """The line that a frame is at.

    Lines are known by code object and instruction, which is cheaper than asking a frame for its line.
    """
    code = frame.f_code
    lines = notes_of(code)
    known = lines.get(frame.f_lasti)
    if known is None:
        known = lines[frame.f_lasti] = Source(code.co_filename, frame.f_lineno, code.co_name)
    return known


def text_at(code: CodeType, offset: int) -> str:
    """The text of what an instruction computes, if that is in one line; else ""."""
    line, last, start, end = next(islice(code.co_positions(), offset // 2, None), (None,) * 4)
    if line is None or line != last:
        return ""
    return linecache.getline(code.co_filename, line).encode()[start:end].decode(errors="replace")


def line_naming(code: CodeType, name: Any, *, is_stored: bool = False) -> int | None:
    """The first line of code that names a variable, an attribute or an element so, or stores into it."""
    for node in ast.walk(syntax_of(original_of(code))):
        match node:
            case ast.Name(found) | ast.Attribute(attr=found) | ast.Subscript(slice=ast.Constant(found)):
                if found == name and not (is_stored and isinstance(node.ctx, ast.Load)):
                    return node.lineno + code.co_firstlineno - 1
            case _:
                pass
    return None


def syntax_of(code: CodeType) -> ast.AST:
    """The syntax of the function that code is of; nothing where its source is not to be had."""
    try:
        return parsed(textwrap.dedent(inspect.getsource(code)))
    except (OSError, TypeError, SyntaxError):
        return ast.Module([], [])


def user_line(error: BaseException) -> tuple[str, int] | None:
    """File and line of the innermost frame of the user that an exception passed."""
    source = source_of_error(error)
    return (source.file, source.line) if source else None


COMPILED = (".pyx", ".pxd", "<stringsource>")
"""The ends of files of Cython's code, which tracebacks name."""


def source_of_error(error: BaseException) -> Source | None:
    """The innermost place in the user's code that an exception passed."""
    files = ((place, place.tb_frame.f_code.co_filename) for place in reversed(places_passed(error)))
    return next((_line_passed(p) for p, file in files if not is_of_library(file)), None)


def frames_of_error(error: BaseException) -> list[FrameType]:
    """The frames that user code called and an exception passed, innermost first."""
    frames = [place.tb_frame for place in reversed(places_passed(error))]
    files = [frame.f_code.co_filename for frame in frames]
    return frames[: next((i for i, file in enumerate(files) if not is_of_library(file)), len(frames))]


def is_of_library(file: str) -> bool:
    """True for the files of libraries, of compiled code too."""
    return is_library(file) or file.endswith(COMPILED)


def _line_passed(place: TracebackType) -> Source:
    code = place.tb_frame.f_code
    return Source(code.co_filename, place.tb_lineno, code.co_name)


# ---- loops in the user's text ----------------------------------------------------------------------------------------

Extents: TypeAlias = "tuple[tuple[int, int], ...]"
"""First and last lines."""


def is_in_loop(source: Source | None) -> bool:
    """True if a line is part of a loop, or its text is not available."""
    found = _loops(source)
    return source is None or found is None or _has(found.loops, source.line)


def is_repeated(source: Source | None) -> bool:
    """True if a line is part of a loop or a comprehension, or its text is not available."""
    return is_in_loop(source) or (source is not None and loop_around(source) is not None)


def ends_loop(source: Source | None) -> bool:
    """True if a line has the condition of a `while`; in a file that is not Python, the line itself decides."""
    found = _loops(source)
    if source is None or found is None:
        return source is not None and linecache.getline(source.file, source.line).lstrip().startswith("while ")
    return _has(found.conditions, source.line)


def loop_around(source: Source) -> Source | None:
    """The first line of the innermost loop or comprehension that a line is part of."""
    found = _loops(source)
    extents = (*found.loops, *found.comprehensions) if found is not None else ()
    starts = [start for start, end in extents if start <= source.line <= end]
    return Source(source.file, max(starts), source.function) if starts else None


class LoopLines(NamedTuple):
    """The lines of the loops of a file, of the conditions of its `while` loops, and of its comprehensions."""

    loops: Extents
    conditions: Extents
    comprehensions: Extents


def _has(extents: Extents, line: int) -> bool:
    return any(start <= line <= end for start, end in extents)


def _loops(source: Source | None) -> LoopLines | None:
    """The loops of the file of a line; None where there is no text to read."""
    return _loops_of("".join(linecache.getlines(source.file))) if source is not None else None


@lru_cache(maxsize=64)
def _loops_of(text: str) -> LoopLines | None:
    try:
        nodes = list(ast.walk(parsed(text))) if text else []
    except (SyntaxError, ValueError):
        return None
    loops = [node for node in nodes if isinstance(node, ast.For | ast.While)]
    conditions = [node.test for node in loops if isinstance(node, ast.While)]
    comprehensions = [n for n in nodes if isinstance(n, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp)]
    return LoopLines(_extents(loops), _extents(conditions), _extents(comprehensions)) if text else None


def _extents(nodes: Sequence[ast.stmt] | Sequence[ast.expr]) -> Extents:
    return tuple((node.lineno, node.end_lineno or node.lineno) for node in nodes)
