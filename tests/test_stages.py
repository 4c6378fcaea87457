"""Golden dumps of small functions at each stage; `--update-golden` writes them anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from fnad.cli.dump import STAGES, Request, dump

FUNCTIONS = str(Path(__file__).parent / "golden" / "functions.py")
READABLE = [stage for stage in STAGES if stage not in {"llvm", "asm"}]

CASES = {
    "sum_sin_x": ("f64[1000]", "grad"),
}


@pytest.mark.parametrize("stage", READABLE)
@pytest.mark.parametrize("name", CASES)
def test_dumps_stay_as_they_are(golden, name: str, stage: str) -> None:
    types, mode = CASES[name]
    golden(f"{name}.{stage}", dump(Request(f"{FUNCTIONS}:{name}", types, mode, None, stage)))
