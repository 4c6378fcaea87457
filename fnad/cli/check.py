"""`fnad check`: `fnad.testing.check` of a call whose arguments have given values, or random ones of given types."""

from __future__ import annotations

from fnad.cli.calls import given_call
from fnad.cli.load import load_target, user_code
from fnad.testing.check import Report, check


def check_call(function: str, types: str, values: str | None) -> Report:
    """The report on a function; raises `UsageError` if it does not exist or cannot be differentiated."""
    target = load_target(function)
    with user_code(target.path):
        args, kwargs = given_call(target, types, values).call()
        return check(target.function, *args, **kwargs)
