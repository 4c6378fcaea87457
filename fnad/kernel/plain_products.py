"""Plain products in the place of strong ones, in loops that LLVM does not vectorise.

A strong product is 0 where the cotangent is 0, whatever the partial derivative. It differs from the plain product only
where that is nan (0 · inf, 0 · nan) or the zero has another sign. In a vector the test is cheap; of single numbers it
takes as long as the product, and the gradient of a short formula has a hundred of them. So such a loop becomes

    check = 0
    for i: (the loop with plain products); check = check + s      s: the sum of some of the results
    if check is nan: for i: (the loop)

where each plain product is part of one of the results in s, by operations that keep nan. Infinite results can make the
check nan as well; the second loop is right in any case.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import count
from typing import TypeAlias

from fnad.kernel import statements as code
from fnad.kernel.order import is_float, is_unvectorised
from fnad.scalar.operations import ACCUMULATE, ADD, DIVIDE, MULTIPLY, NEGATIVE, STRONG_MULTIPLY, SUBTRACT
from fnad.scalar.template import CASTS, cast_to

FEWEST = 16
"""The fewest strong products that are worth a second loop, which takes as long to compile as the first."""

KEEPING = frozenset({ADD, SUBTRACT, MULTIPLY, NEGATIVE, ACCUMULATE, DIVIDE, STRONG_MULTIPLY, *map(cast_to, CASTS)})
"""The operations whose result is nan if an operand is, for real results."""

Products: TypeAlias = frozenset[int]
"""The strong products that a value is computed of, by number."""

NONE: Products = frozenset()


class UnknownError(Exception):
    """A product may be nan, or a zero of another sign, and the results that are checked would not tell."""


def with_plain_products(statements: Sequence[code.Statement]) -> list[code.Statement]:
    """The statements of a kernel, whose arrays have their places in memory, with such loops."""
    return _block(statements, count())


def _block(statements: Sequence[code.Statement], numbers: Iterator[int]) -> list[code.Statement]:
    return [found for statement in statements for found in _statement(statement, numbers)]


def _statement(statement: code.Statement, numbers: Iterator[int]) -> list[code.Statement]:
    parts = (part for inner in code.walk([statement]) for part in inner.expressions())
    if sum(isinstance(part, code.Apply) and part.operation is STRONG_MULTIPLY for part in parts) < FEWEST:
        return [statement]
    if isinstance(statement, code.For) and not statement.is_parallel and is_unvectorised(statement):
        try:
            results = _checked(statement)
        except UnknownError:
            results = []
        if results:
            return _twice(statement, results, next(numbers))
    return [statement.with_bodies(lambda body: _block(body, numbers))]


# ---- which results tell -----------------------------------------------------------------------------------------


def _checked(loop: code.For) -> list[code.Store]:
    """The stores whose values are nan if any plain product is in the place of a strong one that differs from it."""
    if not _is_repeatable(loop.body):
        return []
    chosen, covered = list[code.Store](), NONE
    for store, products in sorted(_Origins().stores(loop.body), key=lambda found: -len(found[1])):
        if not products <= covered:
            chosen.append(store)
            covered |= products
    return chosen if len({store.value.kind for store in chosen}) == 1 else []


def _is_repeatable(body: Sequence[code.Statement]) -> bool:
    """True if a loop's iterations read nothing that they change, so that they may run twice; routines may."""
    if any(isinstance(statement, code.Evaluate) for statement in code.walk(body)):
        return False
    changed, before = set(code.assigned(body)), set[code.Name]()
    for statement in body:
        read = {name for inner in code.walk([statement]) for name in inner.names()}
        if read & changed - before:
            return False
        if isinstance(statement, code.Assign):
            before.update(statement.targets)
    return {store.array for store in code.stores(body)}.isdisjoint(load.array for load in code.loads(body))


class _Origins:
    """The strong products of which each value of an iteration is computed; raises `UnknownError` where nan is lost."""

    def __init__(self) -> None:
        self.numbers = count()
        self.known: dict[code.Name, Products] = {}

    def stores(self, body: Sequence[code.Statement]) -> list[tuple[code.Store, Products]]:
        """The stores of values that are computed of such products."""
        found = list[tuple[code.Store, Products]]()
        for statement in body:
            match statement:
                case code.Assign((target,), value):
                    self.known[target] = self.of(value)
                case code.Store(_, index, value) if not self.of(index):
                    found += [(statement, products)] if (products := self.of(value)) else []
                case code.Comment():
                    pass
                case code.If() if not self.is_concerned(statement):
                    pass
                case _:
                    raise UnknownError
        return found

    def is_concerned(self, branch: code.If) -> bool:
        """True if a branch reads or assigns what is computed of such products."""
        names = (target for target in code.assigned([branch]) if self.known.get(target))
        read = (part for statement in code.walk([branch]) for part in statement.expressions())
        return any(names) or any(map(self.of, read))

    def of(self, expression: code.Expression) -> Products:
        match expression:
            case code.Name():
                return self.known.get(expression, NONE)
            case code.Load(_, index):
                return self.kept(self.of(index), keeps=False)
            case code.Apply(operation, operands, kind):
                found = [self.of(operand) for operand in operands]
                products = NONE.union(*found)
                if operation is STRONG_MULTIPLY:
                    products |= {next(self.numbers)}
                keeps = operation in KEEPING and is_float(kind) and not (operation is DIVIDE and found[1])
                return self.kept(products, keeps=keeps)
            case code.Constant():
                return NONE

    @staticmethod
    def kept(products: Products, *, keeps: bool) -> Products:
        if products and not keeps:
            raise UnknownError
        return products


# ---- the loops --------------------------------------------------------------------------------------------------


def _twice(loop: code.For, results: Sequence[code.Store], number: int) -> list[code.Statement]:
    """The loop with plain products, and the loop as it is for where a result of that is nan."""
    dtype = results[0].value.dtype
    check = code.Name(f"check{number}", dtype)
    values = {id(store): code.Name(f"checked{number}_{n}", dtype) for n, store in enumerate(results)}
    body = list[code.Statement]()
    for statement in loop.body:
        plain = statement.with_operands(_plain)  # branches have no such products
        if isinstance(plain, code.Store) and id(statement) in values:
            value = values[id(statement)]
            body += [code.Assign((value,), plain.value), code.Store(plain.array, plain.index, value)]
        else:
            body.append(plain)
    total = reduce(lambda a, b: a + b, values.values())
    body.append(code.Assign((check,), check + total))
    again = code.If(check.differs(check), [loop])
    return [code.Assign((check,), code.Constant(dtype.type(0))), replace(loop, body=body), again]


def _plain(expression: code.Expression) -> code.Expression:
    match expression.with_parts(_plain):
        case code.Apply(operation, operands, _) if operation is STRONG_MULTIPLY:
            return code.apply(MULTIPLY, *operands)
        case changed:
            return changed
