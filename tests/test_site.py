"""The site of documentation: its reference has each public name, and its search finds them."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import fnad
from tests.together import some_of

ROOT = Path(__file__).parents[1]
DIRECTIVE = re.compile(r"^```\{public\} (\S+)\n((?:[^`].*\n)*)```$", re.MULTILINE)
RECORDS = {"fnad.config": {"Settings", "current", "override", "set_default"}}


def public_names() -> set[str]:
    """The names of fnad and of its submodules."""
    modules = [fnad, *(getattr(fnad, name) for name in fnad.__all__ if isinstance(getattr(fnad, name), ModuleType))]
    listed = {f"{m.__name__}.{name}" for m in modules if m is not fnad.scipy for name in getattr(m, "__all__", ())}
    errors = {f"fnad.errors.{name}" for name, value in vars(fnad.errors).items() if is_error(value)}
    return listed | errors | {f"{module}.{name}" for module, names in RECORDS.items() for name in names}


def is_error(value: object) -> bool:
    """True for an error or warning of fnad."""
    return isinstance(value, type) and issubclass(value, fnad.errors.FnadError | Warning)


def documented() -> Iterator[str]:
    """The names that the pages of the reference document."""
    for page in (ROOT / "docs" / "reference").glob("*.md"):
        for module, names in DIRECTIVE.findall(page.read_text(encoding="utf-8")):
            yield from (f"{module}.{name}" for name in names.split() or import_module(module).__all__)


def test_the_reference_has_each_public_name_once() -> None:
    assert sorted(documented()) == sorted(public_names())


@pytest.mark.slow
def test_the_site_builds_and_its_search_finds_each_public_name(tmp_path: Path) -> None:
    """Of the reference, and of other pages that are drawn."""
    pytest.importorskip("myst_parser", reason="needs the packages of the extra `docs`")
    others = [*ROOT.glob("docs/*.md"), *ROOT.glob("docs/decisions/*.md"), ROOT / "README.md"]
    drawn = some_of(sorted(map(str, others)), "site", 8)
    pages = ["docs/index.md", "docs/reference/**.md", *(str(Path(page).relative_to(ROOT)) for page in drawn)]
    options = {
        "html_theme": "basic",  # that of the site takes a quarter of the time for the navigation of each page
        "include_patterns": ",".join(pages),
        "suppress_warnings": "myst.xref_missing,toc",  # of links to other pages, which a test of the documents follows
    }
    given = [part for name, value in options.items() for part in ("-D", f"{name}={value}")]
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", *given, "-c", "docs", ".", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    index = (tmp_path / "searchindex.js").read_text(encoding="utf-8")
    objects = json.loads(index.removeprefix("Search.setIndex(").removesuffix(")"))["objects"]
    found = {f"{prefix}.{entry[4]}".lstrip(".") for prefix, entries in objects.items() for entry in entries}
    assert public_names() - found == set()
    assert (tmp_path / "index.html").exists()
    assert all((tmp_path / page).with_suffix(".html").exists() for page in pages if "*" not in page)
