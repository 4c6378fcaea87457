"""The catalogue of primitives, whose files are imported when one of them is asked for."""

from importlib import invalidate_caches
from pathlib import Path

import pytest

from fnad.ir.primitive import Catalogue


def test_import_that_failed_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    catalogue = Catalogue("primitives_to_come")
    with pytest.raises(ModuleNotFoundError, match="primitives_to_come"):
        len(catalogue)
    (tmp_path / "primitives_to_come.py").write_text("")
    invalidate_caches()
    assert len(catalogue) == 0
