"""The order of contractions: products of products take the cheapest order, by multiplications and memory traffic.

    (A @ B) @ v  =  A @ (B @ v)

A product that only another product reads, and any outer product, is replaced by its operands. The elements of all
operands are labelled as in an `einsum`, and dynamic programming over the sets of operands finds the cheapest order
[Held and Karp, A dynamic programming approach to sequencing problems, 1962]. Longer chains are ordered in pieces,
because each product that is built is offered again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from math import prod
from typing import NamedTuple

from fnad.ir.primitive import Primitive
from fnad.ir.program import Params, Program
from fnad.ir.symbol import Symbol
from fnad.ops.contraction import dot_general, free_axes
from fnad.ops.shape import Ints, Shape, reshape, slice_, slice_axis, transpose, transpose_to
from fnad.transforms.dce import dce
from fnad.transforms.pattern import by_rules
from fnad.transforms.rewrite import application, rewrite, used_once
from fnad.transforms.rules.contraction import CONTRACTION, DOUBLES

MOST = 6
"""The most operands of a search, which takes 3**MOST steps."""

TRAFFIC = 8
"""The multiplications that take as long as one element read or written."""

GAIN = 1.5
"""The least quotient of costs for which the order changes."""

Labels = Ints

_by_rules = by_rules(CONTRACTION)


class Term(NamedTuple):
    """An operand of a network with the labels of its axes."""

    x: Symbol
    labels: Labels


class ContractionTree(NamedTuple):
    """A set of operands contracted at the least cost: one operand, or two sets."""

    cost: float
    labels: Labels
    parts: tuple[int, ...]


def contractions_ordered(program: Program) -> Program:
    """The program with sums moved into its products, and the products in the cheapest order."""
    if sum(equation.primitive is dot_general for equation in program.equations) == 0:
        return program
    return dce(rewrite(program, _by_rules, on_diagonal, ordered))


def ordered(primitive: Primitive, operands: Sequence[Symbol], params: Params) -> Symbol | None:
    """A product of products in a cheaper order; None for others, or if no order is cheaper by the factor `GAIN`."""
    if primitive is not dot_general or operands[0].dtype not in DOUBLES:
        return None
    network = ProductNetwork(operands, params)
    if len(network.terms) < 3:
        return None
    trees = network.cheapest()
    return None if trees[-1].cost * GAIN > network.cost else network.built(trees)


def on_diagonal(primitive: Primitive, operands: Sequence[Symbol], params: Params) -> Symbol | None:
    """The diagonal of a product that nothing else reads, by the rows and columns that cross on it."""
    flat = application(operands[0], reshape) if primitive is slice_ else None
    inner = application(flat[0][0], dot_general) if flat is not None else None
    if flat is None or inner is None or not (used_once(operands[0]) and used_once(flat[0][0])):
        return None
    (x, y), (contract, batch) = inner[0], (inner[1]["contract"], inner[1]["batch"])
    free_x, free_y = free_axes(x.ndim, contract[0], batch[0]), free_axes(y.ndim, contract[1], batch[1])
    if not free_x or len(free_y) != 1:
        return None
    found = _diagonal_part(flat[0][0].shape, operands[0].shape, params)
    if found is None:
        return None
    row, column, size = found
    x, y = slice_axis(x, free_x[-1], row, row + size), slice_axis(y, free_y[0], column, column + size)
    product = dot_general(x, y, contract=contract, batch=((*batch[0], free_x[-1]), (*batch[1], free_y[0])))
    place = len(batch[0])  # the diagonal is the last batch axis of the product, and the last axis of the slice
    return transpose_to(product, (*range(place), *range(place + 1, product.ndim), place))


def _diagonal_part(shape: Shape, flat: Shape, params: Params) -> tuple[int, int, int] | None:
    """The first row, the first column and the size, if a slice of joined last axes is a part of a diagonal."""
    *stack, rows, columns = shape
    starts, limits, strides = params["starts"], params["limits"], params["strides"]
    if flat != (*stack, rows * columns) or strides != (*[1] * len(stack), columns + 1):
        return None
    if any(starts[:-1]) or limits[:-1] != tuple(stack):
        return None
    row, column = divmod(starts[-1], columns)
    size = len(range(starts[-1], limits[-1], strides[-1]))
    return (row, column, size) if 0 < size <= min(rows - row, columns - column) else None


class ProductNetwork:
    """The operands of nested products, the labels of the result, and the cost of the order in which it is written."""

    def __init__(self, operands: Sequence[Symbol], params: Params) -> None:
        self._labels = count()
        self.sizes: dict[int, int] = {}
        self.cost = 0.0
        x, y = operands
        free = len(x.shape) - len(params["contract"][0]) + len(y.shape) - len(params["contract"][1])
        self.result = tuple(next(self._labels) for _ in range(free - len(params["batch"][0])))
        self.terms = self._expanded([*self._operands(operands, params, self.result)])

    def _operands(self, operands: Sequence[Symbol], params: Params, result: Labels) -> Iterator[Term]:
        """The operands of a product whose result has these labels."""
        contract, batch = params["contract"], params["batch"]
        inner = [next(self._labels) for _ in contract[0]]
        start = len(batch[0])
        for x, over, along in zip(operands, contract, batch, strict=True):
            free = free_axes(x.ndim, over, along)
            of = dict(zip((*along, *over), (*result[: len(along)], *inner), strict=True))
            of.update(zip(free, result[start : start + len(free)], strict=True))
            start += len(free)
            labels = tuple(of[axis] for axis in range(x.ndim))
            self.sizes.update(zip(labels, x.shape, strict=True))
            yield Term(x, labels)

    def _expanded(self, terms: list[Term]) -> list[Term]:
        """The terms with products in their place, while they are few; adds up the costs of the products."""
        self.cost += self.pair_cost(terms[0].labels, terms[1].labels, self.result)
        place = 0
        while place < len(terms):
            term, inner = terms[place], None
            moved = application(term.x, transpose)
            if moved is not None and used_once(term.x):
                (x,), params = moved
                of = dict(zip(params["permutation"], term.labels, strict=True))
                terms[place] = Term(x, tuple(of[axis] for axis in range(x.ndim)))
                continue
            if len(terms) < MOST:
                inner = application(term.x, dot_general)
            if inner is None or not (used_once(term.x) or not inner[1]["contract"][0]):
                place += 1
                continue
            parts = [*self._operands(*inner, term.labels)]
            if used_once(term.x):
                self.cost += self.pair_cost(parts[0].labels, parts[1].labels, term.labels)
            terms[place : place + 1] = parts
        return terms

    def pair_cost(self, x: Labels, y: Labels, result: Labels) -> float:
        """The cost of a product: a multiplication for each combination of indices, and the traffic of three arrays."""
        return self._size({*x, *y}) + TRAFFIC * (self._size(x) + self._size(y) + self._size(result))

    def _size(self, labels: Sequence[int] | set[int]) -> int:
        return prod(self.sizes[label] for label in labels)

    def cheapest(self) -> list[ContractionTree]:
        """The cheapest tree of each set of operands, indexed by the bits of the set."""
        sets = 1 << len(self.terms)
        trees = [ContractionTree(0.0, (), ())]
        for chosen in range(1, sets):
            if chosen.bit_count() == 1:
                trees.append(ContractionTree(0.0, self.terms[chosen.bit_length() - 1].labels, ()))
                continue
            needed = set(self.result).union(*(term.labels for i, term in enumerate(self.terms) if not chosen >> i & 1))
            trees.append(min((self._joined(trees, needed, *parts) for parts in _halves(chosen)), key=lambda t: t.cost))
        return trees

    def _joined(self, trees: Sequence[ContractionTree], needed: set[int], left: int, right: int) -> ContractionTree:
        x, y = trees[left], trees[right]
        labels = _product_labels(x.labels, y.labels, needed)
        return ContractionTree(x.cost + y.cost + self.pair_cost(x.labels, y.labels, labels), labels, (left, right))

    def built(self, trees: Sequence[ContractionTree]) -> Symbol:
        """The result by the cheapest order."""
        term = self._built(trees, len(trees) - 1)
        return transpose_to(term.x, tuple(map(term.labels.index, self.result)))

    def _built(self, trees: Sequence[ContractionTree], chosen: int) -> Term:
        tree = trees[chosen]
        if not tree.parts:
            return self.terms[chosen.bit_length() - 1]
        x, y = (self._built(trees, part) for part in tree.parts)
        common = [label for label in x.labels if label in y.labels]
        batch, over = ([label for label in common if (label in tree.labels) is kept] for kept in (True, False))
        places = [tuple(tuple(map(term.labels.index, labels)) for term in (x, y)) for labels in (over, batch)]
        return Term(dot_general(x.x, y.x, contract=places[0], batch=places[1]), tree.labels)


def _product_labels(x: Labels, y: Labels, needed: set[int]) -> Labels:
    """The labels of the result of `dot_general`: batch axes, free axes of x, free axes of y."""
    return (
        *(label for label in x if label in y and label in needed),
        *(label for label in x if label not in y),
        *(label for label in y if label not in x),
    )


def _halves(chosen: int) -> Iterator[tuple[int, int]]:
    """The divisions of a set into two, each once, the part with its first operand first."""
    first = chosen & -chosen
    part = (chosen - 1) & chosen
    while part:
        if part & first:
            yield part, chosen ^ part
        part = (part - 1) & chosen
