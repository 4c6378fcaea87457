"""Texts made to take long, or to break the reader: each is read in linear time and refused in a few words."""

import re
from collections.abc import Callable
from time import process_time

import pytest

import fnad.ops  # noqa: F401 - the primitives of the texts
from fnad.cli.arguments import parse_arguments
from fnad.errors import ParseError
from fnad.ir.parser import parse_program
from fnad.ir.reader import LONGEST
from tests.together import in_groups

N = 100_000
HOSTILE = {
    "digits": "9" * N,
    "digits and a letter": "9" * N + "x",
    "a fraction": "9" * N + "." + "9" * N + "x",
    "exponents": "1e" * N,
    "a sum": "1+" * N,
    "signs": "-" * N,
    "dots": "." * N,
    "hexadecimal digits": "0x" + "f" * N + "g",
    "escapes without an end": '"\\' * N,
    "quotes": "'a\"" * N,
    "a string without an end": '"' + "a" * N,
    "a word": "a" * N,
    "brackets": "[" * N,
    "parentheses": "(" * N,
    "dictionaries": "{a:" * N,
    "comments": "#" * N,
    "spaces": " " * N + "\v" * N + "$",
    "more digits than Python takes": "9" * 5000,
    "a surrogate": '{"\udc80": f64[]}',
    "a null": '{"\0": f64[]}',
    "an unknown name": '{"\\N{no such name}": f64[]}',
}
READERS: dict[str, Callable[[str], object]] = {
    "arguments": parse_arguments,
    "an extent": lambda text: parse_arguments(f"f64[{text}]"),
    "a program": parse_program,
    "an operand": lambda text: parse_program(f"f() -> f64[] {{ a: f64[] = sin({text}:f64) return a }}"),
    "a param": lambda text: parse_program(f"f() -> f64[] {{ a: f64[] = sin(1.0:f64) x={text} return a }}"),
    "regions": lambda text: parse_program("f() -> f64[] { a: f64[] = sin(1.0:f64) {" * 200 + text),
}


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
@in_groups("text", HOSTILE)
def test_a_hostile_text_is_refused_at_once(reader: str, text: str) -> None:
    start = process_time()
    with pytest.raises(ParseError) as given:
        READERS[reader](HOSTILE[text] + "\n x=")  # which ends no text
    assert process_time() - start < 10  # what is quadratic takes minutes
    assert len(str(given.value)) < 4 * LONGEST
    assert re.match(r"\d+:\d+: .+", str(given.value))


def test_a_long_line_is_shown_around_the_place() -> None:
    with pytest.raises(ParseError) as given:
        parse_arguments("f64[], " * 100 + "g64[]" + ", f64[]" * 100)
    _, line, mark = str(given.value).splitlines()
    assert line[mark.index("^") :].startswith("g64[]")
    assert len(line) <= LONGEST + 4
