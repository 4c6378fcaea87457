"""LU by hand with partial pivoting: solve, determinant and condition of a system, and their derivatives.

Outer-product Gaussian elimination that overwrites the matrix with L and U and swaps rows in place, after G. H. Golub
and C. F. Van Loan, "Matrix computations", 4th edition, algorithm 3.4.1; the estimate of ‖A⁻¹‖₁ is Hager's (1984),
with a fixed number of steps. Rows are swapped at an index that depends on the values (`np.argmax` of a column), also
when the pivot is in place already: a swap with itself, where other codes have an `if`.
"""

import argparse

import numpy as np

import fnad


def lu_factor(matrix):
    """Return L (below the diagonal) and U in one array, the order of the rows, and the sign of that permutation."""
    a = matrix.copy()
    n = len(a)
    order = np.zeros_like(a[:, 0], dtype=int)
    order += np.arange(n)
    sign = 1.0
    for k in range(n - 1):
        pivot = k + np.argmax(np.abs(a[k:, k]))
        a[[k, pivot]] = a[[pivot, k]]
        order[[k, pivot]] = order[[pivot, k]]
        sign = np.where(pivot == k, sign, -sign)
        a[k + 1 :, k] /= a[k, k]
        for i in range(k + 1, n):
            a[i, k + 1 :] -= a[i, k] * a[k, k + 1 :]
    return a, order, sign


def lu_solve(factors, right):
    """Solve A x = b from the factors of A."""
    lu, order, _ = factors
    x = right[order]
    n = len(lu)
    for i in range(1, n):
        x[i] -= lu[i, :i] @ x[:i]
    for i in range(n - 1, -1, -1):
        x[i] -= lu[i, i + 1 :] @ x[i + 1 :]
        x[i] /= lu[i, i]
    return x


def lu_solve_transposed(factors, right):
    """Solve Aᵀ x = b from the factors of A."""
    lu, order, _ = factors
    z = right.copy()
    n = len(lu)
    for i in range(n):
        z[i] -= lu[:i, i] @ z[:i]
        z[i] /= lu[i, i]
    for i in range(n - 2, -1, -1):
        z[i] -= lu[i + 1 :, i] @ z[i + 1 :]
    x = np.empty_like(z)
    x[order] = z
    return x


def determinant(matrix):
    """Product of the pivots, with the sign of the permutation."""
    lu, _, sign = lu_factor(matrix)
    return sign * np.prod(np.diag(lu))


def condition(matrix, steps=2):
    """‖A‖₁ times Hager's estimate of ‖A⁻¹‖₁."""
    factors = lu_factor(matrix)
    x = np.full_like(matrix[0], 1 / len(matrix))
    for _ in range(steps):
        y = lu_solve(factors, x)
        slope = lu_solve_transposed(factors, np.sign(y))
        x = np.zeros_like(x)
        x[np.argmax(np.abs(slope))] = 1.0
    return np.max(np.sum(np.abs(matrix), axis=0)) * np.sum(np.abs(lu_solve(factors, x)))


def residual(matrix, right, wanted):
    """Squared distance of the solution from a wanted one, one step of iterative refinement included."""
    factors = lu_factor(matrix)
    x = lu_solve(factors, right)
    x += lu_solve(factors, right - matrix @ x)
    return np.sum((x - wanted) ** 2)


def example_system(n=5, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, n)), rng.standard_normal(n), rng.standard_normal(n)


def main():
    matrix, right, wanted = example_system()
    value, slope = fnad.value_and_grad(determinant)(matrix)
    print(f"determinant {value:.6f}, by NumPy {np.linalg.det(matrix):.6f}")
    print(f"its gradient is the cofactors to {np.max(np.abs(slope - value * np.linalg.inv(matrix).T)):.1e}")
    print(f"condition {condition(matrix):.4f}, by NumPy {np.linalg.cond(matrix, 1):.4f}")
    step = fnad.value_and_grad(condition)
    for i in range(21):
        value, slope = step(matrix)
        if i % 5 == 0:
            print(f"step {i:2d}  condition {value:8.4f}  residual {residual(matrix, right, wanted):.4f}")
        matrix = matrix - 0.1 * slope / np.sqrt(np.sum(slope**2))


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
