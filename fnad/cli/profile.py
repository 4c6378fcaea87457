"""`fnad profile`: `fnad.debug.profile` of a call, or of its gradient."""

from __future__ import annotations

from argparse import Namespace

from fnad.api.functions.profile import profile
from fnad.cli.transformed import on_call


def profile_call(request: Namespace) -> str:
    """The profile of a call, as text."""
    return on_call(request, lambda *args, **kwargs: str(profile(*args, **kwargs)))
