"""Gaussian-process regression: the evidence for the parameters of a kernel, and the parameters it favours.

Cholesky's factor and two triangular solves, as in C. E. Rasmussen and C. K. I. Williams, "Gaussian processes for
machine learning", 2006: algorithm 2.1 for the evidence and the prediction, equation (5.12) for the error of leaving
one out. The factor comes from LAPACK through `np.linalg`; the triangular solves are written out, row by row.
"""

import argparse

import numpy as np

import fnad


def squared_distance(x, y, lengths):
    """Squared distances between the rows of x and of y, each coordinate in units of its length."""
    offset = (x[:, None, :] - y[None, :, :]) / lengths
    return np.sum(offset**2, axis=-1)


def kernel(x, y, parameters):
    """A smooth part and a rougher one (squared-exponential and Matérn 3/2), with their own heights."""
    square = squared_distance(x, y, np.exp(parameters["lengths"]))
    heights = np.exp(2 * parameters["heights"])
    distance = np.sqrt(square + 1e-12)
    rough = (1 + np.sqrt(3) * distance) * np.exp(-np.sqrt(3) * distance)
    return heights[0] * np.exp(-0.5 * square) + heights[1] * rough


def forward_substitution(lower, right):
    """Solve L z = b."""
    z = np.zeros_like(right)
    for i in range(len(right)):
        z[i] = (right[i] - lower[i, :i] @ z[:i]) / lower[i, i]
    return z


def back_substitution(lower, right):
    """Solve Lᵀ z = b."""
    z = np.zeros_like(right)
    for i in range(len(right) - 1, -1, -1):
        z[i] = (right[i] - lower[i + 1 :, i] @ z[i + 1 :]) / lower[i, i]
    return z


def factorize(parameters, x, y):
    """Return Cholesky's factor of the covariance of the data, and the weights of the prediction."""
    covariance = kernel(x, x, parameters)
    covariance[np.diag_indices(len(x))] += np.exp(2 * parameters["noise"])
    lower = np.linalg.cholesky(covariance)
    return lower, back_substitution(lower, forward_substitution(lower, y))


def evidence(parameters, x, y):
    """Logarithm of the density of the data, whatever the function is."""
    lower, weights = factorize(parameters, x, y)
    return -0.5 * y @ weights - np.sum(np.log(np.diag(lower))) - 0.5 * len(y) * np.log(2 * np.pi)


def leave_one_out(parameters, x, y):
    """Mean squared error of predicting each value from all others."""
    lower, weights = factorize(parameters, x, y)
    inverse_factor = forward_substitution(lower, np.eye(len(y)) + 0 * lower)
    precision = np.sum(inverse_factor**2, axis=0)
    return np.mean((weights / precision) ** 2)


def predict(parameters, x, y, at):
    """Mean and standard deviation of the function at other places."""
    lower, weights = factorize(parameters, x, y)
    across = kernel(x, at, parameters)
    explained = forward_substitution(lower, across)
    variance = np.diag(kernel(at, at, parameters)) - np.sum(explained**2, axis=0)
    return across.T @ weights, np.sqrt(variance)


def example_data(count=16, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2.0, 2.0, (count, 2))
    return x, np.sin(2 * x[:, 0]) + 0.3 * x[:, 1] + 0.1 * rng.standard_normal(count)


def start():
    return {"lengths": np.zeros(2), "heights": np.array([0.0, -1.0]), "noise": -1.0}


def main():
    x, y = example_data()
    parameters = start()
    step = fnad.value_and_grad(evidence)
    for i in range(31):
        value, slope = step(parameters, x, y)
        if i % 10 == 0:
            print(f"step {i:2d}  evidence {value:8.4f}  error of leaving one out {leave_one_out(parameters, x, y):.4f}")
        parameters = {name: parameters[name] + 0.03 * slope[name] for name in parameters}
    lengths = np.exp(parameters["lengths"])
    mean, deviation = predict(parameters, x, y, np.array([[0.5, 0.0]]))
    print(f"lengths {lengths.round(2)}, at (0.5, 0) {mean[0]:.3f} ± {deviation[0]:.3f} (true {np.sin(1.0):.3f})")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
