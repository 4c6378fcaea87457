"""Derivatives at a point, programs and optimizers that are pickled, and loaded where their functions are not."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fnad
from fnad import optim
from fnad.errors import CotangentError
from tests.together import together

X, PARAMS = np.array([0.5, -1.0, 2.0]), {"w": np.array([1.0, 2.0, 3.0]), "n": 2}


@dataclass
class Record:
    w: Any
    n: Any


def model(params: Any, x: Any) -> Any:
    return np.sin(params["w"]) * x, {"loss": np.sum(x**2), "count": 3}


def again(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def equal(found: Any, expected: Any) -> None:
    fnad.tree.map(lambda a, b: assert_allclose(a, b, rtol=1e-14), found, expected)


CT = (np.ones(3), {"loss": 2.0, "count": 0})
TANGENTS = ({"w": np.ones(3), "n": 0}, X)
N = fnad.ShapeDtypeStruct(("n",), float)
SCHEDULE = optim.cosine_decay_schedule(0.1, 100)
CALLS = {
    "pullback": (fnad.vjp(model, PARAMS, X)[1], (CT,)),
    "pullback of one part": (fnad.vjp(model, PARAMS, X, wrt="params.w")[1], (CT,)),
    "pullback of a dataclass": (fnad.vjp(lambda r: Record(r.w**2, r.n), Record(X, 1.0))[1], (Record(X, 0.5),)),
    "pullback of a number": (fnad.vjp(np.sin, 0.5)[1], (1,)),
    "pushforward": (fnad.linearize(model, PARAMS, X)[1], TANGENTS),
    "transpose": (fnad.linear_transpose(np.cumsum, X), (X,)),
    "lowered": (fnad.jit(model).lower(PARAMS, X), (PARAMS, X)),
    "made": (fnad.make_program(fnad.grad(lambda x: np.sum(X * x**2)))(X), (X,)),
    "exported": (fnad.export(model, PARAMS, X), (PARAMS, X)),
    "exported for all sizes": (fnad.export(np.outer, N, fnad.ShapeDtypeStruct(("m",), float)), (X, CT[0][:2])),
    "schedule": (SCHEDULE, (7,)),
    "transform": (fnad.grad(np.linalg.norm), (X,)),
}
OPTIMIZERS = [
    optim.sgd(0.1, momentum=0.9),
    optim.adam(SCHEDULE),
    optim.adamw(1e-3, weight_decay=0.1),
    optim.chain(optim.clip_by_global_norm(1.0), optim.rmsprop(optim.linear_schedule(1.0, 0.0, 10))),
]


def test_what_is_loaded_computes_the_same() -> None:
    with together() as check:
        for name, (f, args) in CALLS.items():
            with check(name):
                loaded = again(again(f))
                equal(loaded(*args), f(*args))
                equal(fnad.jit(lambda *args, g=loaded: g(*args))(*args), fnad.jit(lambda *args, g=f: g(*args))(*args))
                assert repr(loaded) == repr(f) or name in ("lowered", "made")


def test_pickled_optimizers_and_states_update_as_before() -> None:
    params, gradients = {"w": X}, {"w": X**2}
    for optimizer in OPTIMIZERS:
        loaded, state = again(optimizer), optimizer.init(params)
        equal(loaded.update(gradients, again(state), params), optimizer.update(gradients, state, params))
        assert repr(loaded) == repr(optimizer)


def test_a_process_without_the_functions() -> None:
    names = ("pullback", "pushforward", "lowered", "made", "exported")
    content = pickle.dumps([(CALLS[name], CALLS[name][0](*CALLS[name][1])) for name in names])
    program = """
import pickle, sys
import numpy as np
import fnad
for (f, args), expected in pickle.load(sys.stdin.buffer):
    fnad.tree.map(np.testing.assert_array_equal, f(*args), expected)
print("done")
"""
    done = subprocess.run([sys.executable, "-c", program], input=content, capture_output=True, check=False)
    assert done.stdout == b"done\n", done.stderr.decode()


def test_what_is_loaded_is_as_strict() -> None:
    pullback = again(CALLS["pullback"][0])
    with pytest.raises(CotangentError, match=r"^cotangent\[0\] is f64\[2\], but has to be f64\[3\]"):
        pullback((np.ones(2), CT[1]))
    with pytest.raises(CotangentError, match=r"^the pullback was given 2 cotangents"):
        pullback(CT, CT)
    lowered, _ = CALLS["lowered"]
    assert again(lowered) == lowered
    assert hash(again(lowered)) == hash(lowered)


def test_what_cannot_be_pickled() -> None:
    called = lambda x: fnad.callback(np.sin, fnad.stop_gradient(x), result=x) * x  # noqa: E731
    with pytest.raises(pickle.PicklingError, match="calls functions of this process"):
        pickle.dumps(fnad.jit(called).lower(1.0))
    decides = fnad.jit(lambda x: x if x > 0 else -x).lower(1.0)
    with pytest.raises(pickle.PicklingError, match="decides by values"):
        pickle.dumps(decides)


def test_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a worker with another fnad."""
    pickled = [pickle.dumps(x) for x in (fnad.vjp(np.sin, X)[1], fnad.export(np.sin, X), fnad.make_program(np.sin)(X))]
    monkeypatch.setattr("fnad.api.staging.program_pickles.__version__", "9.9")
    for text in pickled:
        with pytest.raises(pickle.UnpicklingError, match=r"pickled \w+, and this process has fnad 9\.9: install one"):
            pickle.loads(text)
