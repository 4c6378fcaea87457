"""Lines where float32 becomes float64, as `explain` and `fnad lint` name them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fnad
from fnad.cli.lint import lint

TABLE = np.arange(3.0)
X, W = np.ones(3, np.float32), np.ones((3, 3), np.float32)

WIDENING: dict[str, Callable[..., Any]] = {
    "a root of an int": lambda x, w: np.sum(w @ x / np.sqrt(3)),
    "a NumPy number": lambda x, w: np.sum(x * TABLE[1]),
    "an array from outside": lambda x, w: np.sum(x * TABLE),
    "a body of a loop": lambda x, w: fnad.fori_loop(0, 3, lambda i, y: y + np.sum(x * TABLE), 0.0),
    "beside integers": lambda x, w: np.sum(x * np.arange(3)),
}
KEEPING: dict[str, Callable[..., Any]] = {
    "Python's numbers": lambda x, w: np.sum(w @ x / 3**0.5 + float(np.sqrt(3))),
    "reductions": lambda x, w: np.std(x) + np.mean(x) + np.linalg.norm(w) + np.sum(np.cumsum(x)),
    "a special function": lambda x, w: np.sum(fnad.nn.softmax(w) * np.arctan2(x, x)),
    "on purpose": lambda x, w: np.sum(x.astype(np.float64) * TABLE) + np.sum(x, dtype=np.float64),
    "back again": lambda x, w: np.sum((x * TABLE).astype(x.dtype)),
}


@pytest.mark.parametrize("name", [*WIDENING, *KEEPING])
def test_the_line_is_named(name: str) -> None:
    f = (WIDENING | KEEPING)[name]
    lines = fnad.explain(f, X, W).widened
    assert len(lines) == (name in WIDENING)
    assert all(line.startswith(f"test_widening.py:{f.__code__.co_firstlineno} in ") for line in lines)
    assert fnad.explain(f, X.astype(np.float64), W.astype(np.float64)).widened == ()


def test_the_text_of_explain() -> None:
    f = WIDENING["a root of an int"]
    line = f"test_widening.py:{f.__code__.co_firstlineno} in <lambda>:"
    assert f"\nfloat32 becomes float64:\n  {line}" in str(fnad.explain(fnad.grad(f), X, W))
    assert "becomes" not in str(fnad.explain(KEEPING["reductions"], X, W))


def test_lint_names_it_with_the_way_out(tmp_path: Any) -> None:
    file = tmp_path / "user.py"
    file.write_text("import numpy as np\n\n\ndef f(x):\n    return x / np.sqrt(x.size)\n")
    assert lint(f"{file}:f", "f64[3]", None) == ("f: nothing found", 0)
    text, count = lint(f"{file}:f", "f32[3]", None)
    assert count == 1
    assert text == (
        "user.py:5 in f:  return x / np.sqrt(x.size)\n"
        "  float32 becomes float64 here, beside numbers in float64 or integers\n"
        "  write float(…), a Python number takes the dtype of what is beside it, or np.float32(…)\n"
        "f: 1 finding"
    )
