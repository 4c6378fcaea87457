"""Random numbers from explicit keys: a draw depends on its key alone, in NumPy, traced and in compiled loops.

>>> from fnad import random
>>> key = random.key(0)
>>> noise, weights = random.split(key)
>>> random.normal(noise, (2,))
array([2.03686132, 0.06599669])

The names and the order of arguments are those of jax.random; the numbers are not. The generator is Philox4x32-10 (see
`fnad.draws`). Element i of a draw depends on the key and on i, so that a longer draw begins with a shorter one of the
same key, and no draw depends on how it is executed. Two draws with one key are not independent: split it, or fold in
the number of the step.
"""

from typing import TYPE_CHECKING, Any

from fnad.random.choices import categorical, choice, permutation
from fnad.random.continuous import bernoulli, cauchy, exponential, gamma, gumbel, laplace, normal, uniform
from fnad.random.integers import bits, poisson, rademacher, randint
from fnad.random.keys import fold_in, key, split
from fnad.trace.unknown import missing
from fnad.tracebacks import boundary

__all__ = [
    "bernoulli",
    "bits",
    "categorical",
    "cauchy",
    "choice",
    "exponential",
    "fold_in",
    "gamma",
    "gumbel",
    "key",
    "laplace",
    "normal",
    "permutation",
    "poisson",
    "rademacher",
    "randint",
    "split",
    "uniform",
]


if not TYPE_CHECKING:

    @boundary
    def __getattr__(name: str) -> Any:
        raise missing("fnad.random", name)
