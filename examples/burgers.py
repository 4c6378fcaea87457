"""Burgers' equation: a network that learns a flow with a shock from the equation alone, in one compiled call.

    python examples/burgers.py                     train, and compare with the solution
    python examples/burgers.py --plot burgers.png  the same, and draw both

u_t + u u_x = ν u_xx on -1 < x < 1, with u = -sin πx at t = 0 and u = 0 at the ends: the problem, and the network that
has to fulfil it at random points, are those of Raissi, Perdikaris & Karniadakis, "Physics-informed neural networks"
(2019), section 3.1.1; start and ends are built in (Lagaris, Likas & Fotiadis, 1998). The equation is written for one
point and taken to all of them by `vmap`; training takes the gradient of its derivatives. What these have in common, the
network itself and its tangents, is computed once.
"""

import argparse
import time
from importlib.util import find_spec
from itertools import pairwise

import numpy as np

import fnad
from fnad import optim, random

VISCOSITY = float(0.01 / np.pi)
SIZES = (2, 32, 32, 32, 32, 1)
POINTS = 512  # in a step, a half of them near the shock
RATE = 5e-3


# ---- the network and the equation ------------------------------------------------------------------------------------


def flow(layers, t, x):
    """Return u at a point (t, x), or at many; u is -sin πx at t = 0, and 0 at x = ±1."""
    hidden = np.stack([2 * t - 1, x], axis=-1)
    for weight, bias in layers[:-1]:
        hidden = np.tanh(hidden @ weight + bias)
    weight, bias = layers[-1]
    return t * (1 - x**2) * (hidden @ weight + bias)[..., 0] - np.sin(np.pi * x)


def residual(layers, t, x):
    """Return u_t + u u_x - ν u_xx at a point, with less weight where u is steep, else only the shock would count.

    That is after Liu et al., "Discontinuity computing using physics-informed neural networks" (2024).
    """
    one = np.ones_like(x)
    u, u_x = fnad.jvp(lambda x: flow(layers, t, x), (x,), (one,))
    _, u_t = fnad.jvp(lambda t: flow(layers, t, x), (t,), (one,))
    u_xx = fnad.laplacian(flow, argnums=2)(layers, t, x)
    weight = 1 / (1 + 0.1 * np.abs(fnad.stop_gradient(u_x)))
    return weight * (u_t + u * u_x - VISCOSITY * u_xx)


def loss(layers, t, x):
    return np.mean(fnad.vmap(residual, in_axes=(None, 0, 0))(layers, t, x) ** 2)


def initial_layers(key):
    pairs = zip(random.split(key, len(SIZES) - 1), pairwise(SIZES), strict=True)
    return [
        (random.normal(key, (m, n), np.float32) * np.float32(np.sqrt(1 / m)), np.zeros(n, np.float32))
        for key, (m, n) in pairs
    ]


def solution(t, x):
    """Return u by the integrals of Cole and Hopf, with Gauss-Hermite quadrature (Basdevant et al., 1986)."""
    nodes, weights = np.polynomial.hermite.hermgauss(100)
    y = x[..., None] - nodes * np.sqrt(4 * VISCOSITY * t[..., None])
    weights = weights * np.exp((-1 - np.cos(np.pi * y)) / (2 * np.pi * VISCOSITY))
    return -np.sum(weights * np.sin(np.pi * y), axis=-1) / np.sum(weights, axis=-1)


# ---- training --------------------------------------------------------------------------------------------------------


def training(steps):
    """Return the compiled training: from a key to the layers, and the course of the mean squared residual."""
    optimizer = optim.adam(optim.cosine_decay_schedule(RATE, steps))
    every = max(1, steps // 10)

    def step(carry, numbered):
        layers, state = carry
        number, key = numbered
        t_key, x_key, near_key = random.split(key, 3)
        t = random.uniform(t_key, (POINTS,), np.float32)
        x = random.uniform(x_key, (POINTS // 2,), np.float32, -1, 1)
        near = np.float32(0.1) * random.uniform(near_key, (POINTS // 2,), np.float32, -1, 1)
        x = np.concatenate([x, near])
        value, gradient = fnad.value_and_grad(loss)(layers, t, x)
        updates, state = optimizer.update(gradient, state)
        fnad.cond(number % every == every - 1, show, lambda *_: None, number + 1, value)
        fnad.debug.progress(steps)
        return (optim.apply_updates(layers, updates), state), value

    @fnad.jit
    def train(key):
        layers_key, key = random.split(key)
        layers = initial_layers(layers_key)
        numbered = np.arange(steps), random.split(key, steps)
        (layers, _), course = fnad.scan(step, (layers, optimizer.init(layers)), numbered)
        return layers, course

    return train


def show(step, value):
    fnad.callback(lambda *numbers: print("step {:6d}   mean squared residual {:.2e}".format(*numbers)), step, value)


def draw(file, t, x, learned, exact):
    """Save the flow over time and place, its profiles beside the solution's, and their difference."""
    from matplotlib.figure import Figure  # noqa: PLC0415  (pictures alone need matplotlib)

    figure = Figure(figsize=(13, 4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    figure.colorbar(left.pcolormesh(t, x, learned, cmap="RdBu"), ax=left)
    left.set(xlabel="t", ylabel="x", title="u")
    for column in (25, 50, 99):
        (line,) = middle.plot(x[:, 0], learned[:, column], label=f"t = {t[0, column]:.2f}")
        middle.plot(x[::8, 0], exact[::8, column], ".", color=line.get_color())
    middle.set(xlabel="x", title="u learned (lines) and by quadrature (points)")
    middle.legend()
    figure.colorbar(right.pcolormesh(t, x, np.abs(learned - exact), cmap="Greys"), ax=right)
    right.set(xlabel="t", ylabel="x", title="difference")
    figure.savefig(file, dpi=120)
    print(f"picture in {file}")


def main():
    parser = argparse.ArgumentParser(description="Solve Burgers' equation by a network that is told the equation.")
    parser.add_argument("--steps", type=int, default=20_000, help="of the training (default: 20000)")
    parser.add_argument("--seed", type=int, default=0, help="of the initial weights and the points")
    parser.add_argument("--plot", metavar="FILE", help="draw the flow and its error")
    options = parser.parse_args()
    if options.plot and not find_spec("matplotlib"):
        parser.error("--plot draws by matplotlib, which is not installed: pip install matplotlib")

    begin = time.perf_counter()
    layers, _ = training(options.steps)(random.key(options.seed))
    print(f"trained in {time.perf_counter() - begin:.1f} s, compilation included")

    t, x = np.meshgrid(np.linspace(0.01, 1, 100), np.linspace(-1, 1, 257))
    learned = flow(layers, t.ravel(), x.ravel()).reshape(t.shape)
    exact = solution(t, x)
    print(f"relative error {np.linalg.norm(learned - exact) / np.linalg.norm(exact):.2e}")
    if options.plot:
        draw(options.plot, t, x, learned, exact)


if __name__ == "__main__":
    main()
