"""A function with many outputs, x**2 + sin(x) on a vector: what to pull back is the caller's choice.

`grad` is for scalars, and says so. `vjp` returns the output and a pullback, which takes a cotangent of the output's
shape (PyTorch's "external gradient") to the cotangent of x, the vector-Jacobian product.
"""

import argparse

import numpy as np

import fnad

if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()


def f(x):
    return x**2 + np.sin(x)


x = np.array([0.0, 1.0, 2.0])

try:
    fnad.grad(f)(x)
except fnad.errors.NonScalarOutputError as error:
    print(error)

y, pullback = fnad.vjp(f, x)
print("y         ", y.round(6))

# Here each output depends on its own x alone, so that pulling back ones gives the derivative 2x + cos(x).
(x_bar,) = pullback(np.ones(3))
print("pulled back", x_bar.round(6))
print("2x + cos(x)", (2 * x + np.cos(x)).round(6))

# A weighted cotangent is the gradient of the weighted sum of outputs; the pullback may be called as often as wanted.
weights = np.array([1.0, 10.0, 0.0])
(x_bar,) = pullback(weights)
print("weighted   ", x_bar.round(6))
print("by grad    ", fnad.grad(lambda x: np.sum(weights * f(x)))(x).round(6))
