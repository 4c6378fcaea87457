"""fnad on macOS and Windows, as far as Linux can tell: `tests/platforms.py` says how."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.platforms import TRIPLES
from tests.together import some_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what others lack is taken from Linux")
SCRIPT = Path(__file__).with_name("platforms.py")


def output(*arguments: str) -> list[str]:
    environment = {name: value for name, value in os.environ.items() if name != "FNAD_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


@pytest.mark.slow
@pytest.mark.parametrize("platform", some_of(list(TRIPLES), "programs"))
def test_programs_run_with_what_a_platform_has(platform: str, tmp_path: Path) -> None:
    found = output("run", platform, str(tmp_path))
    assert [name for name in found if name.startswith("WRONG")] == []
    assert found[-1] == "doctor"


@pytest.mark.slow
@pytest.mark.parametrize("platform", some_of(list(TRIPLES), "objects of a platform"))
def test_objects_take_only_functions_that_a_platform_has(platform: str) -> None:
    found = output("symbols", platform)
    assert found[-1] == ""
    assert "exp" in found[0].split()


@pytest.mark.slow
def test_no_product_is_fused_with_a_sum() -> None:
    """The results would not be those of other processors, to the bit."""
    assert output("fused") == ["no"]
