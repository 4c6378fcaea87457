"""Loop programs as Python source: what Numba compiles, and what a person reads.

One function per chunk of nests. Its parameters are flat arrays; its body is for loops over scalar statements in the
language of `fnad.backends.numba.runtime`. A value is written in the innermost loop that it varies in, once; a value that
a nest has just stored is used from its variable, so that a temporary only read in its own nest is never stored at all.

Note [Accurate sums]
    A sum in f64 goes in blocks of `BLOCK` elements, which LLVM reassociates into lanes; the blocks are added with
    compensation (Neumaier 1974). That is at least as accurate as NumPy's pairwise sum. Single precision is summed in
    double precision, which needs neither.
"""

from __future__ import annotations

import re
from collections import Counter as Tally
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from fnad.errors import LoweringError
from fnad.ir.types import F64, Dtype, dtype_name
from fnad.lower.index import Index
from fnad.lower.loops import (
    ArgReduce,
    Combine,
    Effect,
    Item,
    Loop,
    Matrix,
    Product,
    Reduce,
    Running,
    Store,
    effect_loads,
    effects,
    reads,
    writes,
)
from fnad.lower.nodes import Apply, Branch, Buffer, Checked, Constant, Load, Node, Number, children, loaded
from fnad.lower.text import conditions_text, index_text

BLOCK = 1024
LONGEST_LINE = 90


@dataclass(frozen=True, slots=True)
class Function:
    """The source of one chunk and the buffers it takes, in order; `status` follows them."""

    name: str
    source: str
    buffers: tuple[Buffer, ...]


def function_source(name: str, items: Sequence[Item], unread: frozenset[Buffer]) -> Function:
    """Return the source of a chunk; temporaries in `unread` are read in no other chunk."""
    emitter = _Emitter(unread - _read_apart(items))
    emitter.items(items, [emitter.body])
    text = "\n".join(emitter.body.text("    ")) or "    pass"
    touched = dict.fromkeys(b for item in items for e in effects(item) for b, _ in (*reads(e), *writes(e)))
    used = set(re.findall(r"\b[a-z]+\d+\b", text))
    buffers = tuple(buffer for buffer in touched if buffer.name in used)
    parameters = ", ".join([*(buffer.name for buffer in buffers), "status"])
    return Function(name, f"def {name}({parameters}):\n{text}\n", buffers)


def _read_apart(items: Sequence[Item]) -> frozenset[Buffer]:
    """Return the buffers that are read otherwise than as elements, or at other addresses than they are stored at."""
    found: set[Buffer] = set()
    for item in items:
        inside = list(effects(item))
        stored = {(e.buffer, e.address) for e in inside if isinstance(e, Store)}
        for effect in inside:
            if isinstance(effect, Product):
                found.update((effect.a.buffer, effect.b.buffer, effect.out.buffer))
            elif isinstance(effect, Store | Reduce | ArgReduce | Running | Combine):
                found.update(load.buffer for load in effect_loads(effect) if (load.buffer, load.address) not in stored)
                found.update([effect.buffer] if not isinstance(effect, Store) else [])
    return frozenset(found)
