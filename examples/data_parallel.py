"""Training in processes that share a batch: each rank takes the gradient on its part, and all take the mean.

Start it by `mpiexec -n 2 python examples/data_parallel.py`; it needs fnad[mpi] and an MPI, such as mpich of PyPI. The
whole training is one compiled loop, and prints the same numbers for any number of ranks that divides the batch.
"""

import argparse

import numpy as np

import fnad
from fnad import distributed

BATCH, FEATURES, HIDDEN = 64, 8, 16


def loss(params, x, y):
    """Return the mean squared error of a network with one hidden layer."""
    return np.mean((np.tanh(x @ params["w1"] + params["b1"]) @ params["w2"] - y) ** 2)


@fnad.jit
def train(params, x, y):
    """Return the parameters and the loss after each step, on the batches of this rank."""

    def step(params, batch):
        value, slopes = fnad.value_and_grad(loss)(params, *batch)
        value, slopes = distributed.pmean((value, slopes))
        return fnad.tree.map(lambda p, g: p - 0.1 * g, params, slopes), value

    return fnad.scan(step, params, (x, y))


def main(steps):
    """Train on data that all ranks draw alike; print on rank 0."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(steps, BATCH, FEATURES))
    y = np.sin(x @ rng.normal(size=FEATURES))
    params = {
        "w1": rng.normal(size=(FEATURES, HIDDEN)) / 3,
        "b1": np.zeros(HIDDEN),
        "w2": rng.normal(size=HIDDEN) / 4,
    }
    part = np.array_split(np.arange(BATCH), distributed.size())[distributed.rank()]
    _, losses = train(params, x[:, part], y[:, part])
    if distributed.rank() == 0:
        for step in (0, steps // 2, steps - 1):
            print(f"loss after {step:3d} steps: {losses[step]:.6f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    distributed.run(main, parser.parse_args().steps)
