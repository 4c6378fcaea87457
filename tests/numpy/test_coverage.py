"""The page of what fnad knows of NumPy is that of the tables, and speaks of every function."""

import pytest

from tests.numpy.coverage import MODULES, PAGE, page, public, rows, rule_of
from tests.numpy.left_out import LEFT_OUT, NOTES


@pytest.mark.peers
def test_page_is_of_today():
    assert PAGE.read_text() == page(), "stale: run python -m tests.numpy.coverage"


@pytest.mark.peers
def test_every_function_of_numpy_is_there_or_left_out_with_a_reason():
    named = {name for names in LEFT_OUT.values() for name in names}
    functions = [(module, name) for module in MODULES if module.startswith("numpy") for name in public(MODULES[module])]
    without = {name for module, name in functions if rule_of(module, name) is None}
    assert without - named == set()
    assert named & {name for _, name in functions} <= without
    assert sum(map(len, LEFT_OUT.values())) == len(named)


@pytest.mark.slow
def test_notes_are_of_functions_that_are_there():
    assert NOTES.keys() <= {name for functions in rows().values() for name in functions}
