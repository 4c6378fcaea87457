"""`fnad explain`: `fnad.explain` of a call, or of its gradient, whose arguments have given values or given types."""

from __future__ import annotations

from argparse import Namespace
from functools import partial

from fnad.api.functions.explain import explain
from fnad.cli.transformed import on_call


def explain_call(request: Namespace) -> str:
    """The findings of a trace, as text."""
    return str(on_call(request, partial(explain, memory=request.memory)))
