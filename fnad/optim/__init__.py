"""Optimizers: pairs of pure functions over pytrees, in the convention and with the names of optax.

    opt = fnad.optim.adam(1e-3)
    state = opt.init(params)
    ...
    updates, state = opt.update(gradients, state, params)
    params = fnad.optim.apply_updates(params, updates)

They are plain NumPy, and run on arrays, under `fnad.jit` and in traced loops. States are pytrees of arrays whose dtypes
do not change; parameters in f32 have states and updates in f32, whatever the type of the learning rate.
"""

from typing import TYPE_CHECKING, NoReturn

from fnad.optim.fitting import minimize
from fnad.optim.lbfgs import lbfgs, scale_by_lbfgs
from fnad.optim.linesearch import scale_by_zoom_linesearch, value_and_grad_from_state
from fnad.optim.moments import scale_by_adam, scale_by_lion, scale_by_rms, scale_by_rss, scale_by_stddev, trace
from fnad.optim.optimizers import adagrad, adam, adamw, lion, rmsprop, sgd
from fnad.optim.scaling import (
    add_decayed_weights,
    clip,
    clip_by_global_norm,
    global_norm,
    scale,
    scale_by_learning_rate,
    scale_by_schedule,
)
from fnad.optim.schedules import (
    constant_schedule,
    cosine_decay_schedule,
    exponential_decay,
    join_schedules,
    linear_schedule,
    piecewise_constant_schedule,
    piecewise_interpolate_schedule,
    polynomial_schedule,
    warmup_constant_schedule,
    warmup_cosine_decay_schedule,
    warmup_exponential_decay_schedule,
)
from fnad.optim.transformation import (
    EmptyState,
    GradientTransformation,
    GradientTransformationExtraArgs,
    apply_updates,
    chain,
    identity,
)
from fnad.trace.unknown import missing
from fnad.tracebacks import boundary

__all__ = [
    "EmptyState",
    "GradientTransformation",
    "GradientTransformationExtraArgs",
    "adagrad",
    "adam",
    "adamw",
    "add_decayed_weights",
    "apply_updates",
    "chain",
    "clip",
    "clip_by_global_norm",
    "constant_schedule",
    "cosine_decay_schedule",
    "exponential_decay",
    "global_norm",
    "identity",
    "join_schedules",
    "lbfgs",
    "linear_schedule",
    "lion",
    "minimize",
    "piecewise_constant_schedule",
    "piecewise_interpolate_schedule",
    "polynomial_schedule",
    "rmsprop",
    "scale",
    "scale_by_adam",
    "scale_by_lbfgs",
    "scale_by_learning_rate",
    "scale_by_lion",
    "scale_by_rms",
    "scale_by_rss",
    "scale_by_schedule",
    "scale_by_stddev",
    "scale_by_zoom_linesearch",
    "sgd",
    "trace",
    "value_and_grad_from_state",
    "warmup_constant_schedule",
    "warmup_cosine_decay_schedule",
    "warmup_exponential_decay_schedule",
]


if not TYPE_CHECKING:

    @boundary
    def __getattr__(name: str) -> NoReturn:
        raise missing("fnad.optim", name)
