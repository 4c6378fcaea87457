"""The layers and functions of networks that NumPy has no name for: convolution, pooling, activation functions.

Arrays of images are batch × channels × space, with any number of spatial axes. The rest of a network is plain NumPy,
and its parameters are a pytree.
"""

from typing import TYPE_CHECKING, NoReturn

from fnad.nn.activations import (
    celu,
    elu,
    gelu,
    glu,
    hard_sigmoid,
    hard_silu,
    hard_swish,
    hard_tanh,
    leaky_relu,
    log_sigmoid,
    log_softmax,
    logsumexp,
    mish,
    one_hot,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    soft_sign,
    softmax,
    softplus,
    swish,
)
from fnad.nn.convolution import conv
from fnad.nn.pooling import avg_pool, max_pool
from fnad.trace.unknown import missing
from fnad.tracebacks import boundary

__all__ = [
    "avg_pool",
    "celu",
    "conv",
    "elu",
    "gelu",
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "logsumexp",
    "max_pool",
    "mish",
    "one_hot",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_sign",
    "softmax",
    "softplus",
    "swish",
]


if not TYPE_CHECKING:

    @boundary
    def __getattr__(name: str) -> NoReturn:
        raise missing("fnad.nn", name)
