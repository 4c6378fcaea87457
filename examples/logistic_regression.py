"""Logistic regression, fitted by SciPy: the minimiser calls one function for the value and the gradient together.

The data are scikit-learn's bundled breast-cancer measurements: 569 tumours, 30 features, malignant or benign.
"""

import argparse

import numpy as np
import scipy.optimize
from sklearn.datasets import load_breast_cancer

import fnad

if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()

features, benign = load_breast_cancer(return_X_y=True)
features = (features - features.mean(axis=0)) / features.std(axis=0)
sign = np.where(benign == 1, 1.0, -1.0)
train, test = slice(0, 400), slice(400, None)


def loss(parameters):
    weight, bias = parameters[:-1], parameters[-1]
    margin = sign[train] * (features[train] @ weight + bias)
    return np.mean(np.logaddexp(0.0, -margin)) + 0.5e-3 * np.sum(weight**2)


start = np.zeros(features.shape[1] + 1)
result = scipy.optimize.minimize(fnad.jit(fnad.value_and_grad(loss)), start, jac=True, method="L-BFGS-B")

weight, bias = result.x[:-1], result.x[-1]
right = np.mean((features[test] @ weight + bias > 0) == (benign[test] == 1))

print(f"loss at the start {loss(start):.6f}")
print(f"loss at the end   {result.fun:.6f}   after {result.nit} iterations, {result.nfev} gradients")
print(f"largest component of the gradient there  {np.max(np.abs(result.jac)):.1e}")
print(f"accuracy on {len(benign[test])} patients not seen before  {100 * right:.1f} %")
