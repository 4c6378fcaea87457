"""The pages say what is true: their code runs, in order, and prints what they show.

In README.md, CONTRIBUTING.md and docs/*.md

    ```python          is executed, all blocks of a page in one namespace;
    ```text            directly after it is what it printed;
    ```console         is a line `$ fnad …` and what that command printed;
    <!-- not run -->   before a fence, as every other fence, is shown, not executed.

The cells of docs/notebooks/*.ipynb are executed, too; their pictures and tables must be there, with any content. In
expected output `...` matches anything, and numbers are compared to six significant digits. Run as a program, this file
writes the real outputs into the pages:

    python -m tests.test_documents [PAGE...]
"""

from __future__ import annotations

import ast
import base64
import doctest
import io
import json
import linecache
import re
import runpy
import shlex
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import fnad.nn
import fnad.random  # the primitives of these must not be forgotten with what a page declares
import fnad.scipy.linalg
import fnad.scipy.special
import fnad.scipy.stats.generic
from fnad.cli import main as fnad_command
from fnad.ir.primitive import PRIMITIVES
from fnad.numpy.registry import RULES
from fnad.numpy.scipy_ufuncs import COMPOSED, NATIVE, UFUNCS, is_scipy
from tests.together import in_groups

ROOT = Path(__file__).parents[1]
MAP = ROOT / "ARCHITECTURE.md"
PACKAGE = Path(fnad.__file__).parent
LINKED = [MAP, *(ROOT / name for name in ("SECURITY.md", "benchmarks/README.md", "examples/README.md"))]
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))

INTERPRETED = {"implicit"}
"""Pages whose programs are long and run a few times, and say nothing of how they run."""

FENCE = re.compile(r"^(?P<shown><!-- not run -->\n)?```(?P<kind>[^\n`]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d*(?:e[+-]?\d+)?")
CHECKER = doctest.OutputChecker()


@dataclass(frozen=True)
class Block:
    """A fenced block: what kind it is, its text, and where the text stands in the page."""

    kind: str
    body: str
    start: int
    stop: int


def blocks(text: str) -> list[Block]:
    """Return the fenced blocks of a page."""
    found = FENCE.finditer(text)
    return [Block("shown" if m["shown"] else m["kind"].strip(), m["body"], *m.span("body")) for m in found]


def executed(page: Path) -> Iterator[tuple[Block, str, str]]:
    """Run a page; yield the block that holds each output, the output expected there, and the real one.

    What the page declares and sets is forgotten afterwards.
    """
    text = page.read_text(encoding="utf-8")
    executor = fnad.config.override(executor="interpreter" if page.stem in INTERPRETED else "auto")
    with executor, own_rules_forgotten(), patch.dict(PRIMITIVES), patch.dict(UFUNCS), np.printoptions():
        yield from executed_blocks(page, text, blocks(text))


@contextmanager
def own_rules_forgotten() -> Iterator[None]:
    """Forget the rules that a page enters; those of SciPy's functions, which fnad enters at their first use, stay."""
    known = set(RULES)
    yield
    for function in RULES.keys() - known:
        ufunc = function[0] if isinstance(function, tuple) else function
        if not (has_rule(ufunc) if isinstance(ufunc, np.ufunc) else RULES[function].__module__.startswith("fnad.")):
            del RULES[function]


def has_rule(ufunc: np.ufunc) -> bool:
    """True if fnad has a rule for a ufunc of scipy.special."""
    return is_scipy(ufunc) and ufunc.__name__ in {*COMPOSED, *NATIVE, *UFUNCS}


def executed_blocks(page: Path, text: str, found: list[Block]) -> Iterator[tuple[Block, str, str]]:
    """Run the blocks of a page in order."""
    namespace: dict[str, Any] = {"__name__": page.stem}
    for block, following in zip(found, [*found[1:], None], strict=False):
        if block.kind == "python":
            printed = run_python(page, text, block, namespace)
            if following is not None and following.kind == "text" and is_adjacent(text, block, following):
                yield following, following.body, printed
            else:
                assert printed == "", f"{page.name} does not show what this block prints:\n{block.body}{printed}"
        elif block.kind == "console":
            command, _, expected = block.body.partition("\n")
            yield block, expected, run_command(command)


def executed_cells(page: Path, notebook: dict[str, Any]) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Run the cells of a notebook in order; yield each with its outputs, as a notebook holds them."""
    namespace: dict[str, Any] = {"__name__": page.stem}
    codes = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(codes, 1):
        source, name = "".join(cell["source"]), f"{page.stem} [{number}]"
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        body = ast.parse(source, name).body
        last = body.pop() if body and isinstance(body[-1], ast.Expr) and not source.endswith(";") else None
        with np.printoptions(), redirect_stdout(io.StringIO()) as printed:
            exec(compile(ast.Module(body, []), name, "exec", dont_inherit=True), namespace)
            value = eval(compile(ast.Expression(last.value), name, "eval"), namespace) if last is not None else None
        yield cell, list(outputs_of(printed.getvalue(), value, number))


def outputs_of(printed: str, value: Any, number: int) -> Iterator[dict[str, Any]]:
    """The text that a cell printed, its value and its figures, which are closed."""
    if printed:
        yield {"name": "stdout", "output_type": "stream", "text": printed.splitlines(keepends=True)}
    if value is not None:
        data = {"text/html": value._repr_html_()} if hasattr(value, "_repr_html_") else {}
        data["text/plain"] = repr(value)
        yield {"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"}
    pyplot = sys.modules.get("matplotlib.pyplot")
    for figure in map(pyplot.figure, pyplot.get_fignums()) if pyplot is not None else ():
        picture = io.BytesIO()
        figure.savefig(picture, format="png", dpi=72, metadata={"Software": None})
        data = {"image/png": base64.b64encode(picture.getvalue()).decode(), "text/plain": "<figure>"}
        yield {"data": data, "metadata": {}, "output_type": "display_data"}
        pyplot.close(figure)


def kinds(output: dict[str, Any]) -> list[str]:
    """The forms in which a notebook holds an output."""
    return sorted(output.get("data", ["text"]))


def is_adjacent(text: str, block: Block, following: Block) -> bool:
    """Say whether only blank lines and fences stand between two blocks."""
    return text[block.stop : following.start].replace("```text", "").replace("```", "").strip() == ""


def run_python(page: Path, text: str, block: Block, namespace: dict[str, Any]) -> str:
    """Execute a block, at its own line numbers so that errors point into the page; return what it prints."""
    lines_above = text.count("\n", 0, block.start)
    code = compile("\n" * lines_above + block.body, str(page), "exec", dont_inherit=True)
    with redirect_stdout(io.StringIO()) as printed:
        exec(code, namespace)
    return printed.getvalue()


def run_command(line: str) -> str:
    """Run a line `$ fnad …` in the project's folder and in this process; return what it prints."""
    program, *arguments = shlex.split(line.removeprefix("$ "))
    assert program == "fnad", f"only the fnad command is run, not {program}"
    fnad.clear_cache()  # an equal program has the lines of the function that it was first made of
    with chdir(ROOT), redirect_stdout(io.StringIO()) as printed, redirect_stderr(printed):
        fnad_command(arguments)
    return printed.getvalue()


def rounded(text: str) -> str:
    """Return the text with its fractional numbers to six significant digits."""
    return NUMBER.sub(lambda number: f"{float(number[0]):.6g}", text)


def same(expected: str, printed: str) -> bool:
    """Compare outputs up to white space, `...` and the last digits."""
    return CHECKER.check_output(rounded(expected), rounded(printed), doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_prints_what_it_shows(page: Path) -> None:
    for _, expected, printed in executed(page):
        assert same(expected, printed), f"{page.name} shows\n{expected}\nbut this is printed:\n{printed}"


@pytest.mark.parametrize("page", NOTEBOOKS, ids=lambda page: page.stem)
def test_notebook_prints_what_it_shows(page: Path) -> None:
    pytest.importorskip("matplotlib").use("agg")
    pytest.importorskip("matplotlib.pyplot").close("all")  # the figures of other tests
    cells = list(executed_cells(page, json.loads(page.read_text(encoding="utf-8"))))
    assert cells
    for cell, outputs in cells:
        assert [*map(kinds, cell["outputs"])] == [*map(kinds, outputs)]
        for shown, output in zip(cell["outputs"], outputs, strict=True):
            assert same("".join(shown.get("text", ())), "".join(output.get("text", ())))
    assert "image/png" in {kind for _, outputs in cells for output in outputs for kind in kinds(output)}


@in_groups("page", [*PAGES, *LINKED, *DECISIONS], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"`[^`\n]*`", "", page.read_text(encoding="utf-8"))  # code has brackets of its own
    for file, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", text):
        target = page.parent / file if file else page
        assert target.exists(), f"{page.name} links to {file}"
        assert not anchor or anchor in anchors(target), f"{page.name} links to {file}#{anchor}"


@in_groups("page", [MAP, *DECISIONS], ids=lambda page: page.stem)
def test_files_that_a_page_names_are_there(page: Path) -> None:
    folders = [(ROOT, ROOT / "examples"), (ROOT, ROOT / "tests"), (PACKAGE.parent, PACKAGE)]
    files = {f"/{file.relative_to(root)}" for root, folder in folders for file in folder.rglob("*.py")}
    named = re.findall(r"`([\w/]+\.py)`", page.read_text(encoding="utf-8"))
    assert [name for name in named if not any(file.endswith(f"/{name}") for file in files)] == []


@pytest.mark.slow
def test_the_map_and_the_first_page_are_short() -> None:
    assert len(MAP.read_text(encoding="utf-8").split()) <= 2500
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


def test_the_list_of_decisions_has_each() -> None:
    index = (ROOT / "docs" / "decisions" / "README.md").read_text(encoding="utf-8")
    notes = [page.name for page in DECISIONS if page.name != "README.md"]
    assert re.findall(r"\]\((\d{3}-[\w-]+\.md)\)", index) == notes


def test_the_small_fnad_runs(capsys: pytest.CaptureFixture[str]) -> None:
    small = runpy.run_path(str(ROOT / "docs" / "mini.py"))
    found = doctest.DocTestFinder(exclude_empty=True)
    examples = [case for name in ("trace", "joint", "grad") for case in found.find(small[name], name, globs=small)]
    assert [doctest.DocTestRunner().run(case).failed for case in examples] == [0, 0, 0]
    small["main"]()
    assert capsys.readouterr().out.endswith("the gradient is fnad's\n")


def anchors(page: Path) -> set[str]:
    """Return the names of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def update(page: Path) -> bool:
    """Write the real outputs into a page, where they differ from those it shows; say whether there were any."""
    text = page.read_text(encoding="utf-8")
    changes = [(block, printed) for block, expected, printed in executed(page) if not same(expected, printed)]
    for block, printed in reversed(changes):
        head = block.body.partition("\n")[0] + "\n" if block.kind == "console" else ""
        text = text[: block.start] + head + printed.rstrip() + "\n" + text[block.stop :]
    page.write_text(text, encoding="utf-8")
    return bool(changes)


def update_notebook(page: Path) -> None:
    """Write the real outputs into a notebook."""
    notebook = json.loads(page.read_text(encoding="utf-8"))
    for number, (cell, outputs) in enumerate(executed_cells(page, notebook), 1):
        cell.update(execution_count=number, outputs=outputs)
    page.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for each in [Path(name).resolve() for name in sys.argv[1:]] or [*PAGES, *NOTEBOOKS]:
        if each.suffix == ".ipynb":
            update_notebook(each)
            continue
        while update(each):  # a longer output moves the lines that errors below it name
            linecache.checkcache()
