"""What is known of CPython's instructions, asked of each version that is known and on this machine."""

import pathlib
import shutil
import subprocess
import sys

import pytest

from fnad.trace.bytecode import VERSIONS

QUESTIONS = pathlib.Path(__file__).with_name("bytecode_questions.py")


def interpreter(version):
    """Return a Python of a version, None where there is none."""
    if sys.version_info[:2] == version:
        return sys.executable
    name = "python{}.{}".format(*version)
    known = [*pathlib.Path.home().glob(f".pyenv/versions/{name[6:]}.*/bin/{name}"), shutil.which(name)]
    return next((python for python in known if python), None)


@pytest.mark.parametrize("version", VERSIONS, ids="{0[0]}.{0[1]}".format)
def test_questions(version):
    python = interpreter(version)
    if python is None:
        pytest.skip("this Python is not here")
    ran = subprocess.run([python, QUESTIONS], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_this_version_is_known():
    assert sys.version_info[:2] in VERSIONS
