"""One run of the benchmarks: choose problems and peers, measure, print the table and write it where asked."""

import argparse
import importlib
import json
import pkgutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks import gpu, machine, problems, table
from benchmarks.case import ALWAYS, PEERS
from benchmarks.measure import Row, rows
from fnad.backends.cuda import driver

PATIENCE = 180
"""The seconds that a problem on a GPU may take where there are others."""

PROBLEMS = sorted(module.name for module in pkgutil.iter_modules(problems.__path__))


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the command line, parsed."""
    parser = argparse.ArgumentParser("python -m benchmarks", description="Measure fnad beside its peers, on one core.")
    parser.epilog = "--two-cores: on two; --report: the field's problems on one and on two, into benchmarks/RESULTS.md."
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"problems, of {', '.join(PROBLEMS)} (default: all)")
    parser.add_argument("--peers", type=chosen_peers, default=set(PEERS), help="of jax,torch,autograd,numba (all)")
    parser.add_argument("--only", default="", metavar="TEXT", help="the cases whose titles contain a text")
    parser.add_argument("--rounds", type=positive, help="samples of each system (default: as the case says)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table as JSON")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table as Markdown")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where they run (default: cpu)")
    parser.add_argument("--minutes", type=float, default=9, help="after which cases on a GPU are left out (9)")
    parser.add_argument("--elements", type=positive, default=gpu.ELEMENTS, help="of arrays on the GPU (default: 1e8)")
    chosen = parser.parse_args(argv)
    there = PROBLEMS if chosen.device == "cpu" else gpu.PROBLEMS
    if unknown := sorted(set(chosen.names) - set(there)):
        parser.error(f"no problem named {', '.join(unknown)}; there are {', '.join(there)}")
    return chosen


def positive(text: str) -> int:
    """Return a positive integer from the command line."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive integer")
    return int(text)


def chosen_peers(text: str) -> set[str]:
    """Return what is always measured and the peers of a comma-separated list."""
    peers = set(filter(None, text.split(",")))
    if unknown := sorted(peers - set(PEERS)):
        raise argparse.ArgumentTypeError(f"no peer named {', '.join(unknown)}; there are {', '.join(PEERS)}")
    return peers | ALWAYS


def measured(names: Sequence[str], peers: set[str], rounds: int | None, only: str = "") -> list[Row]:
    """Return the rows of the named problems, telling on stderr what is being measured."""
    table_rows: list[Row] = []
    for name in names:
        for case in importlib.import_module(f"benchmarks.problems.{name}").cases():
            if only in case.title:
                print(f"{name}: {case.title} ...", file=sys.stderr, flush=True)
                table_rows.extend(rows(name, case, peers, rounds))
    return table_rows


def measured_on_device(names: Sequence[str], chosen: argparse.Namespace, about: Mapping[str, str]) -> list[Row]:
    """Return the rows of problems for a GPU, each written as soon as it is there."""
    table_rows: list[Row] = []
    end = time.monotonic() + 60 * chosen.minutes
    for name in names:
        left = end - time.monotonic()
        if len(names) > 1 and left > 0:
            table_rows.extend(in_process(name, chosen, min(left, PATIENCE)))
            write(table_rows, about, chosen)
            continue
        for case in gpu.PROBLEMS[name](chosen.elements):
            if time.monotonic() > end:
                note = f"left out: {chosen.minutes:g} minutes are over"
                table_rows.append(Row(name, case.title, "", case.unit, note=note, failed=True))
                continue
            print(f"{name}: {case.title} ...", file=sys.stderr, flush=True)
            table_rows.extend(rows(name, case, chosen.peers | {"cupy"}, chosen.rounds))
            write(table_rows, about, chosen)
            gpu.free()
    return table_rows


def in_process(name: str, chosen: argparse.Namespace, seconds: float) -> Iterator[Row]:
    """Yield the rows of a problem from a process of its own, which has so many seconds.

    After an illegal access a process cannot use its GPU any more, and what hangs hangs there: others are measured all
    the same.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "rows.json")
        options = ["--elements", str(chosen.elements), "--peers", ",".join(chosen.peers - ALWAYS), "--json", str(file)]
        options += ["--rounds", str(chosen.rounds)] if chosen.rounds else []
        command = [sys.executable, "-m", "benchmarks.session", "--device", "cuda", *options, name]
        try:
            status = subprocess.run(command, stdout=subprocess.DEVNULL, timeout=seconds, check=False).returncode
            note = f"the process ended with status {status}" if status not in (0, 1) or not file.exists() else ""
        except subprocess.TimeoutExpired:
            note = f"stopped after {seconds:.0f} s"
        if file.exists():
            yield from (Row(**row) for row in json.loads(file.read_text(encoding="utf-8"))["rows"])
    if note:
        yield Row(name, "", "", "s", note=note, failed=True)


def write(table_rows: list[Row], about: Mapping[str, str], chosen: argparse.Namespace) -> None:
    """Write the table where it is asked for."""
    if chosen.json:
        chosen.json.write_text(table.as_json(table_rows, about), encoding="utf-8")
    if chosen.markdown:
        chosen.markdown.write_text(table.markdown(table_rows, about), encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the session; the status is 1 if a contender failed, results differ, or no GPU is there."""
    chosen = arguments(argv)
    about = machine.describe()
    if chosen.device == "cuda" and (reason := gpu.absence()):
        print(reason, file=sys.stderr)
        return 1
    if chosen.device == "cpu":
        table_rows = measured(chosen.names or PROBLEMS, chosen.peers, chosen.rounds, chosen.only)
    else:
        about |= {"device": driver.current().description}
        table_rows = measured_on_device(chosen.names or list(gpu.PROBLEMS), chosen, about)
    print("\n".join(f"{name}: {text}" for name, text in about.items()), end="\n\n")
    print(table.aligned(table_rows))
    print("\n".join(["", f"behind by more than {table.NOISE}:", *table.behind(table_rows)]))
    write(table_rows, about, chosen)
    return int(any(row.failed for row in table_rows))


if __name__ == "__main__":
    sys.exit(main())
