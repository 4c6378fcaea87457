"""The command, from its arguments to what it prints and its exit status."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fnad.cli import main
from fnad.ir.parser import parse_program
from fnad.ir.primitive import PRIMITIVES

MODEL = str(Path(__file__).with_name("model.py"))


@pytest.fixture
def fnad(capsys: pytest.CaptureFixture[str]):
    """Return `run(*arguments)`, which runs the command and returns what it printed."""

    def run(*arguments: str) -> str:
        assert main(arguments) == 0
        return capsys.readouterr().out

    return run


@pytest.fixture
def refusal(capsys: pytest.CaptureFixture[str]):
    """Return `run(*arguments)`, which runs the command and returns the one line it refuses with."""

    def run(*arguments: str) -> str:
        try:
            status = main(arguments)
        except SystemExit as exit_:
            status = exit_.code
        captured = capsys.readouterr()
        assert (status, captured.out) == (2, "")
        (line,) = captured.err.splitlines()
        assert line.startswith("fnad: ")
        return line.removeprefix("fnad: ")

    return run


# ---- dump --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [[], ["--grad"], ["--value-and-grad"], ["--vjp"], ["--jvp"]])
@pytest.mark.parametrize("stage", ["traced", "transformed", "simplified"])
def test_programs_parse_back(fnad, mode: list[str], stage: str) -> None:
    text = fnad("dump", f"{MODEL}:loss", "--args", "f64[3]", *mode, "--stage", stage)
    assert parse_program(text).name == "loss"


@pytest.mark.parametrize("mode", [[], ["--grad"], ["--jvp"]])
@pytest.mark.parametrize("stage", ["traced", "simplified", "loops", "source"])
def test_a_function_that_fills_an_array_of_numpys(fnad, mode: list[str], stage: str) -> None:
    text = fnad("dump", f"{MODEL}:filled", "--args", "{start: f64[], factors: f64[3], n: int}", *mode, "--stage", stage)
    assert "filled" in text or stage == "source"
    assert "mul" in text or "*" in text


def test_branches_need_values(refusal) -> None:
    said = refusal("dump", f"{MODEL}:branches", "--args", "f64[]")
    assert said.startswith(
        "branches decides by the values of its arguments, of which --args gives the types, at model.py"
    )


@pytest.mark.parametrize("stage", ["loops", "source", "llvm", "asm"])
def test_stages_of_the_backend(fnad, stage: str) -> None:
    text = fnad("dump", f"{MODEL}:loss", "--args", "f64[3]", "--grad", "--stage", stage)
    assert {"loops": "for i0 < 3", "source": "def ", "llvm": "define", "asm": ".globl"}[stage] in text


def test_the_source_lines_are_told(fnad) -> None:
    assert "# model.py:9 in loss:  return np.sum(np.sin(x) * x)" in fnad("dump", f"{MODEL}:loss", "--args", "f64[3]")


def test_pytrees_and_argnums(fnad) -> None:
    types = 'f32[2,4], {"W": f32[4,5], "b": f32[5]}'
    signature = fnad("dump", f"{MODEL}:layer", "--args", types, "--vjp", "--argnums", "1").splitlines()[0]
    assert signature == "layer(a: f32[2,4], b: f32[4,5], c: f32[5], d: f32[2,5]) -> f32[2,5], f32[4,5], f32[5] {"


def test_python_numbers_do_not_promote(fnad) -> None:
    text = fnad("dump", f"{MODEL}:Model.square", "--args", "float", "--jvp")
    assert text.splitlines()[0] == "square(a: f64[], b: f64[]) -> f64[], f64[] {"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.py:f"], "no such file: nowhere.py"),
        (["model.py"], "model.py is not FILE:FUNCTION, as in model.py:loss"),
        ([f"{MODEL}:nothing"], f"there is no nothing in {MODEL}"),
        ([f"{MODEL}:NUMBER"], f"NUMBER in {MODEL} is int, not a function"),
        ([f"{MODEL}:loss", "--args", "f64"], "--args 1:1: f64 lacks a shape: f64[] for a scalar, f64[3] for a vector"),
        ([f"{MODEL}:loss"], "--args does not fit loss: missing a required argument: 'x'"),
        ([f"{MODEL}:loss", "--args", "i64[3]", "--grad"], "x has i64[3], which has no derivative"),
        ([f"{MODEL}:loss", "--args", "f64[3]", "--grad", "--argnums", "1"], "--argnums names argument 1, --args has 1"),
        (
            [f"{MODEL}:loss", "--args", "f64[3]", "--argnums", "x"],
            "argument --argnums: x is no argument number such as",
        ),
        (
            [f"{MODEL}:loss", "--args", "f64[3]", "--argnums", "0"],
            "--argnums says in what to differentiate: add --grad",
        ),
        ([f"{MODEL}:loss", "--args", "f64[3]", "--vjp", "--argnums", "0,-1"], "--argnums names an argument twice"),
        ([f"{MODEL}:loss", "--args", f"f64[{10**20}]"], "--args has an array that NumPy cannot have: "),
        ([f"{MODEL}:loss", "--stage", "x"], "argument --stage: invalid choice: 'x' (choose from"),
        ([f"{MODEL}:loss", "--grad", "--vjp"], "argument --vjp: not allowed with argument --grad"),
        ([f"{MODEL}:Model.square", "--args", "f64[3]", "--grad"], "square returned f64[3], where grad takes one real"),
        ([f"{MODEL}:escapes", "--args", "f64[]"], "float"),
        ([f"{MODEL}:loss", "--args", "[" * 9999], "--args 1:101: containers are nested more than 100 deep"),
        ([f"{MODEL}:loss", "--args", "(" * 9999 + "f64[3]" + ")" * 9999], "--args 1:101: containers are nested more"),
        ([f"{MODEL}:loss", "--args", '{"a": ' * 9999], "--args 1:601: containers are nested more than 100 deep"),
        ([f"{MODEL}:later", "--args", "f64[3]"], f"later in {MODEL} is a coroutine function, which returns no arrays"),
        ([f"{MODEL}:raises", "--args", "f64[3]"], f"{MODEL}:21 raised ZeroDivisionError: "),
    ],
)
@pytest.mark.filterwarnings("error")
def test_refusals_are_one_line(refusal, arguments: list[str], message: str) -> None:
    assert message in refusal("dump", *arguments)


def test_an_escape_names_the_line(refusal) -> None:
    assert "model.py:17 in escapes:  return float(x)" in refusal("dump", f"{MODEL}:escapes", "--args", "f64[]")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\nraise ValueError('no\\nway')\n", "{file}:2 raised ValueError: no; way"),
        ("def f(:\n", "{file}:1 raised SyntaxError: "),
        ("x = 1\n\0", "{file}:1 raised SyntaxError: source code string cannot contain null bytes"),
        ("import sys\nsys.exit(3)\n", "{file}:2 raised SystemExit: 3"),
        ("import no_such_module_anywhere\n", "{file}:1 raised ModuleNotFoundError: No module named"),
    ],
)
def test_a_file_that_raises_on_import(refusal, tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "broken.py"
    file.write_text(text)
    assert refusal("dump", f"{file}:f").startswith(message.format(file=file))


def test_a_file_imports_its_neighbours(fnad, tmp_path: Path) -> None:
    (tmp_path / "neighbour_of_main.py").write_text("def double(x):\n    return 2 * x\n")
    file = tmp_path / "main.py"
    file.write_text("from neighbour_of_main import double\n\ndef f(x):\n    return double(x)\n")
    assert "neighbour_of_main.py:2 in double" in fnad("dump", f"{file}:f", "--args", "f64[3]")


# ---- ops and doctor ----------------------------------------------------------------------------------------------


def test_every_primitive_is_listed(fnad) -> None:
    lines = fnad("ops").splitlines()
    assert lines[0].split() == ["name", "derivative", "lowering", "dtypes", "meaning"]
    assert [line.split()[0] for line in lines[1:]] == list(PRIMITIVES)


@pytest.mark.slow
def test_every_primitive_is_described(fnad) -> None:
    for name, primitive in PRIMITIVES.items():
        assert fnad("ops", name).startswith(f"{name}: {primitive.doc}\n")


def test_a_description_has_the_derivatives(fnad, golden) -> None:
    golden("ops_sin", fnad("ops", "sin"))


def test_a_primitive_that_is_not_there(refusal) -> None:
    assert refusal("ops", "tanhh") == "there is no primitive tanhh; is it tanh?"


def test_the_doctor_reports(fnad) -> None:
    report = dict(line.split(maxsplit=1) for line in fnad("doctor").splitlines())
    assert {"python", "fnad", "numpy", "numba", "llvmlite", "scipy", "optree", "CPU", "vector", "BLAS"} <= set(report)
    assert report["native"].endswith("s and is right")
    assert report["cache"] == "none on disk: compiled programs live in memory"


# ---- the process -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [[], ["--help"], ["dump", "--help"], ["ops", "--help"], ["doctor", "--help"]])
def test_help(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == (0 if arguments else 2)
    assert "example" in capsys.readouterr().out or arguments in ([], ["--help"])


def test_a_reader_that_leaves_early() -> None:
    command = f"{sys.executable} -m fnad ops | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("name")
    assert done.stderr == ""
