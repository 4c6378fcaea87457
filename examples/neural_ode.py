"""Hares and lynxes: a neural ordinary differential equation, fitted through the solver in one compiled call.

    python examples/neural_ode.py                   fit, and compare with the equations of Lotka and Volterra
    python examples/neural_ode.py --plot lynx.png   the same, and draw what was fitted

The data are pelts, in thousands, collected by the Hudson's Bay Company from 1900 to 1920 (Howard, "Modeling Basics",
2009; Carpenter, "Predator-Prey Population Dynamics", Stan case studies, 2018). u is the logarithm of both numbers. Its
derivative is a network, with nothing known (Chen et al., "Neural Ordinary Differential Equations", 2018), or that of
Lotka and Volterra, with four parameters.
"""

import argparse
import time
from importlib.util import find_spec

import numpy as np

import fnad
from fnad import optim, random

YEARS = np.arange(1900.0, 1921.0)
PELTS = np.array([
    [30.0, 47.2, 70.2, 77.4, 36.3, 20.6, 18.1, 21.4, 22.0, 25.4, 27.1,
     40.3, 57.0, 76.6, 52.3, 19.5, 11.2, 7.6, 14.6, 16.2, 24.7],
    [4.0, 6.1, 9.8, 35.2, 59.4, 41.7, 19.0, 13.0, 8.3, 9.1, 7.4,
     8.0, 12.3, 19.5, 45.7, 51.1, 29.7, 15.8, 9.7, 10.1, 8.6],
]).T  # fmt: skip
LOGARITHMS = np.log(PELTS)
UNITS = 20
RATE = 1e-2


# ---- two models of du/dt ---------------------------------------------------------------------------------------------


def network(u, t, layers):
    hidden = u - np.mean(LOGARITHMS, axis=0)
    for weight, bias in layers[:-1]:
        hidden = np.tanh(hidden @ weight + bias)
    return hidden @ layers[-1][0] + layers[-1][1]


def initial_layers(key):
    sizes = [(2, UNITS), (UNITS, UNITS), (UNITS, 2)]
    keys = random.split(key, len(sizes))
    return [(random.normal(key, (m, n)) / np.sqrt(m), np.zeros(n)) for (m, n), key in zip(sizes, keys, strict=True)]


def lotka_volterra(u, t, rates):
    """Hares multiply and are eaten, lynxes starve and eat; the rates are given by their logarithms."""
    growth, eaten, death, eats = np.exp(rates)
    hares, lynxes = np.exp(u)
    return np.stack([growth - eaten * lynxes, eats * hares - death])


# ---- the fit ---------------------------------------------------------------------------------------------------------


def path(model, params, times):
    return fnad.odeint(model, params["start"], times, params["model"], rtol=1e-5, atol=1e-5)


def fit(model, params, steps):
    """Return the fitted parameters and the course of the misfit."""
    optimizer = optim.adam(optim.cosine_decay_schedule(RATE, steps))
    every = max(1, steps // 5)

    def misfit(params, horizon):
        """Mean squared error up to about a horizon: what comes late can only be fitted when what is before it is."""
        weights = 1 / (1 + np.exp(np.clip(YEARS - YEARS[0] - horizon, -50, 50)))
        errors = (path(model, params, YEARS) - LOGARITHMS) ** 2
        return np.sum(weights * np.mean(errors, axis=1)) / np.sum(weights)

    def step(carry, number):
        params, state = carry
        horizon = 3 + 30 * number / steps
        value, gradient = fnad.value_and_grad(misfit)(params, horizon)
        updates, state = optimizer.update(gradient, state)
        fnad.cond(number % every == every - 1, show, lambda *_: None, number + 1, horizon, value)
        fnad.debug.progress(steps)
        return (optim.apply_updates(params, updates), state), value

    @fnad.jit
    def train(params):
        (params, _), course = fnad.scan(step, (params, optimizer.init(params)), np.arange(steps))
        return params, course

    return train(params)


def show(step, horizon, value):
    line = "step {:5d}   error {:.3f} of the logarithm, over about {:.0f} years"
    fnad.callback(lambda *numbers: print(line.format(*numbers)), step, np.sqrt(value), np.minimum(horizon, 20))


def draw(file, fitted):
    """Save the fitted paths over the years, and in the plane of both populations, with the field of the network."""
    from matplotlib.figure import Figure  # noqa: PLC0415  (pictures alone need matplotlib)

    figure = Figure(figsize=(12, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(2, 1))
    times = np.linspace(YEARS[0], YEARS[-1], 401)
    for (name, (model, params)), style in zip(fitted.items(), ("-", ":"), strict=True):
        curves = np.exp(path(model, params, times))
        for curve, color, animal in zip(curves.T, ("tab:brown", "tab:blue"), ("hares", "lynxes"), strict=True):
            left.plot(times, curve, style, color=color, label=f"{animal}, {name}")
        right.plot(*curves.T, style, color="black", label=name)
    for animal, color in zip(PELTS.T, ("tab:brown", "tab:blue"), strict=True):
        left.plot(YEARS, animal, "o", color=color)
    left.set(xlabel="year", ylabel="thousands of pelts", xticks=YEARS[::4])
    left.legend()
    right.plot(*PELTS.T, "o", color="grey")
    right.set(xlabel="hares", ylabel="lynxes")
    right.legend()
    figure.savefig(file, dpi=120)
    print(f"picture in {file}")


def main():
    parser = argparse.ArgumentParser(description="Fit a neural differential equation to hares and lynxes.")
    parser.add_argument("--steps", type=int, default=2000, help="of the fit (default: 2000)")
    parser.add_argument("--seed", type=int, default=0, help="of the initial weights")
    parser.add_argument("--plot", metavar="FILE", help="draw the fitted paths")
    options = parser.parse_args()
    if options.plot and not find_spec("matplotlib"):
        parser.error("--plot draws by matplotlib, which is not installed: pip install matplotlib")

    layers, rates = initial_layers(random.key(options.seed)), np.log([0.5, 0.02, 0.8, 0.02])
    models = {"network": (network, layers), "Lotka-Volterra": (lotka_volterra, rates)}
    fitted = {}
    for name, (model, guessed) in models.items():
        begin = time.perf_counter()
        params, course = fit(model, {"model": guessed, "start": LOGARITHMS[0]}, options.steps)
        print(f"{name}: error {np.sqrt(course[-1]):.3f}, {time.perf_counter() - begin:.1f} s, compilation included\n")
        fitted[name] = model, params
    growth, eaten, death, eats = np.exp(fitted["Lotka-Volterra"][1]["model"])
    print(f"hares'  = {growth:.3f} hares - {eaten:.4f} hares lynxes")
    print(f"lynxes' = {eats:.4f} hares lynxes - {death:.3f} lynxes")
    if options.plot:
        draw(options.plot, fitted)


if __name__ == "__main__":
    main()
