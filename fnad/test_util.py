"""Checks of derivatives for the tests of a user, under JAX's name: `check_grads`."""

from fnad.testing.gradients import check_grads

__all__ = ["check_grads"]
