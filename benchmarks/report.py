"""`RESULTS.md` and its chart: of each case, how many times as long as fnad the peers take, and their geometric means.

A mean is that over problems of the mean over a problem's cases, so that a problem with many sizes counts once.
"""

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

PROBLEMS = ["ba", "elementwise", "gmm", "jacobians", "kmeans", "layers", "llsq", "lse", "lstm", "mlp", "ode", "rnn"]
CORES = (1, 2)
COMPARED = {"jax": "JAX", "torch": "PyTorch", "autograd": "autograd", "numba": "by hand"}
COLORS = {"jax": "#4269d0", "torch": "#ff725c", "autograd": "#9c6b4e", "numba": "#3ca951"}
FOLDER = Path(__file__).parent

Ratios = dict[tuple[str, str], dict[str, float]]
"""Of each problem and case, the median of each peer's fastest contender over that of fnad's, and fnad's in ms."""


def ratios(rows: Iterable[Mapping[str, Any]]) -> Ratios:
    """Return what the rows of a session say of the cases in which fnad was timed."""
    found: Ratios = {}
    for case, group in groupby(rows, lambda row: (row["problem"], row["case"])):
        times = [(row["peer"], row["median"]) for row in group if row["median"] is not None]
        least = {peer: min(time for name, time in times if name == peer) for peer, _ in times}
        if "fnad" in least:
            found[case] = {peer: time / least["fnad"] for peer, time in least.items()} | {"fnad": least["fnad"] * 1e3}
    return found


def mean(found: Ratios, peer: str) -> float:
    """Return the geometric mean over problems; nan where the peer was nowhere timed."""
    problems = groupby(((case[0], of[peer]) for case, of in found.items() if peer in of), lambda pair: pair[0])
    each = [statistics.geometric_mean(ratio for _, ratio in group) for _, group in problems]
    return statistics.geometric_mean(each) if each else math.nan


def write(sessions: Sequence[Mapping[str, Any]]) -> None:
    """Write the report of the sessions, which differ in their number of cores."""
    (FOLDER / "results.svg").write_text(chart(ratios(sessions[0]["rows"])), encoding="utf-8")
    lines = ["# Results", "", f"Written by `python -m benchmarks --report`. {EXPLANATION}", ""]
    lines += ["![Times relative to fnad's, on a logarithmic axis](results.svg)", ""]
    (FOLDER / "RESULTS.md").write_text("\n".join([*lines, *map(section, sessions)]), encoding="utf-8")


EXPLANATION = """Every case is a derivative, on which all contenders agree before they take turns;
medians count. A number is a system's time divided by fnad's: above 1, fnad is faster. "By hand" is the
derivative written as loops for Numba, with vector math and BLAS. First calls, spreads and remarks are what
`python -m benchmarks NAME` prints."""


def section(session: Mapping[str, Any]) -> str:
    """Return the table of a session, under machine, versions and date."""
    found = ratios(session["rows"])
    lines = [f"- {name}: {text}" for name, text in session.items() if name not in ("rows", "threads")]
    lines += ["", "| problem | case | fnad | " + " | ".join(COMPARED.values()) + " |"]
    lines += ["|---|---|--:|" + "--:|" * len(COMPARED)]
    for (problem, title), of in found.items():
        lines.append(f"| {problem} | {title} | {of['fnad']:.3g} ms | {cells(of.get(peer) for peer in COMPARED)} |")
    means = cells(mean(found, peer) for peer in COMPARED)
    lines.append(f"| **geometric mean of problems** | | | {means} |")
    return "\n".join([f"## Threads: {session['threads']}", "", *lines, "", ""])


def cells(numbers: Iterable[float | None]) -> str:
    """Return numbers as cells of a table, those below 1 in bold."""
    texts = ["" if number is None or math.isnan(number) else f"{number:.2f}" for number in numbers]
    return " | ".join(f"**{text}**" if text.startswith("0.") else text for text in texts)


WIDTH, LABELS, LINE, TOP = 960, 330, 16, 40


def chart(found: Ratios) -> str:
    """Return an SVG with a line a case, and on it a dot a peer, at its time relative to fnad's."""
    numbers = [of[peer] for of in found.values() for peer in COMPARED if peer in of]
    low, high = math.floor(math.log10(min([*numbers, 1]))), math.ceil(math.log10(max([*numbers, 10])))
    height = TOP + LINE * (len(found) + 1)

    def at(ratio: float) -> float:
        return LABELS + (WIDTH - LABELS - 20) * (math.log10(ratio) - low) / (high - low)

    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">',
            '<rect width="100%" height="100%" fill="white"/>',
            *legend(),
            *(line for power in range(low, high + 1) for line in tick(at(10.0**power), 10.0**power, height)),
            *(
                line
                for row, (case, of) in enumerate(found.items())
                for line in dots(TOP + LINE * (row + 1), case, of, at)
            ),
            "</svg>",
        ]
    )


def text(x: float, y: float, words: str, rest: str = "") -> str:
    escaped = words.replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="11" {rest}>{escaped}</text>'


def legend() -> Iterator[str]:
    for place, (peer, name) in enumerate(COMPARED.items()):
        yield f'<circle cx="{LABELS + 10 + 90 * place}" cy="10" r="4" fill="{COLORS[peer]}"/>'
        yield text(LABELS + 18 + 90 * place, 14, name)
    yield text(LABELS + 10 + 90 * len(COMPARED), 14, "time relative to fnad's: right of 1, fnad is faster")


def tick(x: float, value: float, height: int) -> Iterator[str]:
    yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{height}" stroke="{"black" if value == 1 else "#ddd"}"/>'
    yield text(x, TOP - 6, f"{value:g}", 'text-anchor="middle"')


def dots(y: int, case: tuple[str, str], of: Mapping[str, float], at: Any) -> Iterator[str]:
    yield text(LABELS - 8, y + 4, ": ".join(case), 'text-anchor="end"')
    for peer, color in COLORS.items():
        if peer in of:
            title = f"<title>{of[peer]:.2f}</title>"
            yield f'<circle cx="{at(of[peer]):.1f}" cy="{y}" r="4" fill="{color}">{title}</circle>'
