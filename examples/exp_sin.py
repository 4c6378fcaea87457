"""The derivative of exp(x) * sin(x): at one point, of second order, and at many points at once.

The textbook answer: d/dx exp(x) sin(x) = exp(x) (sin(x) + cos(x)).
"""

import numpy as np

import fnad


def f(x):
    return np.exp(x) * np.sin(x)


def total(x):
    return np.sum(f(x))


if __name__ == "__main__":
    import argparse

    argparse.ArgumentParser(description=__doc__).parse_args()
    x = 1.0
    df = fnad.grad(f)

    print(f"f(x)   = {f(x):.12f}")
    print(f"f'(x)  = {df(x):.12f}")
    print(f"exact  = {np.exp(x) * (np.sin(x) + np.cos(x)):.12f}")

    # The derivative is a function like any other, so it has a derivative too.
    print(f"f''(x) = {fnad.grad(df)(x):.12f}")
    print(f"exact  = {2 * np.exp(x) * np.cos(x):.12f}")

    # Each term of a sum depends on its own x alone, so the gradient of the sum is f' at every point.
    points = np.linspace(0.0, 3.0, 7)
    print("f' at", points)
    print("     ", fnad.grad(total)(points).round(4))
