"""What every backend makes of a program: an executor.

An executor takes a list of arrays, one for each input of the program, and returns a list of arrays, one for each
output. Arguments have exactly the inputs' dtypes, in native byte order, and shapes; their strides, alignment and
writability are whatever the caller's are, and the executor never writes to them. Results have exactly the outputs'
dtypes and shapes, a 0-d array where the shape is []; each is fresh: it shares memory with no argument, no other result
and nothing the executor keeps. An executor may be called from several threads at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

Array: TypeAlias = "np.ndarray[Any, Any]"
Executor: TypeAlias = Callable[[Sequence[Array]], list[Array]]


class Native(Protocol):
    """An executor of native code, with workspaces: arrays for temporaries that are at hand for its next call."""

    def __call__(self, arguments: Sequence[Array], /) -> list[Array]: ...

    @property
    def nbytes(self) -> int:
        """The memory that the code takes, about."""
        ...

    @property
    def workspace_bytes(self) -> int:
        """The memory of the workspaces that no call has."""
        ...

    def free_workspaces(self) -> int:
        """Free them; return how many bytes that is."""
        ...
