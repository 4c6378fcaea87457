"""The command line: options, output and errors.

The exit status is 0 on success, 1 where a check fails, and 2 on wrong input, with one line on standard error that says
why.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import fnad
from fnad import config
from fnad.api.inspect.stages import STAGES
from fnad.cli import cache, doctor, ops, reports
from fnad.cli.dump import CONVERTED, Request, dump
from fnad.cli.lint import lint
from fnad.cli.reports import FORMS, Answer
from fnad.cli.usage import UsageError
from fnad.trace.meters import counting

DUMP = """\
Print a function, or a derivative of it, at one stage of its compilation:

  converted    the source that is traced, with a hook at each call and read
  traced       the function as a program
  transformed  the derivative as a program
  simplified   the same after simplification: what is lowered
  loops        the loop nests it becomes
  source       the Python source that is compiled
  llvm, asm    what Numba and LLVM make of that
  ptx, sass    what LLVM and NVIDIA's assembler make of it, with --device cuda
"""
DUMP_EXAMPLE = """\
examples:
  fnad dump model.py:loss --args 'f64[3], {"W": f32[4,5], "b": f32[5]}'
  fnad dump model.py:loss --args 'f64[1000], float' --grad --argnums 0 --stage source
  fnad dump package.model:loss --values 'np.linspace(0, 1, 5), scale=2.0' --value-and-grad
  fnad dump model.py:loss --args 'f32[1000,1000]' --grad --device cuda --stage ptx
  fnad dump model.py:loss --values '*EXAMPLE'     (with EXAMPLE = np.ones(3), 2.0 in model.py)
"""
EXPLAIN = """\
Say what a trace of a function, or of its gradient, finds: what is traced and what captured from outside, the writes
that copy an array, what Python decides by, what cannot be compared at later calls, operations, and the loops that were
found again, or why not. With --device cuda also the launches, with the bytes that they move, registers and occupancy.
"""
EXPLAIN_EXAMPLE = """\
examples:
  fnad explain model.py:loss --args 'f64[3], {"W": f32[4,5], "b": f32[5]}' --memory --plot memory.png
  fnad explain package.model:loss --values 'np.linspace(0, 1, 5), scale=2.0' --value-and-grad
"""
CHECK = """\
Check the derivatives of a function, at a point, near it and at boundary points: forward mode against a complex step or
differences, reverse against forward mode, second derivatives, vmap against a loop, native code against the interpreter,
f32 against f64. Prints a table, and what is to blame where a comparison fails; the exit status is then 1.
With --args the point is drawn at random, floats between 0.5 and 1.5 with either sign; integers are 1.
"""
CHECK_EXAMPLE = """\
examples:
  fnad check model.py:loss --args 'f64[3], {"W": f32[4,5], "b": f32[5]}'
  fnad check package.model:loss --values 'np.linspace(0, 1, 5), scale=2.0'
"""
LINT = """\
Find roots, logarithms, divisions, powers and inverse functions of which nothing in the program says that their operand
stays away from the points where they, or their derivative, are not finite. Nothing is computed; the arguments may have
any values. Prints the line, why, and the way out; the exit status is 1 if anything is found.
"""
LINT_EXAMPLE = """\
examples:
  fnad lint model.py:loss --args 'f64[3], {"W": f32[4,5], "b": f32[5]}'
  fnad lint package.model:loss --values 'np.linspace(0, 1, 5), scale=2.0'   (on the path that these take)
"""
EXPORT = """\
Write a function, or a derivative, to files that need nothing of fnad: C, an object file, or a Python module. Prints the
declaration in C and the files. Arguments and results are arrays of the given types, in C order; pytrees have a
parameter a leaf. With --njit, write a module for Numba code, which needs fnad and takes the arguments of the function.
"""
EXPORT_EXAMPLE = """\
examples:
  fnad export model.py:loss --args 'f64[3], {"W": f32[4,5], "b": f32[5]}' --grad --c -o gradient.c
  fnad export package.model:loss --values 'np.linspace(0, 1, 5), scale=2.0' --value-and-grad --object -o loss.o
  fnad export model.py:loss --args 'f64[n]' --grad --njit -o slope.py    (then, in @njit code: slope.loss_grad(x))
"""
VIEW = """\
Write a page that shows what became of a function: its source, its program, its derivative and its kernels side by side,
linked by lines. The page is one file, for any browser.
"""
VIEW_EXAMPLE = """\
examples:
  fnad view model.py:loss --args 'f64[3], {"W": f32[4,5], "b": f32[5]}' --value-and-grad -o loss.html
"""
PROFILE = """\
Run a function, or its gradient, again and again for a second or more, and say how much of the time in native code each
line of user code takes: in the values it computes, and in their derivatives. On Linux, x86-64 and ARM64.
With --args the arguments are drawn at random, floats between 0.5 and 1.5 with either sign; integers are 1.
"""
PROFILE_EXAMPLE = """\
examples:
  fnad profile model.py:loss --args 'f64[1000], {"W": f32[400,500], "b": f32[500]}' --value-and-grad
"""
OPS = """\
List the primitives of the language that functions are traced to, or describe one of them:
its derivative, its lowering, the dtypes it takes, and its forward and reverse mode as programs.
"""
CACHE = """\
Look after the cache on disk, in which native code is kept for later processes:

  show   where it is, how much it holds, and which versions of fnad made that
  check  read every entry and remove those that are damaged; the exit status is 1 if there are any
  clear  remove everything
"""
DOCTOR = "Say what fnad stands on here: versions, CPU, vector math, BLAS, threads, cache."
ARGS = """the types of the arguments: arrays such as f64[3,4], i32[], bool[7]; Python numbers float, int, bool, complex;
None; dicts, lists and tuples of these; fnad export takes a name for a size that stays open: f64[n,3]"""
VALUES = """the arguments themselves, for a function that decides by their values: what stands between the parentheses
of a call in Python, where np and the names of the file are known"""
MODES = {
    "grad": "the gradient",
    "value_and_grad": "the value and the gradient",
    "vjp": "the two programs that run: forward, whose last results are the residuals, and the pullback of cotangents",
    "jvp": "the results and their tangents, where the tangents of the arguments follow the inputs",
}
OF_A_SCALAR = {mode: MODES[mode] for mode in ("grad", "value_and_grad")}
EXPORT_MODES = {
    **OF_A_SCALAR,
    "vjp": "the results and the cotangents of arguments, where the cotangent of the results follows the arguments",
    "jvp": MODES["jvp"],
    "jacobian": "the Jacobian",
}


def run(argv: Sequence[str] | None) -> int:
    """Run the command with these arguments; return the exit status."""
    try:
        request = _parser().parse_args(argv)
        with counting([f"fnad {request.command}"], [[0, -1]]):
            text, status = request.answer(request)
        _write(f"{text}\n")
    except UsageError as error:
        return _failed(str(error), 2)
    except BrokenPipeError:  # the reader has closed the pipe, as `head` does
        _drop_output()
        return 0
    except WriteError as error:
        _drop_output()
        return _failed(f"the output cannot be written: {error}", 2)
    return status


def _failed(message: str, status: int) -> int:
    if sys.stderr is not None:
        print(f"fnad: {message}", file=sys.stderr)
    return status


class WriteError(Exception):
    """The output of a command cannot be written; the message says why."""


def _write(text: str) -> None:
    """Print a text, with question marks for characters that the terminal lacks."""
    if sys.stdout is None:
        raise WriteError("standard output is closed")
    encoding = sys.stdout.encoding or "utf-8"
    try:
        print(text.encode(encoding, "replace").decode(encoding), end="", flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise WriteError(error.strerror) from None


def _drop_output() -> None:
    """Let Python write to nowhere what is left in its buffer when it ends."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _CommandParser(ArgumentParser):
    """A parser whose error messages are one line, and whose help is written as answers are."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"fnad: {message}; see {self.prog} --help\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        if file is sys.stderr:
            super()._print_message(message, file)
        else:
            _write(message)


def _parser() -> ArgumentParser:
    parser = _CommandParser(prog="fnad", description="Differentiate NumPy functions and compile them: a look inside.")
    parser.add_argument("--version", action="version", version=f"fnad {fnad.__version__}")
    parser.set_defaults(answer=lambda _: (parser.format_help().rstrip(), 0), command="")
    commands = parser.add_subparsers(metavar="{dump,explain,check,lint,export,view,profile,ops,cache,doctor}")
    _add_commands_on_calls(commands)
    of_ops = _add(commands, "ops", _ops, "list the primitives, or describe one", OPS, "example:\n  fnad ops tanh")
    of_ops.add_argument("name", metavar="NAME", nargs="?", help="the primitive to describe")
    of_cache = _add(
        commands, "cache", _cache, "show, check or clear the cache on disk", CACHE, "example:\n  fnad cache show"
    )
    of_cache.add_argument("action", choices=("show", "check", "clear"), nargs="?", default="show")
    _add(commands, "doctor", _doctor, "say what fnad stands on here", DOCTOR, "example:\n  fnad doctor")
    return parser


def _add(commands: Any, name: str, answer: Callable[..., Answer], use: str, description: str, example: str) -> Any:
    """The parser of a command."""
    parser = commands.add_parser(
        name, help=use, description=description, epilog=example, formatter_class=RawDescriptionHelpFormatter
    )
    parser.set_defaults(answer=answer, command=name)
    return parser


def _add_commands_on_calls(commands: Any) -> None:
    def add(name: str, answer: Callable[..., Answer], use: str, *texts: str, **modes: Any) -> Any:
        parser = _add(commands, name, answer, use, *texts)
        _add_call(parser, **modes)
        return parser

    dump = add(
        "dump", _dump, "print a function at one stage of its compilation", DUMP, DUMP_EXAMPLE, modes=MODES, which=ALL
    )
    dump.add_argument(
        "--stage", choices=(CONVERTED, *STAGES), default="simplified", help="the stage, by default simplified"
    )
    _add_device(dump)
    use = "say what a trace of a function finds"
    explain = add("explain", reports.explain, use, EXPLAIN, EXPLAIN_EXAMPLE, modes=OF_A_SCALAR)
    explain.add_argument("--memory", action="store_true", help="list what vjp keeps for the pullback, with its bytes")
    explain.add_argument("--plot", metavar="PATH", help="with --memory: draw the live arrays over time")
    explain.add_argument("--force", action="store_true", help="replace a plot that is there")
    _add_device(explain)
    use = "check the derivatives of a function in every way they may be computed"
    add("check", reports.check, use, CHECK, CHECK_EXAMPLE)
    add("lint", _lint, "find operations that can reach a point where they are singular", LINT, LINT_EXAMPLE)
    use = "write a function to C, an object file or Python, to be used outside of fnad"
    export = add("export", reports.export, use, EXPORT, EXPORT_EXAMPLE, modes=EXPORT_MODES, which=ALL)
    forms = export.add_mutually_exclusive_group(required=True)
    for form, meaning in FORMS.items():
        forms.add_argument(f"--{form}", dest="form", action="store_const", const=form, help=meaning)
    export.add_argument("--blas", action="store_true", help="have the C source call CBLAS and LAPACKE")
    _add_output(export)
    use = "write a page that shows what became of a function"
    view = add("view", reports.view, use, VIEW, VIEW_EXAMPLE, modes=OF_A_SCALAR)
    view.add_argument("--profile", action="store_true", help="run it, and show the time of each line")
    _add_output(view)
    use = "say how much native time each line of a function takes"
    add("profile", reports.profile, use, PROFILE, PROFILE_EXAMPLE, modes=OF_A_SCALAR)


FIRST = "the arguments to differentiate in, from 0; by default 0"
ALL = f"{FIRST}, and with --vjp and --jvp all"


def _add_call(parser: ArgumentParser, *, modes: dict[str, str] | None = None, which: str = FIRST) -> None:
    """Add the options for a call, and those for the derivatives of these modes."""
    parser.add_argument(
        "target",
        metavar="FILE:FUNCTION",
        help="a function of a Python file, as in model.py:loss, or of a module, as in package.model:loss",
    )
    arguments = parser.add_mutually_exclusive_group()
    arguments.add_argument("--args", metavar="TYPES", default="", help=ARGS)
    arguments.add_argument("--values", metavar="VALUES", help=VALUES)
    if modes is None:
        return
    derivatives = parser.add_mutually_exclusive_group()
    for mode, meaning in modes.items():
        flag = f"--{mode.replace('_', '-')}"
        derivatives.add_argument(flag, dest="mode", action="store_const", const=mode, help=meaning)
    parser.add_argument("--argnums", type=_argnums, metavar="N[,N…]", help=which)


def _add_device(parser: ArgumentParser) -> None:
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where it is to run, by default cpu")


def _add_output(parser: ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="PATH", required=True, help="the file to write")
    parser.add_argument("--force", action="store_true", help="replace files that are there")


def _argnums(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ArgumentTypeError(f"{text} is no argument number such as 0, nor several such as 0,2") from None


# ---- answers -----------------------------------------------------------------------------------------------------


def _dump(request: Namespace) -> Answer:
    asked = Request(request.target, request.args, request.mode, request.argnums, request.stage, request.values)
    with config.on(request.device):
        return dump(asked), 0


def _lint(request: Namespace) -> Answer:
    text, found = lint(request.target, request.args, request.values)
    return text, 1 if found else 0


def _ops(request: Namespace) -> Answer:
    return (ops.list_primitives() if request.name is None else ops.describe_primitive(request.name)), 0


def _cache(request: Namespace) -> Answer:
    match request.action:
        case "check":
            return cache.check()
        case "clear":
            return cache.clear(), 0
        case _:
            return cache.show(), 0


def _doctor(_: Namespace) -> Answer:
    return doctor.report(), 0
