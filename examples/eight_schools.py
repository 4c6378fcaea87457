"""Eight schools: a hierarchical model in plain NumPy, sampled by Hamiltonian Monte Carlo in one compiled call.

    python examples/eight_schools.py                     sample, then print the posterior
    python examples/eight_schools.py --plot schools.png  the same, and draw it

Coaching for a test in eight schools had effects y, known up to standard errors σ (Rubin, "Estimation in parallel
randomized experiments", 1981). Each school's own effect is θ = μ + τ η with η ~ N(0, 1), μ ~ N(0, 5²) and τ half-Cauchy
of scale 5: how much do the schools differ, and what can one learn from the others? The sampler is that of Neal, "MCMC
using Hamiltonian dynamics" (2011), figure 2, with paths of random length.
"""

import argparse
import time
from importlib.util import find_spec

import numpy as np

import fnad
from fnad import random

EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
SCALE = 5.0  # of the priors of μ and τ
SIZE, STEPS = 0.4, 8  # of a path: the step, and the most of them


def school_effects(x):
    """Return θ for the unconstrained x = (μ, log τ, η)."""
    return x[0] + np.exp(x[1]) * x[2:]


def energy(x):
    """Return minus the logarithm of the posterior's density at x, up to a constant."""
    prior = np.sum(x[2:] ** 2) / 2 + (x[0] / SCALE) ** 2 / 2 + np.log1p((np.exp(x[1]) / SCALE) ** 2) - x[1]
    return np.sum(((EFFECTS - school_effects(x)) / ERRORS) ** 2) / 2 + prior


# ---- the sampler -----------------------------------------------------------------------------------------------------


def leapfrog(x, momentum, steps):
    """Return where a particle without friction is after some steps, a number that may be traced."""

    def step(_, state):
        x, momentum, force = state
        momentum = momentum - SIZE / 2 * force
        x = x + SIZE * momentum
        force = fnad.grad(energy)(x)
        return x, momentum - SIZE / 2 * force, force

    return fnad.fori_loop(0, steps, step, (x, momentum, fnad.grad(energy)(x)))[:2]


def transition(x, key):
    """Return the next point of the chain, and whether it is the one that was proposed."""
    momentum_key, length_key, accept_key = random.split(key, 3)
    momentum = random.normal(momentum_key, x.shape)
    proposed, last = leapfrog(x, momentum, random.randint(length_key, (), 1, STEPS + 1))
    gain = energy(x) + np.sum(momentum**2) / 2 - energy(proposed) - np.sum(last**2) / 2
    accepted = np.log(random.uniform(accept_key)) < gain
    return np.where(accepted, proposed, x), accepted


def chain(key, warmup, draws):
    """Return draws × 10 points of a chain, after a warm-up that is forgotten."""
    start_key, key = random.split(key)

    def step(x, key):
        x, accepted = transition(x, key)
        fnad.debug.progress(warmup + draws, "draw")
        return x, (x, accepted)

    start = random.normal(start_key, (2 + len(EFFECTS),))
    _, (points, accepted) = fnad.scan(step, start, random.split(key, warmup + draws))
    fnad.callback(lambda rate: print(f"a chain accepted {100 * rate:.1f} %"), np.mean(accepted[warmup:]))
    return points[warmup:]


def sampler(chains, warmup, draws):
    """Return the compiled sampler: from a key to chains × draws × 10 points."""
    return fnad.jit(lambda key: fnad.map(lambda key: chain(key, warmup, draws), random.split(key, chains)))


# ---- what came of it -------------------------------------------------------------------------------------------------


def potential_scale_reduction(draws):
    """Return R̂ of chains × draws numbers, near 1 where the chains agree (Gelman & Rubin, 1992)."""
    within = np.mean(np.var(draws, axis=1, ddof=1))
    between = np.var(np.mean(draws, axis=1), ddof=1)
    return np.sqrt((draws.shape[1] - 1) / draws.shape[1] + between / within)


def draw(file, quantities):
    """Save the effects of the schools as they were measured and as they are estimated, and the draws of μ and τ."""
    from matplotlib.figure import Figure  # noqa: PLC0415  (pictures alone need matplotlib)

    figure = Figure(figsize=(11, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    schools = np.arange(len(EFFECTS))
    thetas = np.stack([quantities[f"theta[{i}]"].ravel() for i in schools])
    low, median, high = np.quantile(thetas, (0.05, 0.5, 0.95), axis=1)
    left.errorbar(schools - 0.1, EFFECTS, 1.645 * ERRORS, fmt="o", capsize=3, label="measured alone")
    left.errorbar(schools + 0.1, median, (median - low, high - median), fmt="o", capsize=3, label="posterior")
    left.axhline(np.mean(quantities["mu"]), color="grey", linestyle=":", label="mean of mu")
    left.set_xticks(schools, list("ABCDEFGH"))
    left.set(xlabel="school", ylabel="effect, with 90 % intervals")
    left.legend()
    right.scatter(quantities["theta[0]"], quantities["tau"], s=1, alpha=0.3)
    right.set(xlabel="effect in school A", ylabel="tau: how much schools differ", ylim=(0, 30), xlim=(-20, 45))
    figure.savefig(file, dpi=120)
    print(f"picture in {file}")


def main():
    parser = argparse.ArgumentParser(description="Sample the posterior of the eight schools.")
    parser.add_argument("--chains", type=int, default=4, help="independent of each other (default: 4)")
    parser.add_argument("--warmup", type=int, default=1000, help="draws that are forgotten (default: 1000)")
    parser.add_argument("--draws", type=int, default=10_000, help="of each chain (default: 10000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plot", metavar="FILE", help="draw the posterior")
    options = parser.parse_args()
    if options.plot and not find_spec("matplotlib"):
        parser.error("--plot draws by matplotlib, which is not installed: pip install matplotlib")

    start = time.perf_counter()
    points = sampler(options.chains, options.warmup, options.draws)(random.key(options.seed))
    print(f"sampled in {time.perf_counter() - start:.1f} s, compilation included\n")

    tau = np.exp(points[..., 1])
    quantities = {"mu": points[..., 0], "tau": tau}
    thetas = points[..., :1] + tau[..., None] * points[..., 2:]
    quantities |= {f"theta[{i}]": thetas[..., i] for i in range(len(EFFECTS))}
    print("               mean       sd    R-hat")
    for name, draws in quantities.items():
        print(f"{name:10s} {np.mean(draws):8.2f} {np.std(draws):8.2f} {potential_scale_reduction(draws):8.3f}")
    if options.plot:
        draw(options.plot, quantities)


if __name__ == "__main__":
    main()
