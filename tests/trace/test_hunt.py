"""Functions of installed packages in a process that survives them (`tests/trace/hunt.py`)."""

import pytest

from tests.trace.hunt import survived


@pytest.mark.slow
def test_no_function_ends_the_process():
    assert survived(["--count", "60", "--packages", "numpy", "scipy"]) == 60
