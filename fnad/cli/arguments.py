"""The types of a function's arguments, as the option `--args` gives them.

    arguments ::= [argument {"," argument}]
    argument  ::= aval | scalar | "None" | dict | list | tuple
    aval      ::= dtype "[" [extent {"," extent}] "]"            f64[3,4], i32[]
    extent    ::= integer | word                             a name for a size that stays open: f64[n,3]
    scalar    ::= "float" | "int" | "bool" | "complex"           a Python number
    dict      ::= "{" [key ":" argument {"," key ":" argument}] "}"
    key       ::= string | word                              a string as Python has it: 'W' or "W"
    list      ::= "[" [argument {"," argument}] "]"
    tuple     ::= "(" [argument {"," argument}] ")"              (f64[3],) has one element, (f64[3]) is f64[3]

A list of arguments or of elements may end in a comma.
"""

from __future__ import annotations

from ast import literal_eval
from typing import Any, TypeAlias

from fnad.ir.reader import Reader
from fnad.ir.types import DTYPES, Aval

Argument: TypeAlias = "Aval | type | dict[str, Argument] | list[Argument] | tuple[Argument, ...] | None"

SCALARS: dict[str, type] = {"float": float, "int": int, "bool": bool, "complex": complex}


def parse_arguments(text: str) -> tuple[Argument, ...]:
    """The arguments' types as pytrees of avals and Python number types; raises `ParseError`.

    >>> parse_arguments("int, (float,)")
    (<class 'int'>, (<class 'float'>,))
    """
    return tuple(_Arguments(text).separated_to_end())


class _Arguments(Reader):
    def extent(self) -> Any:
        return self.take().text if self.token.kind == "word" else super().extent()

    def separated_to_end(self) -> list[Argument]:
        return self.separated(self.argument, "end of text")

    def argument(self) -> Argument:
        token = self.token
        if token.kind == "word" and self.following.text == "=":
            self.fail(token, f"arguments are given by position: leave out {token.text}=")
        return self.nested(self.tree)

    def tree(self) -> Argument:
        if self.accept("{"):
            return self.dictionary()
        if self.accept("["):
            return self.separated(self.argument, "]")
        if self.accept("("):
            return self.parenthesised()
        return self.leaf()

    def dictionary(self) -> dict[str, Argument]:
        found: dict[str, Argument] = {}
        while not self.accept("}"):
            token = self.token
            key = self.key() if token.kind == "string" else self.word("a key").text
            if key in found:
                self.fail(token, f"key {key} is given twice")
            self.expect(":")
            found[key] = self.argument()
            if not self.accept(","):
                self.expect("}")
                break
        return found

    def key(self) -> str:
        try:
            return literal_eval(self.take().text)
        except (SyntaxError, ValueError) as error:
            self.fail(self.before, str(error))

    def parenthesised(self) -> Argument:
        if self.accept(")"):
            return ()
        first = self.argument()
        if self.accept(")"):
            return first
        self.expect(",")
        return (first, *self.separated(self.argument, ")"))

    def leaf(self) -> Argument:
        token = self.token
        if token.text in SCALARS and self.following.text != "[":
            return SCALARS[self.take().text]
        if token.text == "None":
            self.take()
            return None
        if token.kind == "number":
            self.fail(token, f"{token.text} is a value; give its type: float, int or an aval such as f64[]")
        if token.text in DTYPES and self.following.text != "[":
            self.fail(token, f"{token.text} lacks a shape: {token.text}[] for a scalar, {token.text}[3] for a vector")
        return self.aval()
