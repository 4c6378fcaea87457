from itertools import islice

from fnad.ir.builder import Builder, trace
from fnad.ir.printer import names_in_order, print_annotated, print_program
from fnad.ir.program import Program
from fnad.ops.arithmetic import add
from tests.ir.programs import LOSS, VECTOR, branch, loss, nothing, twice, with_sources


def test_the_text_of_a_program() -> None:
    assert print_program(loss()) == LOSS
    assert str(loss()) == LOSS


def test_names_follow_the_alphabet_without_the_reserved_words() -> None:
    names = list(islice(names_in_order(), 26 + 26**2 + 26**3))
    assert names[:2] == ["a", "b"]
    assert names[25:28] == ["z", "aa", "ab"]
    assert not {"inf", "nan"} & set(names)
    assert len(set(names)) == len(names)


def test_annotations_name_each_source_once_where_it_changes() -> None:
    assert print_annotated(with_sources(3, 3, 5, 3)) == (
        "loss(a: f64[3]) -> f64[3] {\n"
        "  # model.py:3 in loss\n"
        "  b: f64[3] = sin(a)\n"
        "  c: f64[3] = sin(b)\n"
        "  # model.py:5 in loss\n"
        "  d: f64[3] = sin(c)\n"
        "  # model.py:3 in loss\n"
        "  e: f64[3] = sin(d)\n"
        "  return e\n"
        "}"
    )


def test_a_long_signature_stands_on_a_line_per_input() -> None:
    program = trace(lambda *xs: [xs[0]], *[VECTOR] * 9, name="wide")
    lines = print_program(program).splitlines()
    assert lines[0] == "wide("
    assert lines[1] == "    a: f64[3],"
    assert lines[10:] == [") -> f64[3] {", "  return a", "}"]


def test_several_results_and_none() -> None:
    def both(x):
        nothing(x)
        return list(twice(x))

    assert print_program(trace(both, VECTOR, name="both")).splitlines() == [
        "both(a: f64[3]) -> f64[3], f64[3] {",
        "  = nothing(a)",
        "  b: f64[3], c: f64[3] = twice(a)",
        "  return b, c",
        "}",
    ]


def test_regions_stand_in_braces() -> None:
    region = trace(lambda x: [add(x, x)], VECTOR, name="double")
    builder = Builder()
    with builder.active():
        x = builder.input(VECTOR)
        program = builder.finish("f", [builder.bind(branch, [x], {"count": 1}, (region,))[0]])
    assert print_program(program).splitlines() == [
        "f(a: f64[3]) -> f64[3] {",
        "  b: f64[3] = branch(a) count=1 {",
        "    double(a: f64[3]) -> f64[3] {",
        "      b: f64[3] = add(a, a)",
        "      return b",
        "    }",
        "  }",
        "  return b",
        "}",
    ]


def test_a_name_that_is_no_word_is_quoted() -> None:
    assert print_program(Program("<lambda>", (), (), ())) == '"<lambda>"() -> {\n  return\n}'
