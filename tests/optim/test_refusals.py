"""What optimizers refuse, and what they say."""

from __future__ import annotations

import traceback
from typing import Any

import numpy as np
import pytest

import fnad
from fnad import errors, optim

W = np.ones((3, 2), np.float32)
PARAMS = {"w": W, "b": (np.ones(2, np.float32), None)}


def message(kind: type[errors.FnadError], act: Any) -> tuple[str, str]:
    """Return what happened and the way out; between them stands the caller's line."""
    with pytest.raises(kind) as caught:
        act()
    what, where, remedy = str(caught.value).splitlines()
    frames = [f for f in traceback.extract_tb(caught.value.__traceback__) if f.filename == __file__]
    assert where.startswith(f"  at test_refusals.py:{frames[-1].lineno} ")
    return what, remedy.strip()


GRADIENTS: dict[str, tuple[Any, str, str]] = {
    "a leaf missing": ({"w": W}, "gradients['b'][0] is missing", "the parameters have a leaf params['b'][0]"),
    "a leaf too many": (
        {**PARAMS, "c": W},
        "gradients['c'] belongs to no parameter",
        "the parameters have no leaf params['c']",
    ),
    "other containers": (
        {"w": W, "b": [PARAMS["b"][0], None]},
        "the structure of gradients is {'w': *, 'b': [*, None]}, that of the parameters {'w': *, 'b': (*, None)}",
        "give both the same containers",
    ),
    "another shape": (
        {"w": W[:1], "b": PARAMS["b"]},
        "gradients['w'] is f32[1,2], but its parameter f32[3,2]",
        "give it the shape and dtype of the parameter",
    ),
    "another dtype": (
        {"b": PARAMS["b"], "w": np.ones((3, 2))},
        "gradients['w'] is f64[3,2], but its parameter f32[3,2]",
        "give it the shape and dtype of the parameter",
    ),
}


@pytest.mark.parametrize("make", [optim.sgd, optim.adam, optim.adamw, optim.rmsprop, optim.adagrad, optim.lion])
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_unlike_the_parameters(name: str, make: Any) -> None:
    gradients, what, remedy = GRADIENTS[name]
    opt = make(0.1, 0.9) if make is optim.sgd else make(0.1)
    state = opt.init(PARAMS)
    assert message(errors.UpdateError, lambda: opt.update(gradients, state, PARAMS)) == (what, remedy)


@pytest.mark.parametrize("name", GRADIENTS)
def test_updates_unlike_the_parameters(name: str) -> None:
    updates, what, remedy = GRADIENTS[name]
    found = message(errors.UpdateError, lambda: optim.apply_updates(PARAMS, updates))
    assert found == (what.replace("gradients", "updates"), remedy)


def test_gradients_unlike_the_parameters_in_a_trace() -> None:
    opt = optim.adam(0.1)

    def step(params: Any) -> Any:
        return opt.update(params["w"], opt.init(params))

    what, _ = message(errors.UpdateError, lambda: fnad.jit(step)(PARAMS))
    assert what == "gradients['w'] is missing"


@pytest.mark.parametrize("make", [optim.adamw, optim.lion])
def test_decay_without_parameters(make: Any) -> None:
    opt = make(0.1)
    state = opt.init(PARAMS)
    expected = "weight decay needs the parameters", "update(gradients, state, params)"
    assert message(errors.UpdateError, lambda: opt.update(PARAMS, state)) == expected


@pytest.mark.parametrize(
    ("leaf", "aval", "remedy"),
    [
        (np.arange(2), "i64[2]", "keep integers and bools apart from the parameters"),
        (3, "i64[]", "keep integers and bools apart from the parameters"),
        (np.ones(2) * 1j, "c128[2]", "make its real and its imaginary part two parameters"),
    ],
)
def test_parameters_that_are_not_real(leaf: Any, aval: str, remedy: str) -> None:
    found = message(errors.UpdateError, lambda: optim.adam(0.1).init({"a": [1.0, leaf]}))
    assert found == (f"params['a'][1] is {aval}, where a parameter is real", remedy)
    found = message(errors.UpdateError, lambda: optim.apply_updates({"a": leaf}, {"a": leaf}))
    assert found == (f"updates['a'] belongs to a parameter {aval}, where a parameter is real", remedy)


def test_a_parameter_that_is_no_array() -> None:
    what, _ = message(errors.ArgumentTypeError, lambda: optim.adam(0.1).init({"a": "text"}))
    assert what == "params['a'] is of type str, not an array or a number"


@pytest.mark.parametrize("mask", [{"w": True}, lambda params: {"w": True}])
def test_a_mask_unlike_the_parameters(mask: Any) -> None:
    opt = optim.adamw(0.1, mask=mask)
    state = opt.init(PARAMS)
    expected = "mask['b'][0] is missing", "the parameters have a leaf params['b'][0]"
    assert message(errors.UpdateError, lambda: opt.update(PARAMS, state, PARAMS)) == expected


def test_the_state_of_another_optimizer() -> None:
    opt, state = optim.adamw(0.1), optim.adam(0.1).init(PARAMS)
    assert message(errors.UpdateError, lambda: opt.update(PARAMS, state, PARAMS)) == (
        "the state is of 2 transformations, of which there are 3 here",
        "give the state that init or the last update of this transformation returned",
    )


RATE = "it has to be finite and 0 or greater"
AVERAGE = "it has to be at least 0 and less than 1"


@pytest.mark.parametrize(
    ("make", "what", "remedy"),
    [
        (lambda: optim.sgd(-0.1), "learning_rate is -0.1", RATE),
        (lambda: optim.adam(np.nan), "learning_rate is nan", RATE),
        (lambda: optim.adam(np.array(-1.0)), "learning_rate is -1.0", RATE),
        (lambda: optim.lion(np.inf), "learning_rate is inf", RATE),
        (lambda: optim.adam(1j), "learning_rate is of type complex", "give one number"),
        (lambda: optim.adam("fast"), "learning_rate is of type str", "give one number"),
        (lambda: optim.adam(np.ones(2)), "learning_rate is of type numpy.ndarray", "give one number"),
        (lambda: optim.adam(0.1, b1=1.0), "b1 is 1.0", AVERAGE),
        (lambda: optim.adam(0.1, b2=-0.1), "b2 is -0.1", AVERAGE),
        (lambda: optim.adam(0.1, eps=-1e-8), "eps is -1e-08", RATE),
        (lambda: optim.sgd(0.1, momentum=1.5), "decay is 1.5", AVERAGE),
        (lambda: optim.rmsprop(0.1, decay=2), "decay is 2", AVERAGE),
        (lambda: optim.adagrad(0.1, -1.0), "initial_accumulator_value is -1.0", RATE),
        (lambda: optim.adamw(0.1, weight_decay=-0.1), "weight_decay is -0.1", RATE),
        (lambda: optim.clip(0.0), "max_delta is 0.0", "it has to be greater than 0"),
        (lambda: optim.clip_by_global_norm(-1), "max_norm is -1", "it has to be greater than 0"),
    ],
)
def test_hyperparameters_out_of_range(make: Any, what: str, remedy: str) -> None:
    assert message(errors.HyperparameterError, make) == (what, remedy)


def test_what_is_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'fnad' has no attribute 'optimizers'"):
        _ = fnad.optimizers
