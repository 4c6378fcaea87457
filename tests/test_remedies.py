"""Every remedy that an error gives works: code that raises it, and the same code with the remedy applied.

They are the rows of `remedies.txt`, each some Python, an arrow, and the Python that the remedy in its error makes of
it. A remedy of the package that no row raises fails the test. To add one, write the shortest call that raises the
error, and below `->` that call as the remedy says; between rows is a blank line, and none is in them.
"""

from __future__ import annotations

import linecache
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy
import scipy.interpolate
import scipy.ndimage
import scipy.sparse.linalg
import scipy.spatial
import scipy.stats

import fnad
from fnad import random
from fnad.api.running import paths
from fnad.errors import CacheWarning, ControlFlowWarning, FnadError, PathsWarning
from tests.gpu import Distant, simulated
from tests.remedies import remedies
from tests.together import together

PRELUDE = """
x = np.array([0.5, 1.0, 2.0])
m = np.diag([2.0, 3.0, 4.0]) + 1.0
key = random.key(0)
total = lambda x: np.sum(x * x)
"""

BLOCKS = (Path(__file__).parent / "remedies.txt").read_text().strip().split("\n\n")
ROWS = [(broken, repaired) for broken, arrow, repaired in (block.partition("\n->") for block in BLOCKS) if arrow]


def run(code: str) -> None:
    """Execute some Python whose lines errors can show."""
    name = f"<{code}>"
    linecache.cache[name] = len(code), None, code.splitlines(keepends=True), name
    names: dict[str, Any] = {
        "np": np,
        "scipy": scipy,
        "fnad": fnad,
        "random": random,
        "grad": fnad.grad,
        "jit": fnad.jit,
        "Distant": Distant,
    }
    exec(PRELUDE, names)
    with np.errstate(all="ignore"), simulated():
        exec(compile(code, name, "exec"), names)


def remedy_of(code: str) -> str | None:
    """The remedy in the error that some Python raises, or in the warning that it gives."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        try:
            run(code)
        except FnadError as error:
            return error.remedy
    (last,) = [str(w.message) for w in given if isinstance(w.message, (CacheWarning, ControlFlowWarning, PathsWarning))]
    return last.splitlines()[-1].rpartition("interpreted: ")[2].strip()


UNREACHED = {
    "check the index against the axis": "native code names a closer reason first",
    "use x[index] += values": "slices alone have a rule before it",
    "make it so": "it is in a sample of a primitive",
    "its values come near the largest": "the compiler decides which programs round so",
    "they are near singular, or badly scaled": "no small system is known that GMRES fails for",
    "have the handler set a flag": "it takes a signal",
    "call atexit.register after the first call": "it takes the end of a process",
    "set it to info, warning or error": "it takes an environment variable",
    "pip install matplotlib": "tests install nothing",
    "pip install 'fnad[cuda]'": "tests install nothing",
    "it takes a GPU of NVIDIA's": "it takes a machine without a GPU, and one with it",
    "copy it: fnad.to_device(fnad.to_host(x)), under cupy": "it takes two GPUs",
    "pip install 'nvidia-cuda-nvcc": "tests install nothing",
    "call them under cupy.cuda.Device": "it takes two GPUs",
    "give x.detach() of it": "it takes a GPU",
    "give a copy, as a NumPy array": "it takes a GPU",
    "use smaller batches, or fnad.checkpoint": "it takes a GPU",
    "install fnad[mpi]": "tests install nothing",
    "ranks are counted from 0": "it takes MPI",
    "have all ranks call the same collectives": "it takes MPI",
    "split the array by np.stack": "it takes MPI",
    "trace it again": "it takes MPI",
    "give an array with such an axis": "it takes a file that was changed",
    "export it again": "it takes a file that was changed",
    "see the output of MPI": "it takes MPI",
}
"""The beginnings of remedies that no call is known to raise, each with the reason."""


@pytest.mark.slow
def test_every_remedy_is_in_the_table_and_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "MOST", 8)
    known, given = remedies(), set[str]()
    with together() as check, fnad.config.override(executor="interpreter"):
        for broken, repaired in ROWS:
            with check(broken):
                given.add(remedy_of(broken) or "")
                run(repaired.strip())
    raised = {pattern for pattern in known if any(re.match(pattern, remedy, re.DOTALL) for remedy in given)}
    unreached = {pattern for pattern in known if pattern.startswith(tuple(map(re.escape, UNREACHED)))}
    missing = [f"{place}: {pattern}" for pattern, place in known.items() if pattern not in raised | unreached]
    assert not missing, "add a row for " + "\n".join(missing)
    assert not unreached & raised, "these are raised: they are to be taken from UNREACHED"
    assert len(unreached) == len(UNREACHED), "some are not in the package any more"


@pytest.mark.slow
def test_remedies_are_collected_wherever_they_stand() -> None:
    known = {re.sub(r"\\\\(.)", r"\1", pattern) for pattern in remedies()}
    assert {
        "write int(x) for a number x",  # remedy=…
        "give one of .*",  # with a name in it
        "start with floats",  # one of two
        "pass it as a float",  # by position
        "leave out what has no weight at all",  # in a dict
        "return it from the traced function, and pickle the result",  # a constant
        "repeat with fnad.while_loop",  # returned
        "give one boundary between each two, in ascending order",  # assigned
    } <= {pattern.replace("\\", "") for pattern in known}
