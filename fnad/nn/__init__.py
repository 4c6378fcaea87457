"""Layers that are more than a line of NumPy: convolution and pooling.

Arrays are batch × channels × space, with as many axes of space as one likes. All else that a network is made of is
NumPy's, and its parameters are a pytree.
"""

from fnad.nn.convolution import conv
from fnad.nn.pooling import avg_pool, max_pool

__all__ = ["avg_pool", "conv", "max_pool"]
