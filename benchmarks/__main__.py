"""`python -m benchmarks`: run the session in a child that has its cores and threads from its first import on."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import machine, report


def session(arguments: list[str], cores: int) -> int:
    """Return the status of a session that has so many cores."""
    command = [sys.executable, "-m", "benchmarks.session", *arguments]
    if "cuda" in arguments:
        if not {"--elements", "--markdown"} & {*arguments}:
            command += ["--markdown", str(report.FOLDER / "GPU.md")]
        return subprocess.run(command, env=machine.environment_of_device(), check=False).returncode
    machine.pin(cores)
    return subprocess.run(command, env=machine.environment(cores), check=False).returncode


def reported(arguments: list[str]) -> int:
    """Run the field's problems, or those named, on one core and on two, and write `RESULTS.md` with its chart."""
    names = [] if any(name[:1] != "-" for name in arguments) else report.PROBLEMS
    with tempfile.TemporaryDirectory() as folder:
        files = {cores: Path(folder, f"{cores}.json") for cores in report.CORES}
        runs = {n: session([*arguments, *names, "--json", str(file)], n) for n, file in files.items()}
        report.write([json.loads(file.read_text(encoding="utf-8")) for file in files.values() if file.exists()])
    return max(runs.values())


if __name__ == "__main__":
    rest = [argument for argument in sys.argv[1:] if argument not in ("--report", "--two-cores")]
    sys.exit(reported(rest) if "--report" in sys.argv else session(rest, 2 if "--two-cores" in sys.argv else 1))
