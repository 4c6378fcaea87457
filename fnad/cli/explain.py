"""`fnad explain`: `fnad.explain` of a call, or of its gradient, whose arguments have given values or given types."""

from __future__ import annotations

from argparse import Namespace

from fnad.api.explaining import explain
from fnad.api.gradient import grad, value_and_grad
from fnad.cli.calls import Types, given_call
from fnad.cli.load import load_target, user_code
from fnad.cli.usage import UsageError

MODES = {"grad": grad, "value_and_grad": value_and_grad}


def explain_call(request: Namespace) -> str:
    """What a trace finds, as text; raises `UsageError` if the function does not exist or cannot be traced."""
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
        return str(explain(f, *args, memory=request.memory, **kwargs))
