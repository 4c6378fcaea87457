"""NumPy's arithmetic for use in rules: it promotes and broadcasts its operands, where primitives do neither."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.ir.symbol import Symbol
from fnad.ir.types import Dtype
from fnad.numpy import comparisons, ufuncs
from fnad.numpy.operands import Operand, WeakSymbol, as_symbol
from fnad.numpy.registry import RULES, Rule

FAMILIES = (comparisons, ufuncs)
"""Where the rules below stand."""

add: Rule = RULES[np.add]
subtract: Rule = RULES[np.subtract]
multiply: Rule = RULES[np.multiply]
divide: Rule = RULES[np.true_divide]
negative: Rule = RULES[np.negative]
remainder: Rule = RULES[np.remainder]
absolute: Rule = RULES[np.absolute]
less: Rule = RULES[np.less]
equal: Rule = RULES[np.equal]
greater: Rule = RULES[np.greater]
logical_and: Rule = RULES[np.logical_and]


def as_array(value: Operand, dtype: Dtype | None = None) -> Symbol:
    """Return an operand as np.asarray does: a Python number keeps its dtype beside others."""
    symbol = as_symbol(value, dtype)
    return Symbol(symbol.builder, symbol.atom, symbol.aval) if isinstance(symbol, WeakSymbol) else symbol


def as_vector(value: Operand, dtype: Dtype | None = None) -> Symbol:
    """Return an operand as np.atleast_1d does."""
    x = as_array(value, dtype)
    return x if x.ndim else RULES[np.reshape](x, (1,)).read()


def strong(value: Any) -> Any:
    """Return a Python number as NumPy's, whose dtype does not give way; anything else as it is."""
    return as_array(value) if isinstance(value, (bool, int, float, complex, WeakSymbol)) else value
