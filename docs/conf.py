"""The site of documentation: `sphinx-build -W --keep-going -c docs . build/site`.

The folder of the pages is the root of the repository, so links between guides, examples and benchmarks are those of the
files. Three directives complete it: `public` documents names of a module, `examples` and `notebooks` show the files of
a folder.
"""

import ast
import json
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from docutils.nodes import Node
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).parents[1]

project, author = "fnad", "the authors of fnad"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**.md", "examples/README.md", "benchmarks/*.md"]
default_role = "literal"
myst_heading_anchors = 6
autodoc_typehints = "none"
html_theme, html_title = "furo", "fnad"
html_copy_source = False
html_static_path, html_css_files = ["static"], ["site.css"]


class Public(SphinxDirective):
    """The docstrings of names of a module: those listed, or all of its `__all__`."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[Node]:
        module = import_module(self.arguments[0])
        names = " ".join(self.content).split() or module.__all__
        lines = [entry(module, name) for name in names]
        return self.parse_text_to_nodes("```{eval-rst}\n" + "\n".join(lines) + "\n```")


def entry(module: ModuleType, name: str) -> str:
    """The directive for a name of a module."""
    value, full = getattr(module, name), f"{module.__name__}.{name}"
    if isinstance(value, ModuleType):
        return f".. py:module:: {full}\n"
    if isinstance(value, type):
        return f".. {'autoexception' if issubclass(value, BaseException) else 'autoclass'}:: {full}\n"
    return f".. autofunction:: {full}\n" if callable(value) else f".. py:data:: {name}\n   :module: {module.__name__}\n"


class Examples(SphinxDirective):
    """The programs of a folder: docstring, picture and source."""

    required_arguments = 1

    def run(self) -> list[Node]:
        folder = ROOT / self.arguments[0]
        text = "\n\n".join(shown(file) for file in sorted(folder.glob("*.py")))
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def shown(file: Path) -> str:
    """The section of a program, in Markdown."""
    path = file.relative_to(ROOT)
    summary = (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").partition("\n\n")[0]
    pictures = [f"![The plot of {file.name}](/docs/gallery/{file.stem}.png)"]
    found = pictures if (ROOT / "docs" / "gallery" / f"{file.stem}.png").exists() else []
    source = f"```{{literalinclude}} /{path}\n:language: python\n```"
    return "\n\n".join([f"### {file.name}", summary, *found, source])


class Notebooks(SphinxDirective):
    """The notebooks of a folder: their text, code and outputs."""

    required_arguments = 1

    def run(self) -> list[Node]:
        text = "\n\n".join(cells_of(file) for file in sorted((ROOT / self.arguments[0]).glob("*.ipynb")))
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def cells_of(file: Path) -> str:
    """The section of a notebook, in Markdown, with a link to the file."""
    parts = [f"{{download}}`{file.name} </{file.relative_to(ROOT)}>`"]
    for cell in json.loads(file.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        is_code = cell["cell_type"] == "code"
        parts.append(f"```python\n{source}\n```" if is_code else re.sub(r"^#", "###", source, flags=re.MULTILINE))
        parts += map(output_of, cell.get("outputs", ()))
    title = parts.pop(1).partition("\n")
    return "\n\n".join([title[0], parts[0], title[2], *parts[1:]])


def output_of(output: dict[str, Any]) -> str:
    """The output of a cell, in Markdown: HTML, a picture or text."""
    data = output.get("data", {"text/plain": "".join(output.get("text", ())).rstrip()})
    if "text/html" in data:
        return f"```{{raw}} html\n{data['text/html']}\n```"
    if "image/png" in data:
        return f"![Output of the cell above](data:image/png;base64,{data['image/png'].strip()})"
    return f"```text\n{data['text/plain']}\n```"


def as_read(_app: Sphinx, page: str, source: list[str]) -> None:
    """Mark code that is only shown, and lead links to notebooks to their sections of the gallery."""
    caption = "PyTorch" if page.endswith("from_pytorch") else "shown, not run"
    text = source[0].replace("<!-- not run -->\n```python\n", f"```{{code-block}} python\n:caption: {caption}\n\n")
    there = "" if page.endswith("gallery") else "gallery.md"
    source[0] = re.sub(r"\(notebooks/(\w+)\.ipynb\)", lambda found: f"({there}#{heading_of(found[1])})", text)


def heading_of(notebook: str) -> str:
    """The anchor of the section of a notebook."""
    cells = json.loads((ROOT / "docs" / "notebooks" / f"{notebook}.ipynb").read_text(encoding="utf-8"))["cells"]
    return re.sub(r"\W+", "-", cells[0]["source"][0].lower().strip("# \n"))


CONTINUED = re.compile(r"^Returns:\n(    .*\n?)+", re.MULTILINE)
"""A section whose continued lines, farther to the right than its first one, napoleon would take for definitions."""

MARKUP = re.compile(r"(`[^`]*`)(?=\w)|`[^`]*`|[*|]")


def without_markup(_app: Sphinx, _kind: str, _name: str, _value: object, _options: object, lines: list[str]) -> None:
    """Escape stars and bars of prose; code, examples and the labels of variadic arguments keep theirs."""
    lines[:] = CONTINUED.sub(lambda found: found[0].replace("\n        ", "\n    "), "\n".join(lines)).split("\n")
    example = False
    for i, line in enumerate(lines):
        example = ">>>" in line or (example and line.strip() != "")
        if not example and not re.match(r" *\*+\w+( \(|:)", line):
            lines[i] = MARKUP.sub(escaped, line)


def escaped(found: re.Match[str]) -> str:
    """A star or bar as itself; code that letters follow, such as a plural, apart from them."""
    return rf"{found[1]}\ " if found[1] else found[0] if found[0].startswith("`") else rf"\{found[0]}"


def write_entry(app: Sphinx, error: Exception | None) -> None:
    """Write index.html, which leads to the first page."""
    if error is None and app.builder.name == "html":
        page = '<!doctype html><meta http-equiv="refresh" content="0; url=docs/index.html"><title>fnad</title>\n'
        Path(app.outdir, "index.html").write_text(page, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Register the directives."""
    app.add_directive("public", Public)
    app.add_directive("examples", Examples)
    app.add_directive("notebooks", Notebooks)
    app.connect("source-read", as_read)
    app.connect("autodoc-process-docstring", without_markup, priority=400)  # before napoleon writes its own
    app.connect("build-finished", write_entry)
