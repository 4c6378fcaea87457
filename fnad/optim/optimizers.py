"""Optimizers by name: directions, decay and learning rate, chained."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from fnad.optim.hyperparameters import Number, Schedule, named
from fnad.optim.moments import scale_by_adam, scale_by_lion, scale_by_rms, scale_by_rss, scale_by_stddev, trace
from fnad.optim.scaling import add_decayed_weights, scale_by_learning_rate
from fnad.optim.transformation import GradientTransformation, chain, identity
from fnad.optim.trees import Tree

Mask: TypeAlias = Tree | Callable[[Tree], Tree] | None


@named
def sgd(
    learning_rate: Number | Schedule, momentum: Number | None = None, nesterov: bool = False
) -> GradientTransformation:
    """Gradient descent, -learning_rate · g, or with momentum -learning_rate · v (see `trace`).

    >>> import numpy as np
    >>> from fnad import optim
    >>> opt, w = optim.sgd(0.25), np.array([4.0])
    >>> updates, state = opt.update(2 * w, opt.init(w))
    >>> optim.apply_updates(w, updates)
    array([2.])
    """
    direction = identity() if momentum is None else trace(momentum, nesterov)
    return chain(direction, scale_by_learning_rate(learning_rate))


@named
def adam(
    learning_rate: Number | Schedule,
    b1: Number = 0.9,
    b2: Number = 0.999,
    eps: Number = 1e-8,
    eps_root: Number = 0.0,
    *,
    nesterov: bool = False,
) -> GradientTransformation:
    """Adam: -learning_rate times `scale_by_adam`.

    >>> import numpy as np
    >>> from fnad import optim
    >>> opt, w = optim.adam(0.5), np.array([4.0])
    >>> updates, state = opt.update(2 * w, opt.init(w))
    >>> optim.apply_updates(w, updates)
    array([3.5])
    """
    return chain(scale_by_adam(b1, b2, eps, eps_root, nesterov=nesterov), scale_by_learning_rate(learning_rate))


@named
def adamw(
    learning_rate: Number | Schedule,
    b1: Number = 0.9,
    b2: Number = 0.999,
    eps: Number = 1e-8,
    eps_root: Number = 0.0,
    weight_decay: Number = 1e-4,
    mask: Mask = None,
    *,
    nesterov: bool = False,
) -> GradientTransformation:
    """AdamW: `scale_by_adam`, then `add_decayed_weights`, then the learning rate; `update` needs the parameters.

    >>> import numpy as np
    >>> from fnad import optim
    >>> opt, w = optim.adamw(0.5, weight_decay=0.25), np.array([4.0])
    >>> updates, state = opt.update(2 * w, opt.init(w), w)
    >>> optim.apply_updates(w, updates)
    array([3.])
    """
    return chain(
        scale_by_adam(b1, b2, eps, eps_root, nesterov=nesterov),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(learning_rate),
    )


@named
def rmsprop(
    learning_rate: Number | Schedule,
    decay: Number = 0.9,
    eps: Number = 1e-8,
    initial_scale: Number = 0.0,
    centered: bool = False,
    momentum: Number | None = None,
    nesterov: bool = False,
) -> GradientTransformation:
    """RMSprop: -learning_rate times `scale_by_rms`, or `scale_by_stddev` if centered; then momentum.

    >>> import numpy as np
    >>> from fnad import optim
    >>> opt, w = optim.rmsprop(0.5, decay=0.75), np.array([4.0])
    >>> updates, state = opt.update(2 * w, opt.init(w))
    >>> optim.apply_updates(w, updates)
    array([3.])
    """
    direction = (scale_by_stddev if centered else scale_by_rms)(decay, eps, initial_scale)
    velocity = identity() if momentum is None else trace(momentum, nesterov)
    return chain(direction, scale_by_learning_rate(learning_rate), velocity)


@named
def adagrad(
    learning_rate: Number | Schedule, initial_accumulator_value: Number = 0.1, eps: Number = 1e-7
) -> GradientTransformation:
    """AdaGrad: -learning_rate times `scale_by_rss`.

    >>> import numpy as np
    >>> from fnad import optim
    >>> opt, w = optim.adagrad(0.5, initial_accumulator_value=0.0), np.array([4.0])
    >>> updates, state = opt.update(2 * w, opt.init(w))
    >>> optim.apply_updates(w, updates)
    array([3.5])
    """
    return chain(scale_by_rss(initial_accumulator_value, eps), scale_by_learning_rate(learning_rate))


@named
def lion(
    learning_rate: Number | Schedule,
    b1: Number = 0.9,
    b2: Number = 0.99,
    weight_decay: Number = 1e-3,
    mask: Mask = None,
) -> GradientTransformation:
    """Lion: `scale_by_lion`, then `add_decayed_weights`, then the learning rate; `update` needs the parameters.

    >>> import numpy as np
    >>> from fnad import optim
    >>> opt, w = optim.lion(0.5, weight_decay=0.25), np.array([4.0])
    >>> updates, state = opt.update(2 * w, opt.init(w), w)
    >>> optim.apply_updates(w, updates)
    array([3.])
    """
    return chain(scale_by_lion(b1, b2), add_decayed_weights(weight_decay, mask), scale_by_learning_rate(learning_rate))
