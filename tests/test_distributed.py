"""`fnad.distributed` in several processes, where there is MPI."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

import fnad
from fnad.errors import DistributedError

PROGRAM = Path(__file__).with_name("distributed_program.py")
MPIEXEC = shutil.which("mpiexec") or shutil.which("mpiexec", path=str(Path(sys.executable).parent))
needs_mpi = pytest.mark.skipif(MPIEXEC is None or find_spec("mpi4py") is None, reason="there is no MPI")


def started(*program: str, ranks: int = 2) -> subprocess.CompletedProcess[str]:
    command = [str(MPIEXEC), "-n", str(ranks), sys.executable, *program]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@needs_mpi
@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 3])
def test_values_and_derivatives_of_collectives(ranks: int) -> None:
    done = started(str(PROGRAM), "checks", ranks=ranks)
    assert done.returncode == 0, done.stderr
    assert {f"rank {i} of {ranks} is done" for i in range(ranks)} == set(done.stdout.split("\n")) - {""}


@needs_mpi
@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "words", "raising"),
    [
        ("one fails", "ValueError: rank 0 cannot go on", 1),
        ("one ends", "the ranks do not agree at psum of f64[]", 1),
        ("other programs", "the ranks do not agree at psum of f64[]", 2),
        ("other lines", "the ranks do not agree at psum of f64[]", 2),
        ("other shapes", "the ranks do not agree at psum in distributed_program.py", 2),
        ("other versions", "or another version of fnad than 0.1", 2),
    ],
)
def test_an_error_of_one_rank_ends_all(part: str, words: str, raising: int) -> None:
    """Within seconds, of which most are imports; ranks that do not agree raise it all."""
    start = time.monotonic()
    done = started(str(PROGRAM), part)
    assert done.returncode != 0
    assert words in done.stderr
    assert done.stderr.count("Traceback (most recent call last)") >= raising, done.stderr
    assert time.monotonic() - start < 60


@needs_mpi
@pytest.mark.slow
def test_the_example_gives_the_numbers_of_one_process() -> None:
    example = str(Path(__file__).parents[1] / "examples/data_parallel.py")
    alone, *others = [started(example, "--steps", "20", ranks=ranks) for ranks in (1, 2, 4)]
    assert "loss after" in alone.stdout, alone.stderr
    assert [done.stdout for done in others] == 2 * [alone.stdout]


def test_without_mpi_it_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", None)
    for call in (fnad.distributed.size, lambda: fnad.distributed.psum(1.0), lambda: fnad.distributed.run(print)):
        with pytest.raises(DistributedError, match=r"there is no MPI: .*\n.*\n.*mpiexec -n 2 python FILE"):
            call()
