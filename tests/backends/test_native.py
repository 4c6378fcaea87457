"""Native code from functions in Python: it computes what Python computes."""

from __future__ import annotations

import ctypes

import pytest

from fnad.backends.cpu import native
from tests.backends import native_functions

WORD = ctypes.c_int64
NAMES = "collatz", "of_case", "divisors", "triangle", "greatest", "holds"


def test_native_functions_return_what_python_does() -> None:
    engine = native.linked(NAMES, native_functions)
    for name in NAMES:
        function = ctypes.CFUNCTYPE(WORD, WORD, WORD)(engine.get_function_address(name))
        given = [(a, b) for a in (*range(1, 30), 1000, 2**40) for b in (0, 1, 4, 9, 60)]
        assert [function(a, b) for a, b in given] == [int(getattr(native_functions, name)(a, b)) for a, b in given]


@pytest.mark.parametrize(
    "text", ["x = 1 if n in m else 2", "for i in m:\n  pass", "with m:\n  pass", "x, y = n, m", "n.a = 1"]
)
def test_what_native_code_has_not_is_an_error(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "def f(n, m):\n" + "\n".join(f"  {line}" for line in text.splitlines())
    monkeypatch.setattr(native.inspect, "getsource", lambda _: source)
    with pytest.raises((SyntaxError, KeyError)):
        native.llvm_text(["f"], native_functions)
