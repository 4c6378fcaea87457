import pytest

from fnad.cli.arguments import parse_arguments
from fnad.errors import ParseError
from fnad.ir.types import F32, F64, Aval


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("", ()),
        ("f64[3]", (Aval(F64, (3,)),)),
        ("f64[], float, int,", (Aval(F64), float, int)),
        ('{"W": f32[4,5], b: bool}, None', ({"W": Aval(F32, (4, 5)), "b": bool}, None)),
        ("[(f64[]), (complex,), ()], {}", ([Aval(F64), (complex,), ()], {})),
        ("bool[2], bool", (Aval(parse_arguments("bool[]")[0].dtype, (2,)), bool)),  # type: ignore[union-attr]
    ],
)
def test_types_are_pytrees(text: str, arguments: tuple[object, ...]) -> None:
    assert parse_arguments(text) == arguments


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f64", "1:1: f64 lacks a shape: f64[] for a scalar, f64[3] for a vector"),
        ("f64[3", "1:6: expected ], got end of text"),
        ("f64[2], x=f64[3]", "1:9: arguments are given by position: leave out x="),
        ("f64[-1]", "1:5: -1 is no extent of an axis"),
        ("3", "1:1: 3 is a value; give its type: float, int or an aval such as f64[]"),
        ("f65[3]", "1:1: there is no dtype f65: it is one of bool, i8, i16,"),
        ("float[3]", "1:1: there is no dtype float: it is one of bool, i8, i16,"),
        ('{"W" f64[3]}', "1:6: expected :, got f64"),
        ("{3: f64[]}", "1:2: expected a key, got 3"),
        ("{a: f64[], a: f64[]}", "1:12: key a is given twice"),
        ("f64[3] f64[3]", "1:8: expected end of text, got f64"),
        ("(f64[],,)", "1:8: expected an aval, got ,"),
        ("(f64[] int)", "1:8: expected ,, got int"),
    ],
)
def test_errors_give_the_column(text: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_arguments(text)
    assert str(caught.value).startswith(message)
