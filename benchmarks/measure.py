"""A case's rows: prepare every contender, let all agree on the result, then time them in turn."""

import gc
import statistics
from collections.abc import Collection, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.case import Case, Contender, Reading, Sampler

UNITS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: times in seconds, or None where the remark says why there is none."""

    problem: str
    case: str
    system: str
    unit: str
    median: float | None = None
    spread: float | None = None  # half the distance between the quartiles, relative to the median
    ratio: float | None = None
    first: float | None = None
    note: str = ""
    failed: bool = False
    least: float | None = None  # the fastest sample: what a busy machine touches least
    peer: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """A contender that is ready, with its first reading."""

    contender: Contender
    sampler: Sampler
    reading: Reading


def rows(problem: str, case: Case, peers: Collection[str], rounds: int | None) -> Iterator[Row]:
    """Yield a row for each contender of `case` whose peer is asked for."""
    entries: list[Entry] = []
    for contender in case.contenders:
        if contender.peer not in peers:
            continue
        try:
            sampler = contender.start()
            entries.append(Entry(contender, sampler, sampler.first()))
        except ModuleNotFoundError as error:
            yield Row(problem, case.title, contender.system, case.unit, note=f"{error.name} is not installed")
        except Exception as error:  # noqa: BLE001 (a contender that fails is a row of the table)
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            yield Row(problem, case.title, contender.system, case.unit, note=reason, failed=True)
    yield from compare(problem, case, entries, rounds)


def compare(problem: str, case: Case, entries: list[Entry], rounds: int | None) -> Iterator[Row]:
    """Yield the rows of contenders that ran: times if all agree, else what differs."""
    if fault := disagreement(case, entries):
        for entry in entries:
            yield Row(problem, case.title, entry.contender.system, case.unit, note=f"not timed: {fault}", failed=True)
        return
    times = interleaved(entries, rounds or case.rounds)
    medians = {system: statistics.median(samples) for system, samples in times.items()}
    for entry in entries:
        system, samples = entry.contender.system, times[entry.contender.system]
        yield Row(
            problem,
            case.title,
            system,
            case.unit,
            median=medians[system],
            spread=spread(samples),
            ratio=medians[system] / next(iter(medians.values())),
            first=entry.reading.seconds,
            least=min(samples),
            peer=entry.contender.peer,
            note="; ".join(filter(None, (entry.reading.note, remark(case, system, medians)))),
        )


def interleaved(entries: list[Entry], rounds: int) -> dict[str, list[float]]:
    """Return each system's samples, taken in turn so that a busy moment of the machine touches all alike."""
    times: dict[str, list[float]] = {entry.contender.system: [] for entry in entries}
    with no_garbage_collection():
        for _ in range(rounds):
            for entry in entries:
                times[entry.contender.system].append(entry.sampler.sample())
            gc.collect()
    return times


@contextmanager
def no_garbage_collection() -> Generator[None]:
    """Keep the collector from running inside a sample, and from looking through what is older between two."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


def spread(samples: list[float]) -> float:
    """Return half the distance between the quartiles, relative to the median."""
    if len(samples) == 1:
        return 0.0
    low, middle, high = statistics.quantiles(samples, n=4)
    return (high - low) / 2 / middle


def remark(case: Case, system: str, medians: Mapping[str, float]) -> str:
    """Return what the case wants said of a time: its distance from the baseline, its share per thing."""
    if case.baseline in medians and case.baseline != system:
        return f"{(medians[system] - medians[case.baseline]) * 1e3:+.0f} ms over {case.baseline}"
    if case.per:
        count, thing = case.per
        return f"{medians[system] / count * 1e6:.2f} µs a {thing}"
    return ""


def disagreement(case: Case, entries: list[Entry]) -> str:
    """Return how the first contender's result differs from another's, or nothing."""
    for entry in entries[1:]:
        if entry.reading.result is None:  # of a contender that computes nothing
            continue
        if fault := difference(leaves(entries[0].reading.result), leaves(entry.reading.result), case.tolerance):
            return f"{entry.contender.system} and {entries[0].contender.system} differ: {fault}"
    return ""


def difference(ours: list[np.ndarray], theirs: list[np.ndarray], tolerance: float) -> str:
    """Return the first difference in number, shape, dtype or value of two lists of arrays, or nothing."""
    if len(ours) != len(theirs):
        return f"{len(theirs)} arrays, not {len(ours)}"
    for index, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            return f"array {index} is {b.dtype}{list(b.shape)}, not {a.dtype}{list(a.shape)}"
        wide = np.result_type(a, np.int8)  # booleans have no difference
        error, scale = np.max(np.abs(a.astype(wide) - b), initial=0), np.max(np.abs(a), initial=0)
        if not error <= tolerance * scale:
            return f"array {index} by {error:.2e} where the largest element is {scale:.2e} (tolerance {tolerance:.0e})"
    return ""


def leaves(result: Any) -> list[np.ndarray]:
    """Return the arrays of nested dictionaries (by sorted key), tuples and lists."""
    if isinstance(result, Mapping):
        return [leaf for key in sorted(result) for leaf in leaves(result[key])]
    if isinstance(result, tuple | list):
        return [leaf for item in result for leaf in leaves(item)]
    return [np.asarray(result)]
