import pytest

from fnad.errors import ParseError
from fnad.ir.parser import parse_program
from fnad.ir.printer import print_program
from fnad.ir.program import Literal
from tests.ir.programs import LOSS, declare
from tests.together import in_groups


def test_layout_comments_and_trailing_commas_are_free() -> None:
    text = """
    # the whole on few lines
    loss(a:f64[3], b: f64[3,],) -> f64[] { c: f64[3] = sin(a)  # sine
      d: f64[3] = mul(c, b,) e
      : f64[] = reduce_sum(d) axes = ( 0 , ) f: f64[] = mul(2.0:f64, e) return f }
    """
    assert print_program(parse_program(text)) == LOSS


REGIONS = """\
f(a: f64[0]) -> f64[0] {
  b: f64[0] = branch(a) count=1 {
    g(a: f64[]) -> f64[] {
      return a
    }
    h() -> {
      return
    }
  }
  return b
}"""


@pytest.mark.parametrize(
    "text",
    [
        '"<lambda>"() -> {\n  return\n}',
        "f() -> f64[], c64[], bool[] {\n  return nan:f64, -0+2j:c64, False:bool\n}",
        "f(a: f64[3]) -> f64[3], f64[3] {\n  = nothing(a)\n  b: f64[3], c: f64[3] = twice(a)\n  return b, c\n}",
        'f(a: f64[3]) -> {\n  = nothing(a) x=-inf y=(True, None, ("#",), f32, bool, nan, 1e-300, -2)\n  return\n}',
        REGIONS,
    ],
)
def test_texts_round_trip(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(monkeypatch)
    assert print_program(parse_program(text)) == text


def test_equal_equations_stay_apart() -> None:
    text = "f(a: f64[]) -> f64[], f64[] {\n  b: f64[] = sin(a)\n  c: f64[] = sin(a)\n  return b, c\n}"
    assert print_program(parse_program(text)) == text


def test_bits_of_a_constant() -> None:
    (output,) = parse_program("f() -> f64[] { return 0xfff8000000000001:f64 }").outputs
    assert isinstance(output, Literal)
    assert output.key == ("d", bytes.fromhex("010000000000f8ff"))


ERRORS = [
    ("sin(a)", "sine(a)", "2:15: there is no primitive sine: is it sin?"),
    ("sin(a)", "frobnicate(a)", "2:15: there is no primitive frobnicate"),
    ("sin(a)", "sin(a, b)", "2:15: sin does not take this: sin takes 1 operand"),
    ("mul(c, b)", "mul(c)", "3:15: mul does not take this: mul takes 2 operands, got 1"),
    ("f64[3] = sin", "f64[4] = sin", "2:3: c is declared f64[4], sin gives f64[3]"),
    ("f64[3] = sin", "f65[3] = sin", "2:6: there is no dtype f65: it is one of bool, i8,"),
    ("f64[3] = sin", "f64[x] = sin", "2:10: x is no extent of an axis"),
    ("mul(c, b)", "mul(c, x)", "3:22: x is not defined"),
    ("mul(c, b)", "mul(d, b)", "3:19: d is not defined"),
    ("mul(c, b)", "mul(c, b", "4:3: expected ), got e"),
    ("mul(c, b)", "mul(c, 1.0:f64)", "3:15: mul does not take this: mul takes operands of one shape, got f64[3]"),
    ("d: f64[3]", "c: f64[3]", "3:3: c is defined twice"),
    ("d: f64[3]", "d: f64[3], g: f64[]", "3:25: mul has 1 results, 2 are declared"),
    ("d: f64[3]", "d", "3:5: expected :, got ="),
    ("axes=(0,)", "axes=(1,)", "4:14: reduce_sum does not take this: reduce_sum over axes (1,)"),
    ("axes=(0,)", "axes=0", "4:14: reduce_sum does not take this: 'int' object is not iterable"),
    ("axes=(0,)", "axes=(0,) axis=0", "4:14: reduce_sum does not take this: got an unexpected keyword argument 'axis'"),
    ("axes=(0,)", "axes=(0,) axes=(0,)", "4:38: param axes is given twice"),
    ("axes=(0,)", "axes=f65", "4:33: there is no dtype f65"),
    ("axes=(0,)", r'axes="\q"', r'4:33: "\q" is no string of JSON'),
    ("axes=(0,)", "axes=(1+2j,)", "4:34: 1+2j is no number that a param can have"),
    ("axes=(0,)", "axes=[0]", "4:33: expected the value of a param, got ["),
    ("2.0:f64", "2.0", "5:18: a constant has a dtype: 2.0:f64"),
    ("2.0:f64", "2.0:f65", "5:22: there is no dtype f65"),
    ("2.0:f64", "300:i8", "5:18: 300 is no i8"),
    ("2.0:f64", "%", "5:18: expected a value, got %"),
    ("-> f64[]", "-> f32[]", "6:3: returns f64[] where the signature says f32[]"),
    ("return f", "return", "6:3: returns nothing where the signature says f64[]"),
    ("  return f\n", "", "6:1: expected a value's name, got }"),
    ("return f\n}", "return f", "6:11: expected }, got end of text"),
    ("return f\n}", "return f\n} x", "7:3: expected end of text, got x"),
    ("(a:", "(nan:", "1:6: expected a value's name, got nan"),
    ("c: f64[3] =", "return: f64[3] =", "2:9: expected a value, got :"),
    ("loss(", "(", "1:1: expected the name of a program, got ("),
]


@in_groups(("right", "wrong", "message"), ERRORS)
def test_errors_give_line_and_column(right: str, wrong: str, message: str) -> None:
    assert right in LOSS
    with pytest.raises(ParseError) as caught:
        parse_program(LOSS.replace(right, wrong, 1))
    assert str(caught.value).startswith(message)


def test_an_error_shows_the_line() -> None:
    with pytest.raises(ParseError) as caught:
        parse_program(LOSS.replace("sin", "sine"))
    assert str(caught.value).splitlines() == [
        "2:15: there is no primitive sine: is it sin?",
        "      c: f64[3] = sine(a)",
        "                  ^",
    ]


def test_the_error_is_a_syntax_error() -> None:
    with pytest.raises(SyntaxError, match="1:1: expected the name of a program, got end of text"):
        parse_program("")
