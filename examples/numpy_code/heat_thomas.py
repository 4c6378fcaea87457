"""Heat in a rod, implicit in time: Thomas's algorithm for tri-diagonal systems, and the conductivity behind a record.

Crank and Nicolson's steps for u_t = (k u_x)_x with k between the grid points, one end held at a temperature and one
insulated; each step is a tri-diagonal system, eliminated downwards and solved upwards. W. H. Press et al., "Numerical
recipes", 3rd edition, sections 2.4 and 20.2. Nothing but loops and writes into arrays made by `np.empty_like` and by
copies, so the import is NumPy's.
"""

import argparse

import numpy as np
import scipy.optimize

import fnad


def thomas(lower, diagonal, upper, right):
    """Solve the system; row i is lower[i] x[i-1] + diagonal[i] x[i] + upper[i] x[i+1] = right[i]."""
    n = len(right)
    ratio, x = np.empty_like(right), np.empty_like(right)
    ratio[0] = upper[0] / diagonal[0]
    x[0] = right[0] / diagonal[0]
    for i in range(1, n):
        pivot = diagonal[i] - lower[i] * ratio[i - 1]
        ratio[i] = upper[i] / pivot
        x[i] = (right[i] - lower[i] * x[i - 1]) / pivot
    for i in range(n - 2, -1, -1):
        x[i] -= ratio[i] * x[i + 1]
    return x


def diffusion(conductivity, dx):
    """Return the three diagonals of the operator -(k u_x)_x; conductivity has a value between each two points."""
    n = len(conductivity) + 1
    flow = conductivity / dx**2
    lower, diagonal, upper = (np.zeros_like(flow, shape=n) for _ in range(3))
    lower[1:] -= flow
    upper[:-1] -= flow
    diagonal[1:] += flow
    diagonal[:-1] += flow
    lower[-1] *= 2
    diagonal[-1] *= 2
    lower[0] = upper[0] = diagonal[0] = 0
    return lower, diagonal, upper


def tridiagonal_product(lower, diagonal, upper, x):
    product = diagonal * x
    product[1:] += lower[1:] * x[:-1]
    product[:-1] += upper[:-1] * x[1:]
    return product


def conduct(conductivity, initial, warm_end, dt, steps):
    """Temperatures at the insulated end and in the middle, as (steps, 2)."""
    n = len(initial)
    lower, diagonal, upper = (0.5 * dt * d for d in diffusion(conductivity, 1.0 / (n - 1)))
    left = (lower, 1 + diagonal, upper)
    u = initial.copy()
    record = np.empty_like(conductivity, shape=(steps, 2))
    for step in range(steps):
        right = u - tridiagonal_product(lower, diagonal, upper, u)
        right[0] = warm_end
        u = thomas(*left, right)
        record[step] = u[-1], u[n // 2]
    return record


def misfit(conductivity, initial, warm_end, record, dt=0.05):
    """Squared error against a record, with a price on roughness."""
    found = conduct(conductivity, initial, warm_end, dt, len(record))
    return np.sum((found - record) ** 2) + 1e-6 * np.sum(np.diff(conductivity) ** 2)


def main():
    n, steps = 10, 6
    true = 0.5 + 0.3 * np.sin(np.linspace(0.0, np.pi, n - 1))
    initial = np.zeros(n)
    record = conduct(true, initial, 1.0, 0.05, steps)
    start = np.full(n - 1, 0.5)
    arguments = (initial, 1.0, record)
    found = scipy.optimize.minimize(fnad.value_and_grad(misfit), start, arguments, "L-BFGS-B", jac=True)
    print(f"misfit {misfit(start, *arguments):.2e} at the start, {found.fun:.2e} after {found.nit} steps")
    print(f"conductivity in the middle {found.x[n // 2]:.3f}, where it is {true[n // 2]:.3f}")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
