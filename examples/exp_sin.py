"""The derivative of exp(x) * sin(x), at one point and then of any order.

The textbook answer: d/dx exp(x) sin(x) = exp(x) (sin(x) + cos(x)).
"""

import numpy as np

import fnad


def f(x):
    return np.exp(x) * np.sin(x)


if __name__ == "__main__":
    x = 1.0
    df = fnad.grad(f)

    print(f"f(x)   = {f(x):.12f}")
    print(f"f'(x)  = {df(x):.12f}")
    print(f"exact  = {np.exp(x) * (np.sin(x) + np.cos(x)):.12f}")

    # The derivative is a function like any other, so it has a derivative too.
    print(f"f''(x) = {fnad.grad(df)(x):.12f}")
    print(f"exact  = {2 * np.exp(x) * np.cos(x):.12f}")
