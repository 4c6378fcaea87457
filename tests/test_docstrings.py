"""Docstrings: of public names their sections, with an example that doctest runs; of all names plain English."""

import builtins
import inspect
import re
from collections import Counter
from doctest import DocTestParser
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import fnad
from tests.together import in_groups

MODULES = {"": fnad, "debug.": fnad.debug, "distributed.": fnad.distributed, "tree.": fnad.tree}
PUBLIC = {
    f"{prefix}{name}": getattr(module, name)
    for prefix, module in MODULES.items()
    for name in module.__all__
    if not isinstance(getattr(module, name), ModuleType)
}
RAISES_NOTHING = {"Minimum", "block_until_ready", "cache_info", "clear_cache", "stop_gradient", "to_host"} | {
    f"tree.{name}" for name in ("all", "flatten", "flatten_with_path", "leaves", "leaves_with_path", "structure")
}
SECTION = re.compile(r"^(Parameters|Returns|Raises|Warns|Examples):\n((?:    .*\n|\n)+)", re.MULTILINE)
LABELS = re.compile(r"^ {4}(\S.*?)(?: \(.*\))?: ", re.MULTILINE)


def parameters(public: Any) -> list[str]:
    """The names of parameters, with the stars of the variadic ones."""
    function = public.__init__ if inspect.isclass(public) and not issubclass(public, tuple) else public
    found = [str(p).partition(":")[0] for p in inspect.signature(function).parameters.values()]
    return [name for name in found if name != "self"]


@in_groups("name", PUBLIC)
def test_docstrings_of_public_names_have_their_sections(name: str) -> None:
    public = PUBLIC[name]
    text = (inspect.getdoc(public) or "") + "\n"
    sentence, sections = text.partition("\n")[0], dict(SECTION.findall(text))
    assert re.fullmatch(r"(?!What|Whether|Where|To )[A-Z].*\.", sentence)
    documented = [label for labels in LABELS.findall(sections.get("Parameters", "")) for label in labels.split(", ")]
    assert sorted(documented) == sorted(parameters(public))
    returns_nothing = inspect.isclass(public) or inspect.signature(public).return_annotation == "None"
    assert ("Returns" in sections) or returns_nothing
    assert ("Raises" in sections) == (name not in RAISES_NOTHING)
    errors = [error for labels in LABELS.findall(sections.get("Raises", "")) for error in labels.split(", ")]
    assert [error for error in errors if not hasattr(fnad.errors, error) and not hasattr(builtins, error)] == []
    examples = DocTestParser().get_examples(sections["Examples"])
    assert any(public.__name__ in example.source + example.want for example in examples)
    assert any(example.want or example.exc_msg for example in examples)


# ---- plain English ---------------------------------------------------------------------------------------------------

FILES = sorted(Path(fnad.__file__).parent.rglob("*.py"))
OPENING = re.compile(r"(What|Whether|Where|How|Who|To [a-z]+)\b")
POSSESSIVE = re.compile(
    r"\bof (?:NumPy|SciPy|Python|fnad|CuPy|LLVM|Numba|Cython|pandas|pytest|optree|the user)'s"
    r"(?=[,.;:)\"\n]| (?:that|which|is|in|are|for|and|or|with|by|to|from|as|at|on)\b)"
)
TABLE = re.compile(r"^ |\S {3,}\S|>>>", re.MULTILINE)
"""Paragraphs of grammars, formulas and examples are not prose."""


STATEMENT = re.compile(r"(?<=\n)\s*r?$|^r?$")
"""What stands before a string that is a statement."""


@cache
def texts() -> list[tuple[str, str]]:
    """The docstrings of all files, those of attributes included, with the names of the files."""
    found: list[tuple[str, str]] = []
    for file in FILES:
        before, *parts = file.read_text(encoding="utf-8").split('"""')
        for text, behind in zip(parts[::2], parts[1::2], strict=True):
            if STATEMENT.search(before[-40:]) and behind[:1] in ("\n", ""):
                found.append((file.name, inspect.cleandoc(text)))
            before = behind
    return found


def test_docstrings_name_the_thing_first() -> None:
    assert [(name, text.split("\n")[0]) for name, text in texts() if OPENING.match(text)] == []


def test_possessives_have_a_noun() -> None:
    found = [(file.name, line) for file in FILES for line in file.read_text(encoding="utf-8").split("\n")]
    assert [place for place in found if POSSESSIVE.search(place[1])] == []


def test_classes_have_names_of_their_own() -> None:
    sources = (file.read_text(encoding="utf-8") for file in FILES)
    names = Counter(name for source in sources for name in re.findall(r"^ *class (\w+)", source, re.MULTILINE))
    assert [name for name, times in names.items() if times > 1] == []


def test_sentences_are_short() -> None:
    prose = [(name, part) for name, text in texts() for part in re.split(r"\n\s*\n", text) if not TABLE.search(part)]
    sentences = [(name, sentence) for name, part in prose for sentence in re.split(r"(?<=[.;:])\s+", part)]
    assert [(name, sentence) for name, sentence in sentences if len(sentence.split()) > 35] == []
