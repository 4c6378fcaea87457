from fnad.ir.builder import Builder, trace
from fnad.ir.walk import all_equations, equal_up_to_names, use_counts
from fnad.ops.arithmetic import add
from tests.ir.programs import VECTOR, branch, loss


def test_uses_are_operands_and_outputs() -> None:
    program = trace(lambda x, y: [(z := add(x, x)), z, x], VECTOR, VECTOR)
    (equation,) = program.equations
    x, y = program.inputs
    counts = use_counts(program)
    assert (counts[x], counts[y], counts[equation.results[0]]) == (3, 0, 2)


def test_equations_of_regions_follow_their_equation() -> None:
    builder = Builder()
    with builder.active():
        x = builder.input(VECTOR)
        program = builder.finish("f", [add(builder.bind(branch, [x], {}, (loss(),))[0], x)])
    names = [equation.primitive.name for equation in all_equations(program)]
    assert names == ["branch", "sin", "mul", "reduce_sum", "mul", "add"]


def test_programs_are_equal_up_to_names() -> None:
    assert equal_up_to_names(loss(), loss())
    assert not equal_up_to_names(loss(), trace(lambda a, b: [a], VECTOR, VECTOR))
