"""A thousand functions of installed packages in a process of their own, which survives them (`tests/trace/hunt.py`)."""

from tests.trace.hunt import survived


def test_no_function_ends_the_process():
    assert survived(["--count", "1000", "--seconds", "40", "--packages", "numpy", "scipy"]) > 100
