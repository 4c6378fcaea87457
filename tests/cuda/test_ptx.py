"""Kernels as PTX: of every operation in the catalogue, and what ptxas says of them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special

import fnad
from fnad.backends.cuda.libdevice import path as libdevice_path
from fnad.backends.cuda.ptx import ptx_of, ptx_of_all
from fnad.backends.cuda.target import CUDA
from fnad.errors import LoweringError
from fnad.kernel.launches import DevicePlan, Launch
from fnad.kernel.python_source import kernel_text
from fnad.kernel.statements import Apply, Expression, For, Kernel, Load, Name, subexpressions, walk
from fnad.lower.lowering import lower
from fnad.scalar.operation import Kind, Pointer
from fnad.transforms.pipeline import simplify
from tests.catalogue.cases import CASES
from tests.cuda import test_graphs as graphs
from tests.cuda.test_grid import layer_norm, log_sum_exp, plan_of, softmax
from tests.together import drawn, some_of


def program_of(package: str, name: str) -> Path | None:
    """A program that a package brings."""
    try:
        found = [Path(str(file.locate())) for file in files(package) or () if file.name == name]
    except PackageNotFoundError:
        return None
    return found[0] if found else None


def has_libdevice() -> bool:
    try:
        return libdevice_path().exists()
    except LoweringError:
        return False


PTXAS = program_of("nvidia-cuda-nvcc", "ptxas")
pytestmark = [
    pytest.mark.skipif(not has_libdevice(), reason="nvidia-nvvm, which has libdevice, is for Linux on x86-64"),
    pytest.mark.skipif(PTXAS is None, reason="nvidia-cuda-nvcc, which has ptxas, is for Linux on x86-64"),
]


IN_DOUBLE = "gammainc_a"
"""The operation of floats whose formula is in double precision."""


def features(kernel: Kernel) -> set[object]:
    """What is in a kernel: operations by the kinds of their operands, and how loops are nested."""
    found: set[object] = set()
    for statement in walk(kernel.body):
        if isinstance(statement, For):
            found.add(("loops", sum(isinstance(inner, For) for inner in walk(statement.body))))
        for expression in (e for operand in statement.operands for e in subexpressions(operand)):
            found.add(feature(expression))
    return found


def feature(expression: Expression) -> object:
    match expression:
        case Apply(operation, inner, _):
            return operation.name, *(letter(operand.kind) for operand in inner)
        case Load(array, _):
            return "load", letter(array.kind)
        case _:
            return None


def has_doubles(kernel: Kernel) -> bool:
    """Whether there is anything in double precision."""
    kinds = {str(p.kind) for p in kernel.parameters}
    for statement in walk(kernel.body):
        kinds.update(str(e.kind) for operand in statement.operands for e in subexpressions(operand))
    return any("float64" in kind or "complex128" in kind for kind in kinds)


def letter(kind: Kind) -> str:
    """A kind, where integers of all sizes are one."""
    dtype = kind.dtype if isinstance(kind, Pointer) else kind
    assert isinstance(dtype, np.dtype)
    return dtype.kind if dtype.kind in "iu" else dtype.char


def launches() -> Iterator[Launch]:
    """The kernels of a case of each operation that have a feature of their own."""
    seen: set[object] = set()
    for case in drawn(CASES, lambda case: case.primitive.name):
        try:
            plan = DevicePlan(lower(case.program(), CUDA), CUDA)
        except LoweringError:
            continue
        for n, launch in enumerate(plan.launches.values()):
            found = features(launch.kernel)
            if any(f[0].startswith("scipy_") and f[-1] in "FD" for f in found if isinstance(f, tuple) and len(f) > 1):
                continue  # libdevice has SciPy's functions for real numbers
            if not found <= seen:
                seen |= found
                yield named(launch, f"{case.primitive.name}_{case.number}_{n}")


def named(launch: Launch, name: str) -> Launch:
    return replace(launch, kernel=replace(launch.kernel, name=name))


def assembled(ptx: str, arch: str, folder: Path) -> str:
    """What ptxas reports of each kernel."""
    file = folder / "kernels.ptx"
    file.write_text(ptx)
    command = [str(PTXAS), "-v", f"-arch={arch}", str(file), "-o", str(folder / "kernels.cubin")]
    return subprocess.run(command, capture_output=True, text=True, check=True).stderr


@pytest.mark.slow
def test_every_operation_assembles_without_spills(tmp_path: Path) -> None:
    every = some_of(list(launches()), "launches", 80)
    for arch, tried in (("sm_90", every), ("sm_80", every[::16])):
        ptx = ptx_of_all(tried, arch)
        assert f".target {arch}" in ptx
        report = assembled(ptx, arch, tmp_path)
        assert set(re.findall(r"(\d+) bytes spill", report)) == {"0"}
        for kernel, text in zip([x.kernel for x in tried], re.split(r"(?=\.visible \.entry )", ptx)[1:], strict=True):
            assert f".entry {kernel.name}(" in text
            assert ".f64" not in text or has_doubles(kernel) or IN_DOUBLE in kernel.name, kernel.name


def test_a_kernel_of_elements(tmp_path: Path) -> None:
    x = np.ones((300, 100), np.float32)
    program = simplify(fnad.make_program(lambda x, y: np.exp(x) * y + np.tanh(x))(x, x).program)
    (launch,) = DevicePlan(lower(program, CUDA), CUDA).launches.values()
    assert (launch.blocks, launch.threads) == (118, 256)
    ptx = ptx_of(launch)
    assert len(re.findall(r"\.param \.u64 \.ptr", ptx)) == 3
    assert len(re.findall(r"ld\.global\.nc", ptx)) == 2
    assert len(re.findall(r"st\.global", ptx)) == 1
    assert ".f64" not in ptx
    assert "Used" in assembled(ptx, "sm_90", tmp_path)


def test_functions_in_single_precision_take_no_double() -> None:
    """Nor does the reduction of large angles, for which libdevice multiplies in double precision."""
    functions = np.sin, np.cos, np.tan, np.exp, np.log, np.tanh, np.arctan, np.sqrt, np.cbrt, np.sinh, special.erf
    made = fnad.make_program(lambda x: [f(x) for f in functions])(np.ones(100, np.float32))
    ptx = ptx_of_all(list(DevicePlan(lower(simplify(made.program), CUDA), CUDA).launches.values()))
    assert ".f64" not in ptx
    assert "mul.hi.u64" in ptx


def test_the_slope_of_the_normal_distribution_takes_no_exponential_of_its_own() -> None:
    made = fnad.make_program(fnad.value_and_grad(lambda x: np.sum(special.ndtr(x))))(np.ones(100, np.float32))
    ptx = ptx_of_all(list(DevicePlan(lower(simplify(made.program), CUDA), CUDA).launches.values()))
    assert ptx.count("ex2.approx") == 1


NAMES = ("softmax", "long sum", "scan", "updates of rows", "long running folds")


def test_kernels_of_blocks(tmp_path: Path) -> None:
    launches = [launch for name in NAMES for launch in plan_of(name).launches.values()]
    ptx = ptx_of_all([named(launch, f"kernel{n}") for n, launch in enumerate(launches)])
    assert set(re.findall(r"(\d+) bytes spill", assembled(ptx, "sm_90", tmp_path))) == {"0"}
    for launch, text in zip(launches, re.split(r"(?=\.visible \.entry )", ptx)[1:], strict=True):
        source = kernel_text(launch.kernel)
        barriers = len(re.findall(r"bar(?:rier)?\.(?:cta\.)?sync", text))
        assert source.count("barrier()") <= barriers <= 4 * source.count("barrier()")  # LLVM unrolls some loops
        assert len(re.findall(r"shfl\.sync\.down", text)) == source.count("shuffle_down(")
        assert ".f64" not in text
        assert ".local" not in text


@pytest.mark.slow
def test_rows_and_neighbours_are_loaded_once_and_sixteen_bytes_at_a_time(tmp_path: Path) -> None:
    rows, columns = np.ones((300, 1000), np.float32), np.ones(1000, np.float32)
    long = np.broadcast_to(np.float32(1), 10**7)
    programs = [
        (softmax, (rows,), 1, 1),
        (layer_norm, (rows, columns, columns), 3, 1),
        (lambda x: fnad.value_and_grad(lambda x: np.sum(np.exp(x) * x))(x), (long,), 1, 1),
        (lambda x, y: x * y + x, (long, long), 2, 1),
        (softmax, (np.ones((2000, 60), np.float32),), 1, 1),
        # Read: x, the bias, the gain. Stored: the gradient, and the parts of the gain's.
        (fnad.grad(lambda *given: np.sum(np.tanh(layer_norm(*given))), argnums=(0, 1)), (rows, columns, columns), 3, 2),
    ]
    launches = []
    for n, (function, arguments, _, _) in enumerate(programs):
        program = simplify(fnad.make_program(function)(*arguments).program)
        launch, *_ = DevicePlan(lower(program, CUDA), CUDA).launches.values()
        launches.append(named(launch, f"kernel{n}"))
    ptx = ptx_of_all(launches)
    assert ".local" not in ptx
    report = assembled(ptx, "sm_90", tmp_path)
    assert set(re.findall(r"(\d+) bytes (?:spill|stack)", report)) == {"0"}
    assert max(map(int, re.findall(r"Used (\d+) registers", report))) <= 80  # so that 768 threads have room
    for (_, _, loads, stores), text in zip(programs, re.split(r"(?=\.visible \.entry )", ptx)[1:], strict=True):
        assert len(re.findall(r"ld\.global\.nc\.v4", text)) == loads
        assert len(re.findall(r"st\.global\.v4", text)) == stores
        assert not re.findall(r"ld\.global\.nc\.[bf]", text)


@pytest.mark.slow
def test_long_rows_have_more_threads_whose_registers_all_have_room(tmp_path: Path) -> None:
    rows = [(softmax, 32768, "f4", 1024), (softmax, 16384, "f8", 512), (log_sum_exp, 32000, "f4", 1024)]
    launches = []
    for n, (function, length, dtype, threads) in enumerate(rows):
        plan = plan_for(function, np.broadcast_to(np.ones((), dtype), (3000, length)))
        (launch,) = plan.launches.values()
        assert launch.threads == threads
        launches.append(named(launch, f"kernel{n}"))
    ptx = ptx_of_all(launches)
    assert re.findall(r"\.maxntid (\d+)", ptx) == [str(threads) for *_, threads in rows]
    report = assembled(ptx, "sm_90", tmp_path)
    assert set(re.findall(r"(\d+) bytes spill", report)) == {"0"}
    registers = dict(re.findall(r"(kernel\d)'.*?Used (\d+) registers", report, re.DOTALL))
    assert all(int(registers[launch.kernel.name]) * launch.threads <= 2**16 for launch in launches)


def plan_for(function: Callable[..., Any], *arguments: np.ndarray) -> DevicePlan:
    return DevicePlan(lower(simplify(fnad.make_program(function)(*arguments).program), CUDA), CUDA)


def test_an_architecture_that_is_none() -> None:
    launch = next(launches())
    for arch in ("gfx90a", "sm_61", "sm_"):
        with pytest.raises(LoweringError, match=f"'{arch}' is no architecture of a GPU of NVIDIA from 'sm_70' on"):
            ptx_of(launch, arch)


def test_a_gpu_that_is_newer_than_the_compiler_gets_kernels_for_the_last_it_knows(tmp_path: Path) -> None:
    launch = next(launches())
    for arch in ("sm_100", "sm_120a"):
        ptx = ptx_of(launch, arch)
        assert ".target sm_90\n" in ptx
        assert "Used" in assembled(ptx, arch, tmp_path)


@pytest.mark.slow
def test_kernels_of_the_hosts_loops_and_branches(tmp_path: Path) -> None:
    x = np.ones((20, 24))
    programs = [(graphs.chosen, (np.ones(2100), 2)), (graphs.halved, (x, 1.0)), (graphs.backwards, (x,))]
    programs += [(fnad.grad(graphs.grown), (np.ones(2100), 3.0)), (graphs.taken, (np.ones(2100), np.zeros(4, int), 3))]
    plans = [DevicePlan(lower(simplify(fnad.make_program(f)(*args).program), CUDA), CUDA) for f, args in programs]
    launches = [launch for plan in plans for launch in plan.launches.values()]
    ptx = ptx_of_all([named(launch, f"{launch.kernel.name}_{n}") for n, launch in enumerate(launches)])
    report = assembled(ptx, "sm_90", tmp_path)
    assert set(re.findall(r"(\d+) bytes spill", report)) == {"0"}
    names = {re.sub(r"\d.*", "", launch.kernel.name) for launch in launches}
    assert names == {"launch", "begin", "next", "tested", "choice"}


def test_a_kernel_of_more_than_512_arrays_is_for_a_later_driver_and_one_of_more_than_4095_is_an_error(
    tmp_path: Path,
) -> None:
    def in_loop(*arrays: Any) -> Any:
        return fnad.fori_loop(0, 5, lambda i, carry: [x * carry[0] for x in carry], list(arrays))

    *_, launch = plan_for(in_loop, *[np.ones(4, np.float32)] * 20).launches.values()
    own = launch.kernel.parameters
    assert len(own) == 40, "all arrays before and after a loop are those of one kernel"

    def ptx_of_arrays(count: int) -> str:
        more = [Name(f"y{n}", Pointer(np.dtype(float))) for n in range(count - len(own))]
        return ptx_of(replace(launch, kernel=replace(launch.kernel, parameters=(*own, *more))))

    assert ".version 8.0\n" in ptx_of_arrays(512)
    later = ptx_of_arrays(513)
    assert ".version 8.1\n" in later
    assert "Used" in assembled(later, "sm_90", tmp_path)
    with pytest.raises(LoweringError, match="cuda has kernels of at most 4095 arrays, not of 4096"):
        ptx_of_arrays(4096)
