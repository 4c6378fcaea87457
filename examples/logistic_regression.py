"""Logistic regression, fitted by SciPy: the minimiser calls one function for the value and the gradient together.

The data are scikit-learn's bundled breast-cancer measurements: 569 tumours, 30 features, malignant or benign.
"""

import argparse
from importlib.util import find_spec

import numpy as np
import scipy.optimize
from sklearn.datasets import load_breast_cancer

import fnad

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--plot", metavar="FILE", help="draw the margins of patients not seen before, and the weights")
options = parser.parse_args([] if __name__ != "__main__" else None)
if options.plot and not find_spec("matplotlib"):
    parser.error("--plot draws by matplotlib, which is not installed: pip install matplotlib")

data = load_breast_cancer()
features, benign = data.data, data.target
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

if options.plot:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    margins = features[test] @ weight + bias
    for kind, name in enumerate(data.target_names):
        left.hist(
            margins[benign[test] == kind], bins=np.linspace(margins.min(), margins.max(), 40), alpha=0.6, label=name
        )
    left.axvline(0, color="black", linestyle=":")
    left.set(xlabel="logarithm of the odds to be benign", ylabel="patients not seen before")
    left.legend()
    order = np.argsort(np.abs(weight))[-12:]
    right.barh(data.feature_names[order], weight[order])
    right.set(xlabel="largest weights")
    figure.savefig(options.plot, dpi=120)
    print(f"picture in {options.plot}")
