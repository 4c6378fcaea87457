"""Golden dumps of small functions at each stage; `--update-golden` writes them anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from fnad.api.inspect.stages import STAGES
from fnad.backends.cpu.executor import plan
from fnad.cli.dump import Request, dump
from fnad.ir.builder import trace
from fnad.ir.types import F64, Aval
from fnad.lower.loop_ir import NestLoop
from fnad.ops.elementary import sin
from fnad.ops.shape import reduce_sum
from fnad.transforms.differentiation import gradient, value_and_gradient
from fnad.transforms.pipeline import simplify

FUNCTIONS = str(Path(__file__).parent / "golden" / "functions.py")
READABLE = [stage for stage in STAGES if stage not in {"llvm", "asm", "ptx", "sass"}]

CASES = [
    ("sum_sin_x", "f64[1000]", "grad"),
    ("sum_sin_x", "f64[50]", "value_and_grad"),
    ("exp_sin", "f64[1000]", "vjp"),
    ("exp_sin", "float", "jvp"),
    ("log_sum_exp", "f32[100]", "value_and_grad"),
    ("mean_square", '{"W": f64[64,32], "b": f64[32]}, f64[128,64], f64[128,32]', "grad"),
    ("picked", "f64[10], i64[4]", "grad"),
    ("running_difference", "f64[10]", "vjp"),
]


@pytest.mark.parametrize("stage", READABLE)
@pytest.mark.parametrize(("name", "types", "mode"), CASES)
def test_dumps_stay_as_they_are(golden, name: str, types: str, mode: str, stage: str) -> None:
    golden(f"{name}.{mode}.{stage}", dump(Request(f"{FUNCTIONS}:{name}", types, mode, None, stage)))


@pytest.mark.parametrize("transform", [gradient, value_and_gradient])
def test_the_gradient_of_a_fused_scalar_is_one_nest_without_temporaries(transform) -> None:
    program = trace(lambda x: [reduce_sum(sin(x) * x, axes=(0,))], Aval(F64, (1000,)), name="sum_sin_x")
    planned = plan(simplify(transform(program, (True,))))
    (nest,) = [item for item in planned.loops.items if isinstance(item, NestLoop)]
    assert nest.extent == 1000
    assert not planned.slots
