"""`view`: a page with the source, the programs and the kernels of a function, linked by lines."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
import pytest

import fnad
from fnad.errors import ExportError
from tests.cli import model

X, W = np.linspace(0.1, 1.0, 4), np.ones((3, 4))


def layer(w: Any, x: Any) -> Any:
    h = np.tanh(w @ x)
    return np.sum(h * h)


class Panes(HTMLParser):
    """The rows of a page by pane: (text, key); raises where elements are not closed in their order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.panes: dict[str, list[tuple[str, str]]] = {}
        self.folded = 0
        self._open: list[str] = []
        self._title = self._key = None
        self.feed(page)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag in ("meta", "input"):
            return
        self._open.append(tag)
        given = dict(attrs)
        self.folded += tag == "details"
        if tag == "div" and given["class"].startswith("row"):
            self._key = given["data-key"]
            next(reversed(self.panes.values())).append(("", self._key))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1:] == ["h2"]:
            self.panes[data] = []
        elif self._open[-1:] == ["div"]:
            rows = next(reversed(self.panes.values()))
            rows[-1] = (rows[-1][0] + data, rows[-1][1])


def lines_with(panes: Panes, pane: str, text: str) -> set[str]:
    return {key for row, key in panes.panes[pane] if text in row and key}


def test_panes_are_linked_by_lines_of_user_code() -> None:
    panes = Panes(fnad.view(fnad.grad(layer), W, X).html)
    assert list(panes.panes) == ["source", "program", "with its derivative", "kernels"]
    (line,) = lines_with(panes, "source", "np.tanh(w @ x)")
    assert line.startswith("test_view.py:")
    for pane in ("program", "with its derivative", "kernels"):
        assert line in lines_with(panes, pane, "tanh(")
    assert {key for _, key in panes.panes["with its derivative"]} <= {key for _, key in panes.panes["source"]}


def test_a_function_without_a_derivative_has_three_panes_and_sizes() -> None:
    page = fnad.view(fnad.jit(layer), W, X)
    assert page.title == "layer"
    assert list(Panes(page.html).panes) == ["source", "program", "kernels"]
    assert "<b>24 B</b>" in page.html
    assert "srcdoc=" in page._repr_html_()


def test_names_and_source_are_escaped() -> None:
    page = fnad.view(lambda x: np.where(x < 1, x, 2.0)[x > 0.5], X[:0])
    assert "&lt;lambda&gt;" in page.html
    assert "x &lt; 1" in page.html
    Panes(page.html)


def test_a_long_program_is_folded_by_lines() -> None:
    chosen = np.random.default_rng(0).integers(4, size=400)

    def long(x: Any) -> Any:
        for n in chosen:
            x = (np.sin, np.cos, np.tanh, np.exp)[n](x)
        return np.sum(x)

    panes = Panes(fnad.view(long, X).html)
    assert panes.folded > 0
    assert len(panes.panes["program"]) > 300


def test_lines_show_what_they_keep_for_the_pullback() -> None:
    def rolled(x: Any) -> Any:
        for _ in range(50):
            x = np.sin(x) + 0.5 * x
        return np.sum(x)

    page = fnad.view(fnad.value_and_grad(rolled), X).html
    kept = fnad.explain(rolled, X, memory=True).residuals
    assert kept is not None
    assert sum(residual.nbytes for residual in kept) == 1600
    assert "1,600 B kept for the pullback" in page
    assert re.findall("<b>keeps ([^<]*)</b>([^<]*)", page) == [("1,600 B", "            x = np.sin(x) + 0.5 * x")]
    assert "<b>keeps" not in fnad.view(rolled, X).html


def test_inputs_and_host_steps_keep_nothing_of_their_own() -> None:
    def f(w: Any) -> Any:
        fnad.debug.print("{}", w)
        return np.sum(w * W)

    assert "<b>keeps" not in fnad.view(fnad.grad(f), W).html


LOOK = """<script>
const lit = () => [...document.querySelectorAll("section")].map(pane => pane.querySelectorAll(".lit").length);
const row = [...document.querySelectorAll(".row")].find(row => row.textContent.includes("SHOWN") && row.dataset.key);
document.body.offsetHeight;
const opened = performance.now();
row.dispatchEvent(new Event("mouseover", {bubbles: true}));
const hover = lit();
row.click();
const search = document.getElementById("search");
search.value = "SHOWN";
search.dispatchEvent(new Event("input"));
const apart = document.querySelectorAll(".row:not(.other)").length;
const open = document.querySelectorAll("details[open]").length;
document.body.dataset.seen = JSON.stringify({opened, hover, click: lit(), apart, open});
</script></body>"""


def seen(page: str, text: str, folder: Path) -> dict[str, Any]:
    """A page in a browser: the time to open it, and the rows that light up and are found by a text of the source."""
    browser = next(filter(None, map(which, ["chromium", "chromium-browser", "google-chrome"])), None)
    if browser is None:
        pytest.skip("needs Chromium")
    file = folder / "page.html"
    file.write_text(page.replace("</body>", LOOK.replace("SHOWN", text)), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}", "--dump-dom"]
    done = subprocess.run([browser, *options, file.as_uri()], capture_output=True, text=True, check=True, timeout=120)
    (found,) = re.findall(r'data-seen="([^"]*)"', done.stdout)
    return json.loads(found.replace("&quot;", '"'))


@pytest.mark.slow
def test_a_browser_links_panes_and_searches(tmp_path: Path) -> None:
    found = seen(fnad.view(fnad.grad(layer), W, X).html, "tanh(", tmp_path)
    assert found["hover"] == found["click"]
    assert found["hover"][0] == 1
    assert min(found["hover"]) >= 1
    assert found["apart"] == 4
    assert found["open"] == 0


@pytest.mark.slow
def test_a_browser_opens_a_program_of_2000_equations_in_two_seconds(tmp_path: Path) -> None:
    chosen = np.random.default_rng(0).integers(4, size=2000)

    def long(x: Any) -> Any:
        for n in chosen:
            x = (np.sin, np.cos, np.tanh, np.exp)[n](x)
        return np.sum(x)

    found = seen(fnad.view(long, X).html, "np.tanh, np.exp", tmp_path)
    assert found["opened"] < 2000
    assert min(found["click"][:2]) >= 1
    assert found["open"] >= 1


def test_decisions_are_shown() -> None:
    page = fnad.view(model.branches, 2.0)
    assert "decided: " in page.html


def test_a_page_is_written_once(tmp_path: Path) -> None:
    page = fnad.view(layer, W, X)
    page.save(tmp_path / "layer.html")
    with pytest.raises(ExportError, match=r"layer\.html exists"):
        page.save(tmp_path / "layer.html")
    page.save(tmp_path / "layer.html", force=True)
    assert (tmp_path / "layer.html").read_text(encoding="utf-8") == page.html


@pytest.mark.slow
@pytest.mark.parametrize("command", ["view", "export"])
def test_the_commands_write_files(command: str, tmp_path: Path) -> None:
    source = Path(model.__file__)
    form = ["--c"] if command == "export" else []
    given = [sys.executable, "-m", "fnad", command, f"{source}:loss", "--args", "f64[3]", "--grad", *form, "-o", "file"]
    runs = [subprocess.run(given, cwd=tmp_path, capture_output=True, text=True, check=False) for _ in range(2)]
    assert runs[0].returncode == 0, runs[0].stderr
    assert runs[0].stdout.split()[-1].startswith("file")
    assert (runs[1].returncode, runs[1].stderr.count("\n")) == (2, 1)
    assert "exists" in runs[1].stderr
