"""np.einsum: an order of pairwise contractions, each a `dot_general` or a product.

Every axis of every operand has a label. A pair of operands is contracted over the labels that neither the result nor
another operand has; labels that both have and that are kept are batch axes; a label that only one has is summed before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fnad.errors import DtypeError, ShapeError
from fnad.ir.symbol import Symbol
from fnad.ir.types import dtype_name, native_dtype
from fnad.numpy.manipulation import diagonal_steps
from fnad.numpy.operands import as_symbol, of_one_dtype
from fnad.numpy.products import contract, times
from fnad.numpy.reductions import SUM, reduce
from fnad.numpy.registry import implements
from fnad.numpy.views import ArrayView, Permute, Steps, read
from fnad.ops.shape import reshape_to, transpose_to

Labels = tuple[str, ...]

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""The labels that integers stand for, in their order."""


class EinsumOperand(NamedTuple):
    """An operand and the labels of its axes."""

    x: Symbol
    labels: Labels


@implements(np.einsum)
def einsum(*operands: Any, out: None = None, optimize: Any = False, dtype: Any = None) -> ArrayView | Symbol:
    subscripts, arrays = split_arguments(operands)
    symbols = of_one_dtype(*arrays)
    common = symbols[0].dtype
    wanted = common if dtype is None else native_dtype(dtype)
    if not np.can_cast(common, wanted, "safe"):
        raise DtypeError(f"einsum of {dtype_name(common)} cannot be computed in {dtype_name(wanted)} safely")
    inputs, output = parse(subscripts, [symbol.ndim for symbol in symbols])
    if len(symbols) == 1 and set(output) == set(inputs[0]) and symbols[0].dtype == wanted:
        view = ArrayView(symbols[0], view_steps(symbols[0], inputs[0], output))
        return view if symbols[0].shape else view.read()
    terms = [EinsumOperand(as_symbol(s, wanted), labels) for s, labels in zip(symbols, inputs, strict=True)]
    check_sizes(terms)
    return contract_all([without_repeats(term) for term in terms], output)


# ---- reading the subscripts ------------------------------------------------------------------------------------------


def split_arguments(operands: Sequence[Any]) -> tuple[str, list[Any]]:
    """The subscripts and the arrays, also of the form `einsum(a, [0, 1], b, [1, 2], [0, 2])`."""
    if isinstance(operands[0], str):
        return operands[0].replace(" ", ""), list(operands[1:])
    arrays, lists = list(operands[: len(operands) // 2 * 2 : 2]), list(operands[1::2])
    text = ",".join(map(_letters, lists))
    return (f"{text}->{_letters(operands[-1])}" if len(operands) % 2 else text), arrays


def _letters(labels: Iterable[Any]) -> str:
    return "".join("..." if label is Ellipsis else LETTERS[label] for label in labels)


def parse(subscripts: str, ranks: Sequence[int]) -> tuple[list[Labels], Labels]:
    """The labels of each operand and of the result; axes of an ellipsis are labelled ..0, ..1 from the end."""
    left, arrow, right = subscripts.partition("->")
    texts = left.split(",")
    if len(texts) != len(ranks):
        raise ShapeError(f"einsum with subscripts for {len(texts)} operands was given {len(ranks)}")
    inputs = [_labels(text, rank) for text, rank in zip(texts, ranks, strict=True)]
    hidden = max(sum(label.startswith("..") for label in labels) for labels in inputs)
    dots = tuple(f"..{i}" for i in reversed(range(hidden)))
    if arrow:
        output = _expand(right, dots)
    else:
        counts = Counter(label for labels in inputs for label in labels)
        output = (*dots, *sorted(c for c in counts if counts[c] == 1 and not c.startswith("..")))
    for label in output:
        if output.count(label) > 1 or not any(label in labels for labels in inputs):
            raise ShapeError(f"einsum subscript {label!r} of the output appears twice, or in no input")
    return inputs, output


def _labels(text: str, rank: int) -> Labels:
    named = len(text.replace("...", ""))
    if named > rank or ("..." not in text and named != rank):
        raise ShapeError(f"einsum subscripts {text!r} do not fit an operand of {rank} dimension(s)")
    return _expand(text, tuple(f"..{i}" for i in reversed(range(rank - named))))


def _expand(text: str, dots: Labels) -> Labels:
    before, ellipsis, after = text.partition("...")
    return (*before, *(dots if ellipsis else ()), *after)


def check_sizes(terms: Sequence[EinsumOperand]) -> None:
    """Raise where axes of one label differ in size and none of them is 1."""
    sizes: dict[str, int] = {}
    for term in terms:
        for label, n in zip(term.labels, term.x.shape, strict=True):
            if sizes.setdefault(label, n) != n and 1 not in (n, sizes[label]):
                raise ShapeError(f"einsum subscript {label!r} stands for axes of sizes {sizes[label]} and {n}")
            sizes[label] = max(n, sizes[label]) if n else n


# ---- one operand -----------------------------------------------------------------------------------------------------


def view_steps(x: Symbol, labels: Labels, output: Labels) -> Steps:
    """The steps to a view of one operand: diagonals where a label is repeated, then a permutation."""
    steps, labels = diagonals(x, labels, is_writeable=True)
    return (*steps, Permute(tuple(labels.index(label) for label in output)))


def diagonals(x: Symbol, labels: Labels, *, is_writeable: bool) -> tuple[Steps, Labels]:
    """The steps to the diagonals over repeated labels, and the labels after."""
    steps: Steps = ()
    shape = x.shape
    while repeated := [label for label in labels if labels.count(label) > 1]:
        i = labels.index(repeated[0])
        j = labels.index(repeated[0], i + 1)
        if shape[i] != shape[j]:
            raise ShapeError(f"einsum subscript {repeated[0]!r} stands for axes of sizes {shape[i]} and {shape[j]}")
        steps = (*steps, *diagonal_steps(shape, 0, i, j, is_writeable=is_writeable))
        kept = [k for k in range(len(shape)) if k not in (i, j)]
        labels, shape = (*(labels[k] for k in kept), labels[i]), (*(shape[k] for k in kept), shape[i])
    return steps, labels


def without_repeats(term: EinsumOperand) -> EinsumOperand:
    """Take diagonals over repeated labels."""
    steps, labels = diagonals(term.x, term.labels, is_writeable=True)
    return EinsumOperand(read(steps, term.x), labels)


def summed(term: EinsumOperand, kept: Iterable[str]) -> EinsumOperand:
    """Sum over the labels that are not kept."""
    axes = tuple(i for i, label in enumerate(term.labels) if label not in kept)
    if not axes:
        return term
    labels = tuple(label for label in term.labels if label in kept)
    return EinsumOperand(reduce(SUM, term.x, axes), labels)


def arranged(term: EinsumOperand, output: Labels) -> Symbol:
    """The operand with its axes in the order of the output, sizes 1 for labels it has not."""
    order = tuple(term.labels.index(label) for label in output if label in term.labels)
    x = transpose_to(term.x, order)
    sizes = iter(x.shape)
    return reshape_to(x, tuple(next(sizes) if label in term.labels else 1 for label in output))


# ---- several operands ------------------------------------------------------------------------------------------------


def contract_all(terms: list[EinsumOperand], output: Labels) -> Symbol:
    """Contract pairs in NumPy's greedy order until one operand is left."""
    for positions in contraction_order(terms, output):
        chosen = [terms[i] for i in positions]
        terms = [term for i, term in enumerate(terms) if i not in positions]
        while len(chosen) > 1:
            others = {label for term in (*terms, *chosen[2:]) for label in term.labels}
            chosen = [*chosen[2:], contract_pair(chosen[0], chosen[1], others | set(output))]
        terms.append(chosen[0])
    return arranged(summed(terms[0], output), output)


def contraction_order(terms: Sequence[EinsumOperand], output: Labels) -> list[tuple[int, ...]]:
    """The operands contracted at each step, by position among those that are left."""
    if len(terms) <= 2:
        return [tuple(range(len(terms)))]
    labels = dict.fromkeys(label for term in terms for label in term.labels)
    names = dict(zip(labels, LETTERS, strict=False))
    texts = ["".join(names[label] for label in term.labels) for term in terms]
    shapes = [np.broadcast_to(0.0, term.x.shape) for term in terms]
    path, _ = np.einsum_path(f"{','.join(texts)}->{''.join(names[c] for c in output)}", *shapes, optimize="greedy")
    return path[1:]


def contract_pair(a: EinsumOperand, b: EinsumOperand, kept: set[str]) -> EinsumOperand:
    """Contract two operands over the labels that are not kept."""
    a, b = without_stretched(a, b), without_stretched(b, a)
    a, b = summed(a, kept | set(b.labels)), summed(b, kept | set(a.labels))
    common = [label for label in a.labels if label in b.labels]
    batch = tuple(label for label in common if label in kept)
    over = tuple(label for label in common if label not in kept)
    free = tuple(label for term in (a, b) for label in term.labels if label not in common)
    labels = (*batch, *free)
    if not over:
        return EinsumOperand(times(arranged(a, labels), arranged(b, labels)), labels)
    return EinsumOperand(
        contract(a.x, b.x, (_places(a, over), _places(b, over)), (_places(a, batch), _places(b, batch))), labels
    )


def without_stretched(term: EinsumOperand, other: EinsumOperand) -> EinsumOperand:
    """Drop axes of size 1 that stand beside longer ones of the same label: they broadcast."""
    sizes = dict(zip(other.labels, other.x.shape, strict=True))
    kept = [
        i
        for i, (label, n) in enumerate(zip(term.labels, term.x.shape, strict=True))
        if n != 1 or sizes.get(label, 1) == 1
    ]
    if len(kept) == len(term.labels):
        return term
    return EinsumOperand(reshape_to(term.x, tuple(term.x.shape[i] for i in kept)), tuple(term.labels[i] for i in kept))


def _places(term: EinsumOperand, labels: Labels) -> tuple[int, ...]:
    return tuple(term.labels.index(label) for label in labels)
