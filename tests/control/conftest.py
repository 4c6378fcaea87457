"""The tests of control flow compile no program, unless a test does: many take longer to compile than to interpret.

`tests/backends/test_control.py` and `tests/lower` check what is compiled.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import fnad


@pytest.fixture(autouse=True)
def _interpreted() -> Iterator[None]:
    with fnad.config.override(executor="interpreter"):
        yield
