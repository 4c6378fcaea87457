"""What is known of the memory of objects, asked of each version of CPython that is known, and here with NumPy."""

import pathlib

import pytest

from tests.pythons import ask

VERSIONS = [(3, minor) for minor in range(11, 16)]
QUESTIONS = pathlib.Path(__file__).with_name("object_questions.py")


@pytest.mark.parametrize("version", VERSIONS, ids="{0[0]}.{0[1]}".format)
def test_questions(version):
    ask(version, QUESTIONS, "numpy")
