import numpy as np

from fnad.ir.types import F64, Aval
from fnad.trace.tracing import trace_function
from fnad.transforms.interpret import interpret


def test_traces_ufuncs_operators_and_reductions():
    traced = trace_function(lambda leaves: [np.sum(np.sin(leaves[0]) * leaves[0])], [Aval(F64, (3,))], name="f")
    x = np.array([0.1, 0.2, 0.3])
    assert interpret(traced.program, [x]) == [np.sum(np.sin(x) * x)]
    assert [equation.primitive.name for equation in traced.program.equations] == ["sin", "mul", "reduce_sum"]
    assert traced.program.equations[0].source.file == __file__
