"""The command line: options, output and errors.

The exit status is 0 on success, and 2 on wrong input, with one line on standard error that says why.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from typing import Any, NoReturn

import fnad
from fnad.api.stages import STAGES
from fnad.cli import doctor, ops
from fnad.cli.dump import Request, dump
from fnad.cli.usage import UsageError

DUMP = """\
Print a function, or a derivative of it, at one stage of its compilation:

  traced       the function as a program
  transformed  the derivative as a program
  simplified   the same after simplification: what is lowered
  loops        the loop nests it becomes
  source       the Python source that is compiled
  llvm, asm    what Numba and LLVM make of that
"""
DUMP_EXAMPLE = """\
examples:
  fnad dump model.py:loss --args 'f64[3], {"W": f32[4,5], "b": f32[5]}'
  fnad dump model.py:loss --args 'f64[1000], float' --grad --argnums 0 --stage source
  fnad dump package.model:loss --values 'np.linspace(0, 1, 5), scale=2.0' --value-and-grad
  fnad dump model.py:loss --values '*EXAMPLE'     (with EXAMPLE = np.ones(3), 2.0 in model.py)
"""
ARGS = """the types of the arguments: arrays such as f64[3,4], i32[], bool[7]; Python numbers float, int, bool, complex;
None; dicts, lists and tuples of these"""
VALUES = """the arguments themselves, for a function that decides by their values: what stands between the parentheses
of a call in Python, where np and the names of the file are known"""
MODES = {
    "grad": "the gradient",
    "value_and_grad": "the value and the gradient",
    "vjp": "the two programs that run: forward, whose last results are the residuals, and the pullback of cotangents",
    "jvp": "the results and their tangents, where the tangents of the arguments follow the inputs",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with these arguments, by default those of the process; return the exit status."""
    request = _parser().parse_args(argv)
    try:
        _write(request.answer(request))
    except UsageError as error:
        print(f"fnad: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader has closed the pipe, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _write(text: str) -> None:
    """Print a text, with question marks for characters that the terminal lacks."""
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "replace").decode(encoding), flush=True)


class _CommandParser(ArgumentParser):
    """A parser whose error messages are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"fnad: {message}; see {self.prog} --help\n")


def _parser() -> ArgumentParser:
    parser = _CommandParser(prog="fnad", description="Differentiate NumPy functions and compile them: a look inside.")
    parser.add_argument("--version", action="version", version=f"fnad {fnad.__version__}")
    commands = parser.add_subparsers(required=True, metavar="{dump,ops,doctor}")
    _add_dump(commands)
    _add_ops(commands)
    _add_doctor(commands)
    return parser


def _add_dump(commands: Any) -> None:
    parser = commands.add_parser(
        "dump",
        help="print a function at one stage of its compilation",
        description=DUMP,
        epilog=DUMP_EXAMPLE,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "target",
        metavar="FILE:FUNCTION",
        help="a function of a Python file, as in model.py:loss, or of a module, as in package.model:loss",
    )
    arguments = parser.add_mutually_exclusive_group()
    arguments.add_argument("--args", metavar="TYPES", default="", help=ARGS)
    arguments.add_argument("--values", metavar="VALUES", help=VALUES)
    modes = parser.add_mutually_exclusive_group()
    for mode, meaning in MODES.items():
        modes.add_argument(f"--{mode.replace('_', '-')}", dest="mode", action="store_const", const=mode, help=meaning)
    parser.add_argument(
        "--argnums",
        type=_argnums,
        metavar="N[,N…]",
        help="the arguments to differentiate in, from 0; by default 0, and with --vjp and --jvp all",
    )
    parser.add_argument("--stage", choices=STAGES, default="simplified", help="the stage, by default simplified")
    parser.set_defaults(answer=_dump)


def _add_ops(commands: Any) -> None:
    parser = commands.add_parser(
        "ops",
        help="list the primitives, or describe one",
        description="List the primitives of the language that functions are traced to, or describe one of them:\n"
        "its derivative, its lowering, the dtypes it takes, and its forward and reverse mode as programs.",
        epilog="example:\n  fnad ops tanh",
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="the primitive to describe")
    parser.set_defaults(answer=_ops)


def _add_doctor(commands: Any) -> None:
    parser = commands.add_parser(
        "doctor",
        help="say what fnad stands on here",
        description="Say what fnad stands on here: versions, CPU, vector math, BLAS, threading layers, cache.",
        epilog="example:\n  fnad doctor",
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.set_defaults(answer=_doctor)


def _argnums(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ArgumentTypeError(f"{text} is no argument number such as 0, nor several such as 0,2") from None


# ---- answers -----------------------------------------------------------------------------------------------------


def _dump(request: Namespace) -> str:
    return dump(Request(request.target, request.args, request.mode, request.argnums, request.stage, request.values))


def _ops(request: Namespace) -> str:
    return ops.list_primitives() if request.name is None else ops.describe_primitive(request.name)


def _doctor(_: Namespace) -> str:
    return doctor.report()
