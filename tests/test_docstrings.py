"""Docstrings of public names: one sentence, parameters, results, errors and an example, which doctest runs."""

import builtins
import inspect
import re
from doctest import DocTestParser
from types import ModuleType
from typing import Any

import pytest

import fnad

PUBLIC = [name for name in fnad.__all__ if not isinstance(getattr(fnad, name), ModuleType)]
RAISES_NOTHING = {"Minimum", "block_until_ready", "cache_info", "clear_cache", "stop_gradient", "to_host"}
SECTION = re.compile(r"^(Parameters|Returns|Raises|Warns|Examples):\n((?:    .*\n|\n)+)", re.MULTILINE)
LABELS = re.compile(r"^ {4}(\S.*?)(?: \(.*\))?: ", re.MULTILINE)


def parameters(public: Any) -> list[str]:
    """The names of parameters, with the stars of the variadic ones."""
    function = public.__init__ if inspect.isclass(public) and not issubclass(public, tuple) else public
    found = [str(p).partition(":")[0] for p in inspect.signature(function).parameters.values()]
    return [name for name in found if name != "self"]


@pytest.mark.parametrize("name", PUBLIC)
def test_docstring(name: str) -> None:
    public = getattr(fnad, name)
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
