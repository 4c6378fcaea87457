"""`view`: a page that shows what became of a function, from its source to kernels, linked by lines."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from fnad.api.functions.explain import Residual, residuals_of
from fnad.api.functions.export import write_files
from fnad.api.functions.jit import Compiled, jit
from fnad.api.functions.lowered import TracedCall
from fnad.api.functions.profile import Profile
from fnad.api.inspect.rows import PaneRow, rows_of
from fnad.api.running.derivations import vjp
from fnad.api.running.transformed import Transformed
from fnad.api.staging.leaves import Function, check_function, function_name
from fnad.errors import LoweringError
from fnad.ir.program import Source
from fnad.ir.types import is_inexact
from fnad.ir.walk import all_equations
from fnad.tracebacks import boundary

FOLDED = 300
"""The number of rows of a pane from which the rows of one line of user code are folded."""

AROUND = 3
"""The lines of user code that are shown before and behind those in the program."""


class Page:
    """A page in HTML, which notebooks show; `save(path)` writes it to a file."""

    def __init__(self, title: str, content: str) -> None:
        self.title, self.html = title, content

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{html.escape(self.html)}" style="width: 100%; height: 36em; border: 0"></iframe>'

    def __repr__(self) -> str:
        return f"<page of {self.title}, {len(self.html):,} characters; write it by .save(path)>"

    @boundary
    def save(self, file: str | Path, *, force: bool = False) -> None:
        """Write the page to a file; raises `ExportError` if the file exists."""
        write_files({Path(file): self.html.encode()}, force)


@boundary
def view(f: Function, /, *args: Any, **kwargs: Any) -> Page:
    """A page that shows what became of a function: user source, program and kernels side by side, linked by lines.

    For `fnad.grad(loss)` and `fnad.value_and_grad(loss)` the program of `loss` is shown, too, and how many bytes of the
    values that a line computes are kept for the pullback.

    Parameters:
        f (function): A function of pytrees of arrays and numbers, which may be transformed.
        *args, **kwargs (pytrees of arrays, numbers and ShapeDtypeStructs): Its arguments.
    Returns:
        Page: The page, which a notebook shows; `save(path)` writes it to a file that needs nothing else.
    Raises:
        TracerEscapeError: If `f` uses a traced value where an ordinary one is required.
    Examples:
        >>> import numpy as np, fnad
        >>> page = fnad.view(fnad.grad(lambda x: np.sum(np.sin(x))), np.ones(3))
        >>> page.title
        'grad of <lambda>'
    """
    return page_of(f, args, kwargs)


def page_of(f: Function, args: tuple[Any, ...], kwargs: dict[str, Any], profile: Profile | None = None) -> Page:
    """The page of a call, with the time of each line of a profile."""
    check_function(f, "view")
    lowered = _compiled(f).lower(*args, **kwargs)
    title, inner = _described(f)
    original = lowered if inner is None else _compiled(inner).lower(*args, **kwargs)
    residuals = [] if inner is None else _residuals(original)
    sources = [*original.sources, *lowered.sources]
    panes = {"source": _source_rows(sources, profile, residuals), "program": _program_rows(original)}
    if inner is not None:
        panes["with its derivative"] = _program_rows(lowered)
    panes["kernels"] = _kernel_rows(lowered)
    count = sum(1 for _ in all_equations(lowered.program))
    content = "".join(_pane(name, rows) for name, rows in panes.items())
    summary = f"{count} equations as traced"
    if residuals:
        summary += f"; {_kept(residuals)} kept for the pullback"
    if profile is not None:
        summary += f"; time of {'values + derivatives' if profile.is_derivative else 'values'} by line"
    words = {"title": html.escape(title), "summary": summary, "count": len(panes)}
    template = (Path(__file__).parent / "page.html").read_text(encoding="utf-8")
    page = re.sub(r"\{(title|summary|count)\}", lambda found: str(words[found[1]]), template)
    return Page(title, page.replace("{panes}", content))


def _compiled(f: Function) -> Compiled[..., Any]:
    return f if isinstance(f, Compiled) else jit(f)


def _described(f: Function) -> tuple[str, Function | None]:
    """The words for a function, and the function that was differentiated, if it was."""
    while isinstance(f, Compiled):
        f = f.__wrapped__
    if isinstance(f, Transformed) and f.transform_name in ("grad", "value_and_grad"):
        return f"{f.transform_name} of {_described(f.__wrapped__)[0]}", f.__wrapped__
    return function_name(f), None


def _residuals(call: TracedCall) -> list[Residual]:
    """The values that the pullback of the first output of a call keeps, inputs aside."""
    program = call.path.traced
    wrt = [i < len(call.in_avals) and is_inexact(var.aval.dtype) for i, var in enumerate(program.inputs)]
    forward, _ = vjp(wrt, 1).derive(program)
    found = residuals_of(forward, len(program.outputs), ["input"] * len(program.inputs))
    return [residual for residual in found if not residual.name]


def _kept(residuals: Sequence[Residual]) -> str:
    """The bytes of residuals, as text; residual stacks have a row more for each step."""
    is_least = any(residual.aval.is_residual_stack for residual in residuals)
    return f"{'at least ' * is_least}{sum(residual.nbytes for residual in residuals):,} B"


# ---- rows ------------------------------------------------------------------------------------------------------------


def _program_rows(call: TracedCall) -> list[PaneRow]:
    return list(rows_of(call.as_text("simplified")))


def _kernel_rows(call: TracedCall) -> list[PaneRow]:
    """The rows of the kernels, without the helpers that they call; of a program that is not lowered, the reason."""
    try:
        text = call.as_text("source")
    except LoweringError as error:
        return [PaneRow(line, "") for line in str(error).split("\n")]
    return list(rows_of(text[max(0, text.find("def chunk0(")) :]))


def _source_rows(sources: Sequence[Source], profile: Profile | None, residuals: Sequence[Residual]) -> list[PaneRow]:
    """The lines of user code that the program comes from, with a few lines around, file by file."""
    kept: dict[tuple[str, int], list[Residual]] = {}
    for residual in residuals:
        if residual.source is not None:
            kept.setdefault((residual.source.file, residual.source.line), []).append(residual)
    rows: list[PaneRow] = []
    for file in dict.fromkeys(source.file for source in sources):
        numbers = {source.line for source in sources if source.file == file}
        lines = _lines_of(file)
        shown = sorted(
            {n for number in numbers for n in range(number - AROUND, number + AROUND + 1)}
            & set(range(1, len(lines) + 1))
        )
        rows.append(PaneRow(file, ""))
        for n, before in zip(shown, [shown[0] - 1 if shown else 0, *shown]):  # noqa: B905 the last one has no next
            if n != before + 1:
                rows.append(PaneRow("⋮", ""))
            notes = [profile.note(file, n)] if profile is not None else []
            if (file, n) in kept:
                notes.append(f"keeps {_kept(kept[file, n])}")
            note = "  ".join(notes)
            rows.append(PaneRow(lines[n - 1], f"{Path(file).name}:{n}" if n in numbers else "", note, number=n))
    return rows


def _lines_of(file: str) -> list[str]:
    import linecache  # noqa: PLC0415 - its lines are those of notebooks' cells, too

    return [line.rstrip("\n") for line in linecache.getlines(file)]


# ---- HTML ------------------------------------------------------------------------------------------------------------


def _pane(name: str, rows: Sequence[PaneRow]) -> str:
    groups = [(line, list(part)) for line, part in groupby(rows, key=lambda row: row.line)]
    is_long = len(rows) > FOLDED and name != "source"
    content = "".join(_group(line, part, is_long) for line, part in groups)
    return f"<section><h2>{html.escape(name)}</h2>{content}</section>"


def _group(line: str, rows: Sequence[PaneRow], is_long: bool) -> str:
    content = "".join(map(_row, rows))
    if not (is_long and line and len(rows) > 1):
        return content
    return f"<details><summary>{html.escape(line)}: {len(rows)} rows</summary>{content}</details>"


def _row(row: PaneRow) -> str:
    number = f"<i>{row.number}</i>" if row.number is not None else ""
    note = f"<b>{html.escape(row.note)}</b>" if row.note else ""
    kind = "row view" if row.is_view else "row"
    return f'<div class="{kind}" data-key="{html.escape(row.line)}">{number}{note}{html.escape(row.text)}</div>'
