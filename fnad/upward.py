"""The functions of upper layers that lower ones call.

An import leads downwards alone. Where a lower layer needs an upper one, it calls an attribute of `UPWARD`, which the
module that has the function sets when it is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fnad.ir.symbol import Symbol
    from fnad.trace.handle import Handle


class Upward:
    """The functions, by the layer that has them.

    Of `fnad.ops`, the primitives of the operators on symbols: `add`, `sub`, `mul`, `div` and `neg`.

    Of `fnad.trace`:
        current_source: The line of user code.
        is_called_by: True if a function is called by modules whose names begin like this.
        caller_of: From a place in an installed package to the user's line that called it.
        handle_of, fresh_handle_of: From a symbol to the traced value that user code gets: of any class; of an array or
            a NumPy number.
        traced: Calls the rule of a function.
        has_traced: True if nested lists, tuples and dicts have a traced value.
        callee, standing_for: The replacement for what user code calls, and for what it loads.
        converted_code: The code with hooks of a function.
        number_of_size: From a size that is a symbol to a traced number.
        enter_class: Gives the methods of a user class converted code.
        enter_imported: Enters replacements in modules that were imported late.
        decided: The bools or integers of a symbol for the arguments of this call, which guard the path; None if they
            are not known.
        needed: As `decided`, for what the trace cannot go on without.
    """

    add: Callable[[Any, Any], Symbol]
    sub: Callable[[Any, Any], Symbol]
    mul: Callable[[Any, Any], Symbol]
    div: Callable[[Any, Any], Symbol]
    neg: Callable[[Any], Symbol]

    handle_of: Callable[..., Handle]
    fresh_handle_of: Callable[[Symbol, bool], Handle]
    traced: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
    has_traced: Callable[[Any], bool]
    callee: Callable[[Any], Any]
    standing_for: Callable[[Any], Any]
    converted_code: Callable[..., Any]
    number_of_size: Callable[[Any], Handle]
    enter_class: Callable[[type], None]
    enter_imported: Callable[[], None]
    is_called_by: Callable[..., bool]
    decided: Callable[..., Any]
    needed: Callable[..., Any]

    def __init__(self) -> None:
        self.caller_of: Callable[[Any], object] = lambda source: None
        self.current_source: Callable[[], object] = lambda: None


UPWARD = Upward()
