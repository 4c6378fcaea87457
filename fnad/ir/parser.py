"""Reading the text of a program, by recursive descent over the grammar of `fnad.ir.program`: one method a rule.

Results are inferred anew, so a parsed program is well typed; errors give line and column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

from fnad.ir.constant import parse_scalar
from fnad.ir.primitive import PRIMITIVES, Primitive
from fnad.ir.printer import RESERVED
from fnad.ir.program import Atom, Equation, Literal, Program, Var
from fnad.ir.reader import Reader, Token
from fnad.ir.types import Aval
from fnad.ir.verifier import INFERENCE_ERRORS, infer_results


def parse_program(text: str, sizes: Mapping[str, int] | None = None) -> Program:
    """The program of a text; raises `ParseError` where it is not in the grammar or not well typed.

    Names of sizes in the text have these values, which may be symbols.

    Primitives must be registered, for instance by importing `fnad.ops`.

    >>> parse_program("f(a: f64[3]) -> f64[3] { return a }").in_avals
    (Aval(dtype('float64'), (3,)),)
    """
    parser = _Parser(text, sizes)
    program = parser.program()
    parser.expect("end of text")
    return program


class Declared(NamedTuple):
    """A declared name with its aval."""

    word: Token
    aval: Aval


class _Parser(Reader):
    def program(self) -> Program:
        name = self.string() if self.token.kind == "string" else self.word("the name of a program").text
        scope: dict[str, Var] = {}
        self.expect("(")
        inputs = self.define(self.separated(self.typed, ")"), scope)
        self.expect("->")
        avals = self.separated(self.aval, "{")
        equations: list[Equation] = []
        while not (self.token.kind == "word" and self.token.text == "return"):
            equations.append(self.equation(scope))
        return Program(name, inputs, tuple(equations), self.outputs(avals, scope))

    def outputs(self, avals: list[Aval], scope: dict[str, Var]) -> tuple[Atom, ...]:
        word = self.take()
        atoms = tuple(self.separated(lambda: self.atom(scope), "}"))
        returned = [atom.aval for atom in atoms]
        if returned != avals:
            self.fail(word, f"returns {_listed(returned)} where the signature says {_listed(avals)}")
        return atoms

    def equation(self, scope: dict[str, Var]) -> Equation:
        declared = self.separated(self.typed, "=")
        word = self.word("a primitive")
        primitive = PRIMITIVES.get(word.text) or self.fail(word, f"there is no primitive {_or_alike(word.text)}")
        self.expect("(")
        operands = tuple(self.separated(lambda: self.atom(scope), ")"))
        params = self.params()
        regions = self.regions()
        self.check(word, primitive, operands, params, regions, declared)
        return Equation(self.define(declared, scope), primitive, operands, params, regions)

    def typed(self) -> Declared:
        word = self.word("a value's name")
        if word.text in RESERVED:
            self.fail(word, f"{word.text} cannot name a value")
        self.expect(":")
        return Declared(word, self.aval())

    def atom(self, scope: dict[str, Var]) -> Atom:
        token = self.take()
        if token.kind == "literal":
            return self.literal(token)
        if token.kind == "number":
            self.fail(token, f"a constant has a dtype: {token.text}:f64")
        if token.kind != "word":
            self.fail(token, f"expected a value, got {token.text}")
        return scope.get(token.text) or self.fail(token, f"{token.text} is not defined")

    def literal(self, token: Token) -> Literal:
        digits, _, name = token.text.partition(":")
        dtype = self.dtype(Token("word", name, token.offset + len(digits) + 1))
        try:
            return Literal(parse_scalar(digits, dtype))
        except (ValueError, ArithmeticError):
            self.fail(token, f"{digits} is no {name}")

    def params(self) -> dict[str, Any]:
        params: dict[str, Any] = {}
        while self.at_param():
            word = self.take()
            if word.text in params:
                self.fail(word, f"param {word.text} is given twice")
            self.expect("=")
            params[word.text] = self.static()
        return params

    def at_param(self) -> bool:
        """True if a param comes next; a `word =` at the start of a line is an equation without its aval."""
        if self.token.kind != "word" or self.following.text != "=":
            return False
        return self.text[self.line_start(self.token) : self.token.offset].strip() != ""

    def static(self) -> Any:
        if self.accept("("):
            return tuple(self.nested(lambda: self.separated(self.static, ")")))
        if self.token.kind == "string":
            return self.string()
        if self.is_size():
            return self.size()
        token = self.take()
        if token.kind == "number":
            return self.number(token)
        if token.text in _CONSTANTS:
            return _CONSTANTS[token.text]
        if token.kind != "word":
            self.fail(token, f"expected the value of a param, got {token.text}")
        return self.dtype(token)

    def number(self, token: Token) -> int | float:
        try:
            return float(token.text) if set(".enij") & set(token.text) else int(token.text)
        except ValueError:
            self.fail(token, f"{token.text} is no number that a param can have")

    def regions(self) -> tuple[Program, ...]:
        regions: list[Program] = []
        if self.accept("{"):
            while not self.accept("}"):
                regions.append(self.nested(self.program))
        return tuple(regions)

    # ---- types ---------------------------------------------------------------------------------------------------

    def check(
        self,
        word: Token,
        primitive: Primitive,
        operands: Sequence[Atom],
        params: dict[str, Any],
        regions: tuple[Program, ...],
        declared: Sequence[Declared],
    ) -> None:
        """Check the declared avals against the inferred ones."""
        try:
            avals = infer_results(primitive, [atom.aval for atom in operands], params, regions)
        except INFERENCE_ERRORS as error:
            self.fail(word, f"{word.text} does not take this: {str(error).splitlines()[0]}")
        if len(avals) != len(declared):
            self.fail(word, f"{word.text} has {len(avals)} results, {len(declared)} are declared")
        for name, aval in zip(declared, avals, strict=True):
            if name.aval != aval:
                self.fail(name.word, f"{name.word.text} is declared {name.aval}, {word.text} gives {aval}")

    def define(self, declared: Sequence[Declared], scope: dict[str, Var]) -> tuple[Var, ...]:
        """Enter names into the scope."""
        for word, aval in declared:
            if word.text in scope:
                self.fail(word, f"{word.text} is defined twice")
            scope[word.text] = Var(aval)
        return tuple(scope[word.text] for word, _ in declared)


_CONSTANTS = {"True": True, "False": False, "None": None}


def _listed(avals: Sequence[Aval]) -> str:
    return ", ".join(map(str, avals)) or "nothing"


def _or_alike(name: str) -> str:
    alike = get_close_matches(name, PRIMITIVES, n=1)
    return f"{name}: is it {alike[0]}?" if alike else name
