"""The stages of a program on its way to machine code, as text; a comment above says how large it is.

Long lines of loops and of Python are broken at the blank within the fewest brackets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import TypeAlias

from fnad import config
from fnad.api.inspect.known_paths import decision_lines, decisions_of
from fnad.api.inspect.summary import loops_summary, program_summary
from fnad.backends.base import Native, current_backend
from fnad.backends.tiers import TieredProgram
from fnad.errors import LoweringError, SettingError
from fnad.ir.printer import print_annotated
from fnad.lower.printer import loops_text
from fnad.trace.capture import Guard

Part: TypeAlias = tuple[TieredProgram, Sequence[str]]
"""A program and the names of its inputs."""


def stage_text(parts: Sequence[Part], stage: str, guards: Sequence[Guard] = ()) -> str:
    """Programs that run one after the other, at a stage, below what Python was told of their values."""
    decided = [f"{COMMENTS.get(stage, '#')} decided: {line}" for line in decision_lines(decisions_of(guards))]
    return "\n".join([*decided, "\n\n".join(_part_text(part, stage) for part in parts)])


def _part_text(part: Part, stage: str) -> str:
    program, names = part
    return f"{COMMENTS.get(stage, '#')} {_summary(program, stage)}\n{STAGES[stage](program, names)}"


COMMENTS = {"llvm": ";", "ptx": "//", "sass": "//"}
"""The beginnings of comments in languages whose comments do not begin with #."""


def _summary(program: TieredProgram, stage: str) -> str:
    if stage in UNLOWERED:
        return program_summary(program.program)
    found = program_summary(program.simplified)
    with suppress(LoweringError):
        found += f", {loops_summary(current_backend().compiler.plan(program.simplified))}"
    return found


def _source(program: TieredProgram) -> str:
    return wrapped_python(current_backend().compiler.plan(program.simplified).source)


def _loops(program: TieredProgram) -> str:
    return wrapped_text(loops_text(current_backend().compiler.plan(program.simplified).loops))


def _native(program: TieredProgram) -> Native:
    if (device := config.current().device) != "cpu":
        raise SettingError(f"programs on {device!r} have no such stage", remedy="give 'source', 'ptx' or 'sass'")
    native = program.native()
    if native is None or native.is_loaded:
        native = current_backend().compiler.compile_program(program.simplified)  # which says why not
    if not native.functions:
        raise LoweringError("no native code is made of it: there is nothing to compute, or NUMBA_DISABLE_JIT is set")
    return native


def _device_code(program: TieredProgram, stage: str) -> str:
    write = getattr(current_backend().compiler, stage, None)
    if write is None:
        raise SettingError(f"the stage {stage!r} is one of programs on a GPU", remedy=ON_A_GPU)
    return write(program.simplified)


ON_A_GPU = "write fnad.jit(f, device='cuda'), or fnad dump --device cuda"

UNLOWERED = {"traced", "transformed"}

STAGES: dict[str, Callable[[TieredProgram, Sequence[str]], str]] = {
    "traced": lambda program, names: print_annotated(program.program, names),
    "transformed": lambda program, names: print_annotated(program.program, names),
    "simplified": lambda program, names: print_annotated(program.simplified, names),
    "loops": lambda program, _: _loops(program),
    "source": lambda program, _: _source(program),
    "llvm": lambda program, _: _native(program).llvm(),
    "asm": lambda program, _: _native(program).asm(),
    "ptx": lambda program, _: _device_code(program, "ptx"),
    "sass": lambda program, _: _device_code(program, "sass"),
}


# ---- long lines ------------------------------------------------------------------------------------------------------

WIDTH = 100


def wrapped_text(text: str) -> str:
    """A text whose long lines go on, further indented, on the next ones.

    >>> print(wrapped_text("out0[i0] = " + " + ".join(f"exp({n}.0 * x0[i0])" for n in range(6))))
    out0[i0] = exp(0.0 * x0[i0]) + exp(1.0 * x0[i0]) + exp(2.0 * x0[i0]) + exp(3.0 * x0[i0]) +
        exp(4.0 * x0[i0]) + exp(5.0 * x0[i0])
    """
    return "\n".join(part for line in text.split("\n") for part in _folded(line, 0))


def wrapped_python(text: str) -> str:
    """A Python source whose long lines go on within brackets, so that it stays the same; comments stay as they are.

    >>> print(wrapped_python("y = " + " + ".join(f"exp({n}.0 * x)" for n in range(9))))
    y = (
        exp(0.0 * x) + exp(1.0 * x) + exp(2.0 * x) + exp(3.0 * x) + exp(4.0 * x) + exp(5.0 * x) +
            exp(6.0 * x) + exp(7.0 * x) + exp(8.0 * x)
    )
    """
    return "\n".join(part for line in text.split("\n") for part in _statement(line))


def _statement(line: str) -> Iterator[str]:
    target, equals, value = line.partition(" = ")
    if len(line) <= WIDTH or line.lstrip().startswith("#"):
        yield line
    elif equals:
        yield f"{target} = ("
        yield from _folded(f"{_indent(line)}    {value}", 0)
        yield f"{_indent(line)})"
    else:
        yield from _folded(line, 1)


def _folded(line: str, least: int) -> Iterator[str]:
    """A line, broken where it is within `least` brackets at least."""
    depths = list(accumulate((c in "([") - (c in ")]") for c in line))
    blanks = [i for i, c in enumerate(line) if c == " " and depths[i] >= least]
    indent = f"{_indent(line)}    "
    start, margin = 0, ""
    while len(margin) + len(line) - start > WIDTH:
        end = start + WIDTH - len(margin)
        places = [i for i in blanks if start + WIDTH // 2 < i <= end]
        if not places:
            break
        place = min(places, key=lambda i: (depths[i], -i))
        yield margin + line[start:place]
        start, margin = place + 1, indent
    yield margin + line[start:]


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
