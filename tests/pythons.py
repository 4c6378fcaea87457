"""The Pythons of this machine, to ask each version about what CPython does not document."""

import pathlib
import shutil
import subprocess
import sys

import pytest


def interpreter(version):
    """Return a Python of a version, None where there is none."""
    if sys.version_info[:2] == version:
        return sys.executable
    name = "python{}.{}".format(*version)
    known = [*pathlib.Path.home().glob(f".pyenv/versions/{name[6:]}.*/bin/{name}"), shutil.which(name)]
    return next((python for python in known if python), None)


def ask(version, questions, *needed):
    """Run a file of questions, which says no by an error, on a version; skip where that, or a package, is not here."""
    python = interpreter(version)
    if python is None or not has(python, needed):
        pytest.skip("this Python is not here, or not with what is needed")
    ran = subprocess.run([python, questions], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def has(python, packages):
    """Say whether a Python has packages."""
    found = subprocess.run([python, "-c", f"import {', '.join(('sys', *packages))}"], capture_output=True, check=False)
    return found.returncode == 0
