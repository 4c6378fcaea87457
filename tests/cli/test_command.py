"""The command, from its arguments to what it prints and its exit status."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fnad.backends.cuda import libdevice, offers
from fnad.cli import main
from fnad.ir.parser import parse_program
from fnad.ir.primitive import PRIMITIVES
from fnad.trace.hooks import HOOKS
from tests.cli import model

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
    names = [parse_program(part).name for part in text.split("\n\n")]
    assert names == (["loss", "loss_pullback"] if mode == ["--vjp"] and stage != "traced" else ["loss"])


CONVERTED = """\
def filled(x):
    \"""Return the running products, written into an array that NumPy makes.\"""
    HOOKS.enters({'np': 'read', 'range': 'read'})
    products = HOOKS.filled(HOOKS.method(np, 'zeros'), ('i', 'np', 'products', 'x'))(3)
    HOOKS.place(products)[0] = HOOKS.item(x, 'start')
    for i in HOOKS.each(HOOKS.callee(range)(1, 3), (46, 4, 46, 47, (), ())):
        HOOKS.place(products)[i] = HOOKS.operand(HOOKS.item(products, i - 1)) * HOOKS.item(HOOKS.item(x, 'factors'), i)
    return HOOKS.method(np, 'sum')(products)
"""


def test_the_source_that_is_traced(fnad) -> None:
    assert fnad("dump", f"{MODEL}:filled", "--stage", "converted") == CONVERTED


POINT = np.array([1.0, 2.0, 4.0])


@pytest.mark.parametrize(
    ("name", "args", "value"),
    [
        ("loss", (POINT,), model.loss(POINT)),
        ("halved", (5.0,), 0.625),
        ("Model.square", (3.0,), 9.0),
        ("root", (POINT,), 7.0**0.5),
        ("cube", (POINT,), 7.0**3),
        ("with_scale", (POINT, 2.0), 42.0),
        ("Counted.norm", (model.Counted(), POINT), 21.0**0.5),
        ("norm", (model.Counted(), POINT), 21.0**0.5),
    ],
)
def test_the_source_with_hooks_computes_the_same(fnad, name: str, args: tuple[Any, ...], value: float) -> None:
    text = fnad("dump", f"{MODEL}:{name}", "--stage", "converted")
    assert "HOOKS." in text
    namespace = {**vars(model), "HOOKS": HOOKS}
    exec(f"found = {text}" if text.startswith("lambda") else f"{text}\nfound = {text[4 : text.index('(')]}", namespace)
    assert namespace["found"](*args) == value


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (f"{MODEL}:doubled", "doubled runs without hooks: its source is not there, or is not what runs"),
        (f"{MODEL}:total", "total is in a library, whose code is not converted: "),
        ("math:exp", "exp is not a Python function, so nothing of it is converted"),
        (f"{MODEL}:Model", "Model is not a Python function, so nothing of it is converted"),
    ],
)
def test_functions_that_are_not_converted(refusal, target: str, message: str) -> None:
    assert refusal("dump", target, "--stage", "converted").startswith(message)


def test_both_programs_of_vjp_are_shown_with_the_residuals_under_one_name(fnad) -> None:
    lines = fnad("dump", f"{MODEL}:loss", "--args", "f64[3]", "--vjp").splitlines()
    assert lines[0] == "# loss: 4 equations, 1 nest, 12 flops, 104 bytes"
    assert "loss(x: f64[3]) -> f64[], f64[3], f64[3], f64[3] {" in lines
    assert "  return c, x, a, d" in lines
    assert "loss_pullback(x: f64[3], a: f64[3], d: f64[3], ct: f64[]) -> f64[3] {" in lines


@pytest.mark.parametrize("mode", [[], ["--grad"], ["--jvp"]])
@pytest.mark.parametrize("stage", ["traced", "simplified", "loops", "source"])
def test_a_function_that_fills_an_array_of_numpys(fnad, mode: list[str], stage: str) -> None:
    text = fnad("dump", f"{MODEL}:filled", "--args", "{start: f64[], factors: f64[3], n: int}", *mode, "--stage", stage)
    assert "filled" in text or stage == "source"
    assert "mul" in text or "*" in text


def test_branches_need_values(refusal, fnad) -> None:
    said = refusal("dump", f"{MODEL}:branches", "--args", "f64[]")
    assert said == (
        "branches decides by the values of its arguments, of which --args gives the types, at model.py:39 in branches: "
        " return x if x > 0 else -x; give values, with --values"
    )
    for x, answer in ((1.5, 1), (-2.0, -1)):
        text = fnad("dump", f"{MODEL}:branches", "--values", f"x={x}", "--stage", "simplified")
        first, *_ = text.splitlines()
        assert first == f"# decided: model.py:39 in branches:  return x if x > 0 else -x  -> {x > 0}"
        assert f"guard(a) expected={x > 0} number=0" in text
        gradient = fnad("dump", f"{MODEL}:branches", "--values", str(x), "--grad")
        assert gradient.startswith(first)
        assert f"return {answer}.0:f64" in gradient


def test_the_path_of_a_compiled_function(fnad) -> None:
    target = "tests.cli.model:halved"
    text = fnad("dump", target, "--values", "5.0")
    assert [line.strip() for line in text.splitlines() if "guard" in line] == [
        "b: bool[] = guard(a) expected=True number=0",
        "e: bool[] = guard(d) expected=True number=1",
        "h: bool[] = guard(g) expected=True number=2",
        "k: bool[] = guard(j) expected=False number=3",
    ]
    assert text.splitlines()[0].endswith("while x > 1:  -> True x 3, False")
    native = fnad("dump", target, "--values", "5.0", "--stage", "llvm")
    assert native.startswith("; decided: ")


def test_what_is_static_in_a_compiled_function_is_static_in_its_dump(fnad, tmp_path: Path) -> None:
    file = tmp_path / "powers.py"
    file.write_text(
        "import fnad\n@fnad.jit\ndef cube(x, n):\n    return x**n\nsquare = fnad.jit(cube, static_argnums=1)"
    )
    assert "mul(x, x)" in fnad("dump", f"{file}:square", "--values", "2.0, 2")
    assert "n: i64[]" in fnad("dump", f"{file}:cube", "--values", "2.0, 2")
    method = (
        "class Power:\n    @fnad.jit(static_argnums=2)\n    def of(self, x, n):\n        return x**n\npower = Power()"
    )
    file.write_text(f"import fnad\n{method}")
    for values in ("2.0, 2", "2.0, n=2", "n=2, x=2.0"):
        assert "mul(x, x)" in fnad("dump", f"{file}:power.of", "--values", values)


def test_values_by_keyword_are_those_of_the_positions_they_have(fnad) -> None:
    by_position, by_keyword = (
        fnad("dump", f"{MODEL}:scaled", "--values", values, "--grad", "--argnums", "1")
        for values in ("np.ones(3), 2.0", "scale=2.0, x=np.ones(3)")
    )
    assert by_keyword == by_position


@pytest.mark.parametrize("values", ["*EXAMPLE", "np.linspace(0, 1, 3), scale=2.0", "x=EXAMPLE[0], scale=2.0"])
def test_values_are_python_among_the_names_of_the_file(fnad, values: str) -> None:
    text = fnad("dump", f"{MODEL}:scaled", "--values", values)
    assert "scaled(x: f64[3], scale: f64[]) -> f64[] {" in text.splitlines()


def test_values_reach_a_transform_as_its_arguments_do(fnad) -> None:
    text = fnad("dump", f"{MODEL}:scaled", "--values", "*EXAMPLE, power=3", "--value-and-grad")
    assert "scaled(x: f64[3]) -> f64[], f64[3] {" in text.splitlines()  # a number is a constant, as it is under grad
    text = fnad("dump", f"{MODEL}:scaled", "--values", "*EXAMPLE", "--grad", "--argnums", "0,1")
    assert "scaled(x: f64[3], scale: f64[]) -> f64[3], f64[] {" in text.splitlines()


def test_names_of_arguments_and_of_what_is_captured(fnad) -> None:
    text = fnad("dump", f"{MODEL}:looked_up", "--args", "f64[3], float")
    assert "looked_up(x: f64[3], θ: f64[], captured: f64[3]) -> f64[] {" in text.splitlines()
    assert parse_program(text).name == "looked_up"


def test_names_are_words_and_differ(fnad, tmp_path: Path) -> None:
    file = tmp_path / "names.py"
    file.write_text("def f(inf, w, w_a, captured, **others):\n    return inf * w['a'] * w_a * captured\n")
    text = fnad("dump", f"{file}:f", "--args", "f64[], {'a': f64[]}, f64[], f64[]", "--jvp", "--argnums", "0,1")
    names = ["inf_2", "w_a", "w_a_2", "captured", "dinf_2", "dw_a"]
    assert [line.strip() for line in text.splitlines()[2:8]] == [f"{name}: f64[]," for name in names]
    assert parse_program(text).name == "f"


def test_modules_by_name(fnad, refusal) -> None:
    by_name = fnad("dump", "tests.cli.model:loss", "--args", "f64[3]")
    assert by_name == fnad("dump", f"{MODEL}:loss", "--args", "f64[3]")
    assert refusal("dump", "tests.cli.nothing:f") == "there is no module tests.cli.nothing, nor a file of this name"
    assert refusal("dump", "nowhere_at_all.model:f") == (
        "nowhere_at_all.model cannot be imported: No module named 'nowhere_at_all'"
    )


def test_version_option_prints_the_installed_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["--version"])
    assert (exit_.value.code, capsys.readouterr().out) == (0, f"fnad {version('fnad')}\n")


@pytest.mark.parametrize("stage", ["loops", "source", "llvm", "asm"])
def test_stages_of_the_backend(fnad, stage: str) -> None:
    text = fnad("dump", f"{MODEL}:loss", "--args", "f64[3]", "--grad", "--stage", stage)
    assert {"loops": "for i0 < 3", "source": "def ", "llvm": "define", "asm": ".globl"}[stage] in text


def test_the_source_lines_are_told(fnad) -> None:
    assert "# model.py:13 in loss:  return np.sum(np.sin(x) * x)" in fnad("dump", f"{MODEL}:loss", "--args", "f64[3]")


def test_pytrees_and_argnums(fnad) -> None:
    types = 'f32[2,4], {"W": f32[4,5], "b": f32[5]}'
    text = fnad("dump", f"{MODEL}:layer", "--args", types, "--vjp", "--argnums", "1")
    assert "layer(x: f32[2,4], w_W: f32[4,5], w_b: f32[5]) -> f32[2,5], f32[2,4], f32[2,5] {" in text.splitlines()
    assert "layer_pullback(x: f32[2,4], e: f32[2,5], ct: f32[2,5]) -> f32[4,5], f32[5] {" in text.splitlines()
    quoted = fnad("dump", f"{MODEL}:layer", "--args", types.replace('"', "'"), "--vjp", "--argnums", "1")
    assert quoted == text


def test_python_numbers_do_not_promote(fnad) -> None:
    text = fnad("dump", f"{MODEL}:Model.square", "--args", "float", "--jvp")
    assert text.splitlines()[1] == "square(x: f64[], dx: f64[]) -> f64[], f64[] {"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.py:f"], "no such file: nowhere.py"),
        (["model.py"], "model.py is not FILE:FUNCTION, as in model.py:loss"),
        ([f"{MODEL}:nothing"], f"there is no nothing in {MODEL}; it has {MODEL}:loss, {MODEL}:layer, "),
        ([f"{MODEL}:lass"], f"there is no lass in {MODEL}; did you mean {MODEL}:loss?"),
        (["numpy:sinn"], "there is no sinn in numpy; did you mean numpy:sin?"),
        ([MODEL], f"{MODEL} names no function; it has {MODEL}:loss, {MODEL}:layer, "),
        ([f"{MODEL}:"], f"{MODEL}: names no function; it has {MODEL}:loss, {MODEL}:layer, "),
        ([f"{MODEL}:NUMBER"], f"NUMBER in {MODEL} is int, not a function"),
        ([f"{MODEL}:loss", "--args", "f64"], "--args 1:1: f64 lacks a shape: f64[] for a scalar, f64[3] for a vector"),
        (
            [f"{MODEL}:loss"],
            "--args does not fit loss: missing a required argument: 'x'; give the types of the arguments, with --args",
        ),
        ([f"{MODEL}:loss", "--values", "2.0, y=1"], "--values does not fit loss: got an unexpected keyword argument"),
        ([f"{MODEL}:loss", "--values", "1 / 0"], "--values raised ZeroDivisionError: division by zero"),
        ([f"{MODEL}:loss", "--values", "2.0)"], "--values raised SyntaxError: unmatched ')'"),
        ([f"{MODEL}:loss", "--values", "'text'"], "x is of type str, not an array or a number"),
        (
            [f"{MODEL}:loss", "--values", "2.0", "--args", "f64[]"],
            "argument --args: not allowed with argument --values",
        ),
        ([f"{MODEL}:loss", "--values", "np.arange(3)", "--grad"], "x is i64[3], which has no derivative"),
        ([f"{MODEL}:loss", "--args", "i64[3]", "--grad"], "x has i64[3], which has no derivative"),
        ([f"{MODEL}:loss", "--args", "f64[3]", "--grad", "--argnums", "1"], "--argnums names argument 1 of 1; the"),
        (
            [f"{MODEL}:loss", "--args", "f64[3]", "--argnums", "x"],
            "argument --argnums: x is no argument number such as",
        ),
        (
            [f"{MODEL}:loss", "--args", "f64[3]", "--argnums", "0"],
            "--argnums says in what to differentiate: add --grad",
        ),
        ([f"{MODEL}:loss", "--args", "f64[3]", "--vjp", "--argnums", "0,-1"], "--argnums names an argument twice"),
        ([f"{MODEL}:loss", "--args", f"f64[{10**17},{10**17}]"], "--args has an array that NumPy cannot have: "),
        ([f"{MODEL}:loss", "--stage", "x"], "argument --stage: invalid choice: 'x' (choose from"),
        ([f"{MODEL}:loss", "--grad", "--vjp"], "argument --vjp: not allowed with argument --grad"),
        ([f"{MODEL}:Model.square", "--args", "f64[3]", "--grad"], "square returned f64[3], where grad takes one real"),
        ([f"{MODEL}:escapes", "--args", "f64[]"], "hash"),
        ([f"{MODEL}:loss", "--args", "[" * 9999], "--args 1:51: nested more than 50 deep"),
        ([f"{MODEL}:loss", "--args", "(" * 9999 + "f64[3]" + ")" * 9999], "--args 1:51: nested more than 50 deep"),
        ([f"{MODEL}:loss", "--args", '{"a": ' * 9999], "--args 1:301: nested more than 50 deep"),
        ([f"{MODEL}:later", "--args", "f64[3]"], f"later in {MODEL} is a coroutine function, which returns no arrays"),
        ([f"{MODEL}:raises", "--args", "f64[3]"], f"{MODEL}:25 raised ZeroDivisionError: "),
    ],
)
@pytest.mark.filterwarnings("error")
def test_refusals_are_one_line(refusal, arguments: list[str], message: str) -> None:
    assert message in refusal("dump", *arguments)


def test_a_syntax_error_in_values_names_no_place_that_the_user_does_not_know(refusal) -> None:
    assert "<string>" not in refusal("dump", f"{MODEL}:loss", "--values", "2.0)")


def test_an_escape_names_the_line(refusal) -> None:
    assert "model.py:21 in escapes:  return hash(x)" in refusal("dump", f"{MODEL}:escapes", "--args", "f64[]")


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


# ---- explain ---------------------------------------------------------------------------------------------------------


def test_an_explanation_is_of_the_function_or_its_gradient(fnad) -> None:
    call = "explain", f"{MODEL}:looked_up", "--args", "f64[3], float"
    lines = fnad(*call).splitlines()
    assert lines[:3] == ["looked_up: 3 operations", "traced:", "  x: f64[3]"]
    assert lines[lines.index("captured:") + 1].startswith("  f64[3] at model.py:")
    assert "  2 strong_mul" not in lines
    assert "  2 strong_mul" in fnad(*call, "--grad").splitlines()
    assert "kept for the pullback, " in fnad("explain", f"{MODEL}:loss", "--args", "f64[3]", "--memory")


@pytest.mark.slow
def test_the_memory_over_time_is_drawn(fnad, refusal, tmp_path, monkeypatch) -> None:
    pytest.importorskip("matplotlib").use("agg")
    call = "explain", f"{MODEL}:loss", "--args", "f64[3]", "--memory", "--plot"
    for name, begin in (("a.svg", b"<?xml"), ("plot", b"\x89PNG")):
        assert "live arrays:" in fnad(*call, str(tmp_path / name))
        assert (tmp_path / name).read_bytes().startswith(begin)
    assert re.search("a.svg exists; .*or force=True .--force.", refusal(*call, str(tmp_path / "a.svg")))
    fnad(*call, str(tmp_path / "a.svg"), "--force")
    assert "Format 'xyz' is not supported" in refusal(*call, str(tmp_path / "a.xyz"))
    assert "no is not a folder" in refusal(*call, str(tmp_path / "no" / "a.png"))
    assert "add --memory" in refusal(*call[:-2], "--plot", str(tmp_path / "b.png"))
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    assert "pip install matplotlib" in refusal(*call, str(tmp_path / "b.png"))
    assert not (tmp_path / "b.png").exists()


def test_an_explanation_lists_decisions_of_values_and_refuses_those_of_types(fnad, refusal) -> None:
    assert "return x if x > 0 else -x  -> False" in fnad("explain", f"{MODEL}:branches", "--values", "-2.0")
    assert "give values, with --values" in refusal("explain", f"{MODEL}:branches", "--args", "float")
    assert "add a derivative, such as --grad" in refusal(
        "explain", f"{MODEL}:loss", "--args", "f64[3]", "--argnums", "0"
    )


def test_an_explanation_for_a_device_lists_its_launches(fnad) -> None:
    text = fnad("explain", f"{MODEL}:loss", "--args", "f32[1000]", "--value-and-grad", "--device", "cuda")
    assert "launches:\n  launch0: " in text


# ---- check -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_check_that_passes_and_one_that_fails(fnad, capsys: pytest.CaptureFixture[str]) -> None:
    assert fnad("check", f"{MODEL}:loss", "--args", "f64[3]").splitlines()[-1].startswith("loss: all ")
    assert main(["check", f"{MODEL}:uses_wrong", "--values", "np.array([0.5, 1.0])"]) == 1
    *_, blamed, line = capsys.readouterr().out.splitlines()
    assert blamed.startswith("to blame: custom_vjp wrong: its derivative along a direction is ")
    assert line.startswith("  at model.py:")
    assert line.endswith("lambda x, ct: (-np.cos(x) * ct,))")


def test_a_check_of_what_has_no_derivative(refusal) -> None:
    assert refusal("check", f"{MODEL}:loss", "--args", "i64[3]").startswith("args has nothing but integers")


# ---- ops and doctor ----------------------------------------------------------------------------------------------


def test_every_primitive_is_listed(fnad) -> None:
    lines = fnad("ops").splitlines()
    assert lines[0].split() == ["name", "derivative", "lowering", "dtypes", "meaning"]
    assert [line.split()[0] for line in lines[1:]] == list(PRIMITIVES)


@pytest.mark.slow
def test_primitives_are_described(fnad) -> None:
    """Each thirtieth is; what differs between them is their records."""
    for name in sorted(PRIMITIVES)[::30]:
        assert fnad("ops", name).startswith(f"{name}: {PRIMITIVES[name].doc}\n")


def test_a_description_has_the_derivatives(fnad, golden) -> None:
    golden("ops_sin", fnad("ops", "sin"))


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("tanhh", "is it one of tan, tanh?"),
        ("sigmoid", "fnad.nn.sigmoid is made of logistic"),
        ("logarithm", "is it one of log, log2, logm, log10, logit, spence, slogdet, log_softmax?"),
        ("exponential", "is it one of exp, exp1, expi, expm, expn, exponent, expm_frechet, logistic_slope?"),
        ("while", "is it while_loop?"),
        ("sqroot", "is it sqrt?"),
        ("bessel", "is it one of i0, i1, iv, j0, j1, jv, k0, k1?"),
        ("fourier", "is it one of fft, rfft?"),
        ("cholesk", "is it cholesky?"),
        ("mulitply", "is it mul?"),
        ("numpy.exp", "np.exp is made of exp"),
        ("digama", "scipy.special.digamma is made of psi"),
        ("determinant", "is it one of det, slogdet?"),
        ("matmul", "np.matmul is made of dot_general"),
        ("mean", "np.mean is made of reduce_sum, div"),
        ("relu", "fnad.nn.relu is made of broadcast_in_dim, le, select"),
        ("einsum", "np.einsum is traced: fnad dump shows what a call is"),
        ("where", "np.where is made of select"),
        ("clip", "np.clip is made of maximum, minimum"),
        ("conditional", "cond is fnad.cond, select is np.where, and Python's if is traced along the branch it takes"),
        ("branch", "cond is fnad.cond, select is np.where, and Python's if is traced along the branch it takes"),
        ("loop", "scan is fnad.scan, while_loop is fnad.while_loop, and Python's loops are traced step by step"),
        ("nosuch", "fnad ops lists all there are"),
    ],
)
def test_a_primitive_that_is_not_there(refusal, name: str, suggestion: str) -> None:
    assert refusal("ops", name) == f"there is no primitive {name}; {suggestion}"


def test_the_doctor_reports(fnad) -> None:
    report = dict(line.split(maxsplit=1) for line in fnad("doctor").splitlines())
    assert {"python", "fnad", "numpy", "numba", "llvmlite", "scipy", "optree", "CPU", "vector", "BLAS"} <= set(report)
    assert report["native"].endswith("s and is right")
    assert report["cache"] == "none on disk: compiled programs live in memory"


def test_the_doctor_names_each_part_for_a_gpu_and_what_brings_it(fnad, monkeypatch) -> None:
    monkeypatch.setattr("fnad.backends.cuda.tools.file_of", lambda *place: None)
    monkeypatch.setattr("fnad.backends.cuda.libdevice.file_of", lambda *place: None)
    monkeypatch.setattr("fnad.backends.cuda.libdevice.path", libdevice.path.__wrapped__)
    monkeypatch.setattr("fnad.backends.cuda.offers.version", version_of_package)
    monkeypatch.setattr("fnad.backends.cuda.tools.toolkits", lambda: ["/nowhere"])
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(offers, "ctypes", SimpleNamespace(CDLL=no_library))
    monkeypatch.setitem(sys.modules, "cupy", None)
    report = dict(re.split(r"\s{2,}", line, maxsplit=1) for line in fnad("doctor").splitlines())
    assert report["libdevice"] == "missing: pip install 'nvidia-nvvm==13.0.*'"
    assert report["CuPy"] == "14.1.0 (cupy-cuda13x)"
    assert report["CUDA libraries"] == (
        "cublas; missing: cusolver, cusparse, cufft, curand, nvrtc: pip install 'fnad[cuda]'"
    )
    assert report["ptxas"].startswith("missing: pip install 'nvidia-cuda-nvcc==13.0.*'")
    assert report["nvdisasm"].startswith("missing: pip install 'nvidia-cuda-nvdisasm>=13'")
    assert report["CUDA driver"].startswith("missing: NVIDIA's driver")
    assert report["CUDA"].startswith("not available: CUDA needs CuPy")


VERSIONS = {"cupy-cuda13x": "14.1.0", "nvidia-cublas": "13.0"}


def version_of_package(package: str) -> str:
    if package not in VERSIONS:
        raise PackageNotFoundError(package)
    return VERSIONS[package]


def no_library(name: str) -> None:
    raise OSError(name)


@pytest.mark.parametrize(("cupy", "number", "status", "wanted"), [
    ("cupy-cuda13x", 13020, 0, "for CUDA 13.2"),
    ("cupy-cuda13x", 12040, 0, "for CUDA 12.4: too old, it takes one for CUDA 13 or later"),
    ("cupy-cuda12x", 12040, 0, "for CUDA 12.4"),
    ("cupy-cuda12x", 11080, 0, "for CUDA 11.8: too old, it takes one for CUDA 12 or later"),
    ("", 12040, 0, "for CUDA 12.4: too old, it takes one for CUDA 13 or later"),
    ("cupy-cuda13x", 0, 34, "fails with CUDA's error 34"),
])  # fmt: skip
def test_the_driver_is_for_the_version_of_cupy(monkeypatch, cupy: str, number: int, status: int, wanted: str) -> None:
    def version_of_driver(place: Any) -> int:
        place._obj.value = number
        return status

    library = SimpleNamespace(cuDriverGetVersion=version_of_driver)
    given = SimpleNamespace(CDLL=lambda name: library, c_int=ctypes.c_int, byref=ctypes.byref)
    monkeypatch.setattr(offers, "ctypes", given)
    monkeypatch.setattr(offers, "version_of", lambda package: package == cupy)
    assert offers.driver() == wanted


# ---- the process -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [["--help"], ["dump", "--help"], ["ops", "--help"], ["doctor", "--help"]])
def test_help_of_a_command_shows_an_example(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 0
    assert "example" in capsys.readouterr().out or arguments == ["--help"]


def test_the_command_alone_is_help(fnad, capsys: pytest.CaptureFixture[str]) -> None:
    alone = fnad()
    with pytest.raises(SystemExit):
        main(["--help"])
    assert alone == capsys.readouterr().out


@pytest.mark.slow
def test_a_reader_that_leaves_early() -> None:
    command = f"{sys.executable} -m fnad ops | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("name")
    assert done.stderr == ""


FULL, CLOSED = (">/dev/full", "No space left on device"), (">&-", "standard output is closed")


@pytest.mark.parametrize(("arguments", "to", "why"), [("dump --help", *FULL), ("", *CLOSED)])
def test_output_that_cannot_be_written(arguments: str, to: str, why: str) -> None:
    command = f"{sys.executable} -m fnad {arguments} {to}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, f"fnad: the output cannot be written: {why}\n")


@pytest.mark.slow
def test_a_function_without_a_line() -> None:
    command = [sys.executable, "-m", "fnad", "dump", "math:sin"]
    done = subprocess.run([*command, "--args", "float"], capture_output=True, text=True, check=False)
    assert done.stderr == (
        "fnad: sin checks the values of its arguments, of which --args gives the types; give values, with --values\n"
    )
    done = subprocess.run([*command, "--values", "1.5"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("# decided: in no line of user code  -> True\n")


@pytest.mark.parametrize("command", ["dump", "explain", "check", "lint"])
def test_an_interrupted_command_ends_with_130_and_one_line(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "model.py"
    file.write_text("def f(x):\n    raise KeyboardInterrupt\n")
    assert main([command, f"{file}:f", "--args", "f64[3]"]) == 130
    assert capsys.readouterr() == ("", "fnad: interrupted\n")


def test_the_script_of_the_command_is_not_the_users(capsys: pytest.CaptureFixture[str]) -> None:
    script = Path(sys.executable).with_name("fnad")
    call = compile('main(["dump", "scipy.optimize:rosen", "--args", "f64[3]"])', str(script), "exec")
    assert eval(call, {"main": main}) is None
    assert "f64[2] = slice(x)" in (text := capsys.readouterr().out)
    assert str(script.name) + ":" not in text
