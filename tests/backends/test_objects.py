"""What is known of the memory of objects, asked of each version of CPython that is known, and here with NumPy."""

import pathlib

import pytest

from fnad.trace.bytecode import VERSIONS
from tests.pythons import ask

QUESTIONS = pathlib.Path(__file__).with_name("object_questions.py")


@pytest.mark.parametrize("version", VERSIONS, ids="{0[0]}.{0[1]}".format)
def test_questions(version):
    ask(version, QUESTIONS, "numpy")
