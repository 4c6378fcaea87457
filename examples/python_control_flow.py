"""Python's own `while` and `if` under grad, grad of grad and jit: what is run is what is differentiated.

Newton's iteration for a square root makes as many turns as its argument needs; the textbook has the derivatives of the
root. A compiled function keeps the paths it has met, and `paths()` tells them.
"""

import argparse

import numpy as np

import fnad

if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()


def square_root(a):
    s = 1.0
    while abs(s * s - a) > 1e-12:
        s = 0.5 * (s + a / s)
    return s


def huber(x):
    if abs(x) <= 1.0:
        return 0.5 * x * x
    return abs(x) - 0.5


slope, curvature = fnad.grad(square_root), fnad.grad(fnad.grad(square_root))
print("     a      root     slope     exact  curvature     exact")
for a in (0.25, 2.0, 9.0):
    exact = 0.5 / np.sqrt(a), -0.25 * a**-1.5
    print(f"{a:6.2f}  {square_root(a):8.5f}  {slope(a):8.5f}  {exact[0]:8.5f}  {curvature(a):9.5f}  {exact[1]:8.5f}")

print("     x     huber     slope  curvature")
for x in (-3.0, 0.5, 2.0):
    print(f"{x:6.2f}  {huber(x):8.5f}  {fnad.grad(huber)(x):8.5f}  {fnad.grad(fnad.grad(huber))(x):9.5f}")

compiled = fnad.jit(slope)
for a in (2.0, 9.0, 2.5, 2.0, 9.0, 1.5, 2.0):
    compiled(a)
print("compiled slope of the root:", compiled.paths())

loss = fnad.jit(fnad.grad(lambda xs: sum(huber(x) for x in xs)))
print("slopes of a sum:", loss(np.array([-3.0, 0.5, 2.0])), loss(np.array([0.1, 0.2, 5.0])))
