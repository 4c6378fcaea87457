"""Parametric fits of lifelines with derivatives by autograd and by fnad, in turn: the same numbers, and the times.

    pip install autograd lifelines
    python examples/clients/lifelines_fits.py [--rounds 3] [model ...]

lifelines is imported three times, over autograd, over fnad, and over fnad with `jit`. Each fit is made anew by each of
them in every round, from new objects, so it is traced anew; in the first round it is compiled too, or with `jit` read
from disk, if an earlier process compiled it. The times are CPU time: of the first fit, and the median of later ones.

The standard errors of the generalized gamma regression differ by 1e-4 of their size: the package autograd-gamma takes
second derivatives by differences of differences. With autograd alone they change by as much if the parameters change by
1e-10. All else is equal to 1e-6.

Where the likelihood is flat, as of a generalized gamma distribution of intervals without events, parameters that differ
by a half have likelihoods that differ by 1e-11, a few units in their last digit. Which of them is found depends on the
rounding. The interpreter rounds as autograd does: with `fnad.config.override(executor="interpreter")` these fits are
autograd's to the bit, with `jit` too. Native code rounds otherwise, and a fit may be the first one that it computes: so
two fits in a row may differ, as in lifelines' own `test_lists_and_tuples_as_input`.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

import autograd_shim
import numpy as np

PREFIXES = ("lifelines", "autograd", "autograd_gamma")
SYSTEMS: dict[str, Callable[[], None]] = {
    "autograd": lambda: None,
    "fnad": autograd_shim.install,
    "fnad jit": lambda: autograd_shim.install(jit=True),
}
Modules = dict[str, ModuleType]


def swapped(modules: Modules) -> None:
    """Let these be the modules of lifelines and autograd from now on."""
    for name in [name for name in sys.modules if name.partition(".")[0] in PREFIXES]:
        del sys.modules[name]
    sys.modules.update(modules)


def imported(install: Callable[[], None]) -> Modules:
    """The modules of lifelines over what `install` puts in place."""
    swapped({})
    install()
    import_module("lifelines")
    return {name: module for name, module in sys.modules.items() if name.partition(".")[0] in PREFIXES}


def univariate(name: str, *args: Any) -> Callable[[Any], Any]:
    """A fit of durations alone."""

    def fit(lifelines: Any) -> Any:
        data = lifelines.datasets.load_waltons()
        return getattr(lifelines, name)(*args).fit(data["T"], data["E"])

    return fit


def regression(name: str, *args: Any, **options: Any) -> Callable[[Any], Any]:
    """A fit of durations by covariates."""

    def fit(lifelines: Any) -> Any:
        data = lifelines.datasets.load_rossi()
        return getattr(lifelines, name)(*args, **options).fit(data, "week", "arrest")

    return fit


def censored(name: str) -> Callable[[Any], Any]:
    """A fit of intervals."""

    def fit(lifelines: Any) -> Any:
        data = lifelines.datasets.load_diabetes()
        return getattr(lifelines, name)().fit_interval_censoring(data["left"], data["right"])

    return fit


FITS: dict[str, Callable[[Any], Any]] = {
    "Weibull": univariate("WeibullFitter"),
    "exponential": univariate("ExponentialFitter"),
    "log-normal": univariate("LogNormalFitter"),
    "log-logistic": univariate("LogLogisticFitter"),
    "generalized gamma": univariate("GeneralizedGammaFitter"),
    "piecewise exponential": univariate("PiecewiseExponentialFitter", [20, 40]),
    "spline": univariate("SplineFitter", [6, 20, 40]),
    "Weibull, intervals": censored("WeibullFitter"),
    "log-normal, intervals": censored("LogNormalFitter"),
    "Weibull regression": regression("WeibullAFTFitter"),
    "log-normal regression": regression("LogNormalAFTFitter"),
    "log-logistic regression": regression("LogLogisticAFTFitter"),
    "generalized gamma regression": regression("GeneralizedGammaRegressionFitter", penalizer=0.1),
    "piecewise regression": regression("PiecewiseExponentialRegressionFitter", [20, 35], penalizer=0.01),
    "Weibull regression, penalized": regression("WeibullAFTFitter", penalizer=0.1, l1_ratio=0.3),
    "Cox by spline": regression("CoxPHFitter", baseline_estimation_method="spline", n_baseline_knots=3),
    "Cox by pieces": regression("CoxPHFitter", baseline_estimation_method="piecewise", breakpoints=[20, 35]),
}


def outcome(fitted: Any) -> Any:
    """What a fit found: the logarithm of the likelihood, the parameters and their standard errors."""
    summary = fitted.summary
    return np.array([fitted.log_likelihood_, *summary["coef"], *summary["se(coef)"]], float)


def main() -> None:
    """Fit each model in turn by each system."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=[*FITS])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    copies = {name: imported(install) for name, install in SYSTEMS.items()}
    names = [f"{name} {which}" for name in ("fnad", "fnad jit") for which in ("first", "later")]
    print(f"{'':30} {'autograd':>9} {' '.join(f'{name:>14}' for name in names)} {'difference':>11}")
    ratios: list[list[float]] = []
    for model in options.models:
        seconds, found = timed(FITS[model], copies, options.rounds)
        wanted = found["autograd"]
        off = max(np.max(np.abs(found[name] - wanted) / (np.abs(wanted) + 1e-3)) for name in ("fnad", "fnad jit"))
        base = statistics.median(seconds["autograd"])
        times = [time for name in ("fnad", "fnad jit") for time in first_and_later(seconds[name])]
        ratios.append([time / base for time in times])
        row = "".join(f" {time:7.3f} s{ratio:5.1f}" for time, ratio in zip(times, ratios[-1], strict=True))
        print(f"{model:30} {base:7.3f} s{row} {off:11.1e}", flush=True)
    means = zip(names, np.exp(np.mean(np.log(ratios), axis=0)), strict=True)
    print(f"times autograd's, geometric mean: {', '.join(f'{name} {mean:.2f}' for name, mean in means)}")


def timed(
    fit: Callable[[Any], Any], copies: dict[str, Modules], rounds: int
) -> tuple[dict[str, list[float]], dict[str, Any]]:
    """The CPU time of a fit by each system in each round, and what each found."""
    seconds: dict[str, list[float]] = {name: [] for name in copies}
    found: dict[str, Any] = {}
    for _ in range(rounds):
        for name, modules in copies.items():
            swapped(modules)
            start = time.process_time()
            found[name] = outcome(fit(modules["lifelines"]))
            seconds[name].append(time.process_time() - start)
    return seconds, found


def first_and_later(seconds: list[float]) -> tuple[float, float]:
    """The time of the first fit, and the median of those of the others, if there are any."""
    return seconds[0], statistics.median(seconds[1:] or seconds)


if __name__ == "__main__":
    main()
