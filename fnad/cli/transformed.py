"""The call that a command names, or that of its gradient: `explain`, `export` and `view` run something on it."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from typing import TypeVar

from fnad.api.gradient import grad, value_and_grad
from fnad.cli.calls import Types, given_call
from fnad.cli.load import load_target, user_code
from fnad.cli.usage import UsageError

T = TypeVar("T")
MODES = {"grad": grad, "value_and_grad": value_and_grad}


def on_call(request: Namespace, run: Callable[..., T]) -> T:
    """The result of `run(f, *args, **kwargs)`; raises `UsageError` if `f` does not exist or cannot be traced."""
    if request.argnums is not None and request.mode is None:
        raise UsageError("--argnums says in what to differentiate: add --grad or --value-and-grad")
    target = load_target(request.target)
    with user_code(target.path):
        given = given_call(target, request.args, request.values)
        if isinstance(given, Types):
            given.staged()  # which refuses a function that decides by values
        args, kwargs = given.call()
        f = target.function
        if request.mode is not None:
            f = MODES[request.mode](f, tuple(request.argnums or (0,)))
        return run(f, *args, **kwargs)
