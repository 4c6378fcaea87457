"""Hyperparameters that change: functions of the number of steps taken, which may be traced."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from fnad.errors import HyperparameterError
from fnad.optim.hyperparameters import Number, Schedule, check_count, check_positive, named
from fnad.upward import UPWARD


@named
def constant_schedule(value: Number) -> Schedule:
    """The schedule that is always the same.

    >>> from fnad import optim
    >>> optim.constant_schedule(0.1)(7)
    0.1
    """
    return lambda count: value


@named
def linear_schedule(
    init_value: Number, end_value: Number, transition_steps: int, transition_begin: int = 0
) -> Schedule:
    """The schedule that goes linearly from one value to another: `polynomial_schedule` of power 1.

    >>> from fnad import optim
    >>> rate = optim.linear_schedule(1.0, 0.0, transition_steps=4)
    >>> [float(rate(count)) for count in (0, 1, 4, 9)]
    [1.0, 0.75, 0.0, 0.0]
    """
    return polynomial_schedule(init_value, end_value, 1, transition_steps, transition_begin)


@named
def polynomial_schedule(
    init_value: Number, end_value: Number, power: Number, transition_steps: int, transition_begin: int = 0
) -> Schedule:
    """The schedule end + (init - end) · (1 - t)ᵖ, where t goes from 0 to 1 in `transition_steps`.

    >>> from fnad import optim
    >>> rate = optim.polynomial_schedule(1.0, 0.0, power=2, transition_steps=4)
    >>> [float(rate(count)) for count in (0, 2, 4)]
    [1.0, 0.25, 0.0]
    """
    check_count("transition_steps", transition_steps, 1)
    check_count("transition_begin", transition_begin)

    def value(count: Any) -> Any:
        remaining = 1 - np.clip(count - transition_begin, 0, transition_steps) / transition_steps
        return (init_value - end_value) * remaining**power + end_value

    return value


@named
def exponential_decay(
    init_value: Number,
    transition_steps: int,
    decay_rate: Number,
    transition_begin: int = 0,
    staircase: bool = False,
    end_value: Number | None = None,
) -> Schedule:
    """The schedule init · rate^(t / transition_steps), from `transition_begin` on, and no further than `end_value`.

    With `staircase` the exponent is rounded down.

    >>> from fnad import optim
    >>> rate = optim.exponential_decay(1.0, transition_steps=2, decay_rate=0.25)
    >>> [float(rate(count)) for count in (0, 1, 2)]
    [1.0, 0.5, 0.25]
    """
    check_count("transition_steps", transition_steps, 1)
    check_count("transition_begin", transition_begin)
    check_positive("decay_rate", decay_rate)

    def value(count: Any) -> Any:
        exponent = np.maximum(count - transition_begin, 0) / transition_steps
        decayed = init_value * decay_rate ** (np.floor(exponent) if staircase else exponent)
        if end_value is None:
            return decayed
        return np.where(decay_rate < 1, np.maximum(decayed, end_value), np.minimum(decayed, end_value))

    return value


@named
def cosine_decay_schedule(
    init_value: Number, decay_steps: int, alpha: Number = 0.0, exponent: Number = 1.0
) -> Schedule:
    """The schedule init · ((1 - alpha) · (½ + ½ cos πt)ᵉ + alpha), where t goes from 0 to 1 in `decay_steps`.

    Loshchilov, Hutter, "SGDR: stochastic gradient descent with warm restarts" (2017), equation 5.

    >>> from fnad import optim
    >>> rate = optim.cosine_decay_schedule(1.0, decay_steps=4)
    >>> [round(float(rate(count)), 6) for count in (0, 2, 4, 9)]
    [1.0, 0.5, 0.0, 0.0]
    """
    check_count("decay_steps", decay_steps, 1)

    def value(count: Any) -> Any:
        fraction = np.minimum(count, decay_steps) / decay_steps
        return init_value * ((1 - alpha) * (0.5 * (1 + np.cos(math.pi * fraction))) ** exponent + alpha)

    return value


@named
def piecewise_constant_schedule(init_value: Number, boundaries_and_scales: Mapping[int, Number]) -> Schedule:
    """The schedule that is multiplied by a factor at each boundary.

    >>> from fnad import optim
    >>> rate = optim.piecewise_constant_schedule(1.0, {10: 0.5, 20: 0.1})
    >>> [float(rate(count)) for count in (9, 10, 20)]
    [1.0, 0.5, 0.05]
    """
    for boundary in boundaries_and_scales:
        check_count("a boundary", boundary)

    def value(count: Any) -> Any:
        result = init_value
        for boundary, factor in sorted(boundaries_and_scales.items()):
            result = result * np.where(count < boundary, 1.0, factor)
        return result

    return value


@named
def piecewise_interpolate_schedule(
    interpolate_type: Literal["linear", "cosine"], init_value: Number, boundaries_and_scales: Mapping[int, Number]
) -> Schedule:
    """The schedule through the values of `piecewise_constant_schedule` at its boundaries, interpolated between.

    >>> from fnad import optim
    >>> rate = optim.piecewise_interpolate_schedule("linear", 1.0, {10: 0.5, 20: 0.0})
    >>> [float(rate(count)) for count in (0, 5, 10, 15, 30)]
    [1.0, 0.75, 0.5, 0.25, 0.0]
    """
    if interpolate_type not in EASES:
        what = f"interpolate_type is {interpolate_type!r}"
        raise HyperparameterError.here(what, remedy=f"it has to be one of {', '.join(EASES)}")
    for boundary in boundaries_and_scales:
        check_count("a boundary", boundary, 1)
    ease = EASES[interpolate_type]

    def value(count: Any) -> Any:
        points, values = [0], [init_value]
        for boundary, factor in sorted(boundaries_and_scales.items()):
            points.append(boundary)
            values.append(values[-1] * factor)
        result = init_value
        for (start, stop), (before, after) in zip(pairwise(points), pairwise(values), strict=True):
            fraction = np.clip((count - start) / (stop - start), 0.0, 1.0)
            result = result + (after - before) * ease(fraction)
        return result

    return value


EASES = {"linear": lambda t: t, "cosine": lambda t: 0.5 * (1 - np.cos(math.pi * t))}


# ---- one schedule after another ------------------------------------------------------------------------------------


@named
def join_schedules(schedules: Sequence[Schedule], boundaries: Sequence[int]) -> Schedule:
    """The schedule that switches to the next one at each boundary, from which the next one counts its steps.

    Raises `HyperparameterError` unless there is one boundary between each two, in ascending order.

    >>> from fnad import optim
    >>> rate = optim.join_schedules([optim.constant_schedule(1.0), optim.linear_schedule(0.5, 0.0, 2)], [10])
    >>> [float(rate(count)) for count in (9, 10, 11)]
    [1.0, 0.5, 0.25]
    """
    if len(boundaries) + 1 != len(schedules) or any(a > b for a, b in pairwise(boundaries)):
        what = f"{len(schedules)} schedules have boundaries {list(boundaries)}"
        remedy = "give one boundary between each two, in ascending order"
        raise HyperparameterError.here(what, remedy=remedy)

    def value(count: Any) -> Any:
        result = UPWARD.callee(schedules[0])(count)
        for boundary, schedule in zip(boundaries, schedules[1:], strict=True):
            result = np.where(count < boundary, result, UPWARD.callee(schedule)(count - boundary))
        return result

    return value


@named
def warmup_constant_schedule(init_value: Number, peak_value: Number, warmup_steps: int) -> Schedule:
    """The schedule that goes linearly to its peak and stays there.

    >>> from fnad import optim
    >>> rate = optim.warmup_constant_schedule(0.0, 1.0, warmup_steps=4)
    >>> [float(rate(count)) for count in (0, 2, 9)]
    [0.0, 0.5, 1.0]
    """
    return _warmed_up(init_value, peak_value, warmup_steps, constant_schedule(peak_value))


@named
def warmup_cosine_decay_schedule(
    init_value: Number,
    peak_value: Number,
    warmup_steps: int,
    decay_steps: int,
    end_value: Number = 0.0,
    exponent: Number = 1.0,
) -> Schedule:
    """The schedule that goes linearly to its peak, then down by a cosine; `decay_steps` counts both.

    Raises `HyperparameterError` unless `decay_steps` exceeds the warm-up, and the peak is positive.

    >>> from fnad import optim
    >>> rate = optim.warmup_cosine_decay_schedule(0.0, 1.0, warmup_steps=2, decay_steps=6)
    >>> [round(float(rate(count)), 6) for count in (0, 1, 2, 4, 6)]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    check_count("warmup_steps", warmup_steps)
    check_count("decay_steps", decay_steps, warmup_steps + 1)
    check_positive("peak_value", peak_value)
    decay = cosine_decay_schedule(peak_value, decay_steps - warmup_steps, end_value / peak_value, exponent)
    return _warmed_up(init_value, peak_value, warmup_steps, decay)


@named
def warmup_exponential_decay_schedule(
    init_value: Number,
    peak_value: Number,
    warmup_steps: int,
    transition_steps: int,
    decay_rate: Number,
    transition_begin: int = 0,
    staircase: bool = False,
    end_value: Number | None = None,
) -> Schedule:
    """The schedule that goes linearly to its peak, then follows `exponential_decay`.

    >>> from fnad import optim
    >>> rate = optim.warmup_exponential_decay_schedule(0.0, 1.0, warmup_steps=2, transition_steps=1, decay_rate=0.5)
    >>> [float(rate(count)) for count in (0, 1, 2, 3, 4)]
    [0.0, 0.5, 1.0, 0.5, 0.25]
    """
    decay = exponential_decay(peak_value, transition_steps, decay_rate, transition_begin, staircase, end_value)
    return _warmed_up(init_value, peak_value, warmup_steps, decay)


def _warmed_up(init_value: Number, peak_value: Number, steps: int, schedule: Schedule) -> Schedule:
    check_count("warmup_steps", steps)
    return join_schedules([linear_schedule(init_value, peak_value, steps), schedule], [steps]) if steps else schedule
