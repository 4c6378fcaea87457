"""A thousand functions of installed packages in a process of their own, which survives them (`tests/trace/hunt.py`)."""

import subprocess
import sys


def test_no_function_ends_the_process():
    command = [sys.executable, "-m", "tests.trace.hunt", "--count", "1000", "--seconds", "40"]
    command += ["--packages", "numpy", "scipy"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    *names, last = ran.stdout.splitlines() or [""]
    assert ran.returncode == 0, f"{last}\n{ran.stderr[-4000:]}"
    assert last == f"traced {len(names)} functions"
    assert len(names) > 100
