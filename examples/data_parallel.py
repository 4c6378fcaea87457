"""Training in processes that share a batch: each rank takes the gradient on its part, and all take the mean.

Start it by `mpiexec -n 2 python examples/data_parallel.py`; it needs fnad[mpi] and an MPI, such as mpich of PyPI. The
whole training is one compiled loop, and prints the same numbers for any number of ranks that divides the batch.
`--time` also prints the time of a step, the best of a hundred runs.
"""

import argparse
import time

import numpy as np

import fnad
from fnad import distributed

FEATURES, HIDDEN = 8, 16


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


def main(steps, batch, timed):
    """Train on data that all ranks draw alike; print on rank 0."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(steps, batch, FEATURES))
    y = np.sin(x @ rng.normal(size=FEATURES))
    params = {
        "w1": rng.normal(size=(FEATURES, HIDDEN)) / 3,
        "b1": np.zeros(HIDDEN),
        "w2": rng.normal(size=HIDDEN) / 4,
    }
    part = np.array_split(np.arange(batch), distributed.size())[distributed.rank()]
    own = params, x[:, part], y[:, part]
    _, losses = train(*own)
    if distributed.rank() == 0:
        for step in (0, steps // 2, steps - 1):
            print(f"loss after {step:3d} steps: {losses[step]:.6f}")
    if timed:
        seconds = []
        for _ in range(100):
            start = time.perf_counter()
            train(*own)
            seconds.append(time.perf_counter() - start)
        if distributed.rank() == 0:
            ranks = distributed.size()
            print(f"{1e6 * min(seconds) / steps:.0f} us a step on {ranks} ranks with {len(part)} rows each")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=64, help="the rows of a batch, on all ranks together")
    parser.add_argument("--time", action="store_true", help="print the time of a step")
    options = parser.parse_args()
    distributed.run(main, options.steps, options.batch, options.time)
