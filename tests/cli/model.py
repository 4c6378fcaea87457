"""Functions that the tests of the command dump."""

import functools

import numpy as np

import fnad

NUMBER = 3


def loss(x):
    return np.sum(np.sin(x) * x)


def layer(x, w):
    return np.tanh(x @ w["W"] + w["b"])


def escapes(x):
    return hash(x)


def raises(x):
    return x * (1 // len(x.shape[:0]))


class Model:
    @staticmethod
    def square(x):
        return x * x


async def later(x):
    return x


def branches(x):
    return x if x > 0 else -x


def filled(x):
    """Return the running products, written into an array that NumPy makes."""
    products = np.zeros(3)
    products[0] = x["start"]
    for i in range(1, 3):
        products[i] = products[i - 1] * x["factors"][i]
    return np.sum(products)


EXAMPLE = np.linspace(0.0, 1.0, 3), 2.0


def scaled(x, scale=1.0, *, power=2):
    return np.sum(scale * x**power)


@fnad.jit
def halved(x):
    """Return x halved until it is at most 1."""
    while x > 1:
        x = x / 2
    return x


TABLE = np.arange(4.0)


def looked_up(x, θ):  # noqa: PLC2401
    return np.sum(TABLE[:3] * x) * θ


@fnad.custom_vjp
def wrong(x):
    return np.sin(x)


wrong.defvjp(lambda x: (np.sin(x), x), lambda x, ct: (-np.cos(x) * ct,))


def uses_wrong(x):
    return np.sum(x * wrong(x))


class Counted:
    calls = 0

    def norm(self, x):
        self.calls += 1
        return self.__total(x) ** 0.5

    def __total(self, x):
        return np.sum(x * x)


root, cube = (lambda x: np.sqrt(np.sum(x))), (lambda x: np.sum(x) ** NUMBER)
with_scale = functools.partial(scaled, scale=2.0)
norm = Counted().norm
total = np.sum

made = {}
exec("def doubled(x):\n    return 2 * x", made)
doubled = made["doubled"]
