"""What is known of CPython's instructions and profilers, asked of each version that is known and on this machine."""

import pathlib
import sys

import pytest

from fnad.trace.bytecode import VERSIONS
from tests.pythons import ask

HERE = pathlib.Path(__file__).parent


@pytest.mark.parametrize("version", VERSIONS, ids="{0[0]}.{0[1]}".format)
@pytest.mark.parametrize("questions", ["bytecode_questions.py", "profiler_questions.py"])
def test_questions(questions, version):
    ask(version, HERE / questions)


def test_this_version_is_known():
    assert sys.version_info[:2] in VERSIONS
