"""Linear regression: the mean squared error and its gradient, going downhill.

PyTorch's tutorial in functional form. There, parameters carry `requires_grad`, `loss.backward()` fills their `.grad`,
and `.grad` is emptied before the next step. Here the gradient is a value that a function returns.
"""

import argparse
from importlib.util import find_spec

import numpy as np

import fnad

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--plot", metavar="FILE", help="draw the course of the loss, and the predictions")
options = parser.parse_args([] if __name__ != "__main__" else None)
if options.plot and not find_spec("matplotlib"):
    parser.error("--plot draws by matplotlib, which is not installed: pip install matplotlib")


def predict(model, x):
    return x @ model["weight"] + model["bias"]


def loss(model, x, y):
    return np.mean((predict(model, x) - y) ** 2)


rng = np.random.default_rng(0)
x = rng.standard_normal((200, 3))
y = x @ np.array([1.5, -2.0, 0.5]) + 0.7 + 0.01 * rng.standard_normal(200)

model = {"weight": np.zeros(3), "bias": 0.0}
loss_and_gradient = fnad.jit(fnad.value_and_grad(loss))  # with respect to the first argument, the model

losses = []
for step in range(101):
    value, gradient = loss_and_gradient(model, x, y)
    model = {name: model[name] - 0.1 * gradient[name] for name in model}
    losses.append(value)
    if step % 20 == 0:
        print(f"step {step:3d}   loss {value:.6f}")

print("weight", np.round(model["weight"], 3), " true: 1.5, -2.0, 0.5")
print("bias  ", np.round(model["bias"], 3), " true: 0.7")

if options.plot:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.semilogy(losses)
    left.set(xlabel="step", ylabel="loss")
    right.plot(y, predict(model, x), ".")
    right.axline((0, 0), slope=1, color="grey", linestyle=":")
    right.set(xlabel="y", ylabel="prediction")
    figure.savefig(options.plot, dpi=120)
    print(f"picture in {options.plot}")
