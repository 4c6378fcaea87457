"""Functions that the tests of the command dump."""

import numpy as np

NUMBER = 3


def loss(x):
    return np.sum(np.sin(x) * x)


def layer(x, w):
    return np.tanh(x @ w["W"] + w["b"])


def escapes(x):
    return float(x)


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
