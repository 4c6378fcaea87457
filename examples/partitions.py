"""A regression on data larger than memory: value and gradient of each part in worker processes, summed up.

The parts are files that workers map into memory. A worker finds the compiled code of an earlier process on disk, so
that only the first process of all compiles.
"""

import argparse
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

import fnad

FEATURES = 20


def loss(w, x, y):
    """The negative log-likelihood of a logistic regression, for labels of -1 and 1."""
    return np.sum(np.logaddexp(0.0, -y * (x @ w)))


value_and_gradient = fnad.jit(fnad.value_and_grad(loss))


def of_part(w, file):
    """The value and gradient of the rows of a file, of which the last column has the labels."""
    rows = np.load(file, mmap_mode="r")
    return value_and_gradient(w, rows[:, :-1], rows[:, -1])


def summed(w, run, files):
    """The value and gradient of all files; `run` maps a function over them."""
    values, gradients = zip(*run(partial(of_part, w), files), strict=True)
    return sum(values), sum(gradients)


def by_joblib(pool, workers):
    """A map by joblib, in processes of its own."""
    import joblib  # noqa: PLC0415 - one way of several

    parallel = joblib.Parallel(n_jobs=workers)
    return lambda f, files: parallel(joblib.delayed(f)(file) for file in files)


def by_dask(pool, workers):
    """A map by dask, whose delayed calls run on a cluster likewise."""
    import dask  # noqa: PLC0415 - likewise  # pyright: ignore[reportMissingImports]

    return lambda f, files: dask.compute(*[dask.delayed(f)(file) for file in files], scheduler="processes", pool=pool)


def by_ray(pool, workers):
    """A map by Ray, in processes that it starts."""
    import ray  # noqa: PLC0415 - likewise  # pyright: ignore[reportMissingImports]

    ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False)
    task = ray.remote(lambda f, file: f(file))
    return lambda f, files: ray.get([task.remote(f, file) for file in files])


WAYS = {"processes": lambda pool, _: pool.map, "joblib": by_joblib, "dask": by_dask, "ray": by_ray}


def written(folder, parts, rows, truth):
    """Files of random rows with labels of a known model."""
    rng = np.random.default_rng(0)
    for n in range(parts):
        x = rng.standard_normal((rows, FEATURES))
        y = np.where(rng.random(rows) < 1 / (1 + np.exp(-x @ truth)), 1.0, -1.0)
        np.save(folder / f"part{n}.npy", np.column_stack([x, y]))
        yield folder / f"part{n}.npy"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--by", choices=WAYS, default="processes", help="what runs the parts")
    parser.add_argument("--parts", type=int, default=8, help="the number of files")
    parser.add_argument("--rows", type=int, default=20_000, help="the rows of each file")
    parser.add_argument("--workers", type=int, default=2, help="the number of processes")
    request = parser.parse_args()
    truth = np.linspace(-1.0, 1.0, FEATURES)
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(request.workers) as pool:
        files = list(written(Path(folder), request.parts, request.rows, truth))
        run = WAYS[request.by](pool, request.workers)
        seconds = []

        def timed(w):
            start = time.perf_counter()
            found = summed(w, run, files)
            seconds.append(time.perf_counter() - start)
            return found

        fit = minimize(timed, np.zeros(FEATURES), jac=True, method="L-BFGS-B")
    print(f"{fit.nfev} passes over {request.parts} parts of {request.rows} rows by {request.by}")
    print(f"first pass {seconds[0]:.2f} s, later ones {np.median(seconds[1:]):.3f} s")
    print(f"largest error of a weight: {np.max(np.abs(fit.x - truth)):.3f}")


if __name__ == "__main__":
    main()
