"""`python -m benchmarks`: run the session in a child that has one core and one thread from its first import on."""

import subprocess
import sys

from benchmarks import machine

if __name__ == "__main__":
    machine.pin_to_one_core()
    command = [sys.executable, "-m", "benchmarks.session", *sys.argv[1:]]
    sys.exit(subprocess.run(command, env=machine.environment(), check=False).returncode)
