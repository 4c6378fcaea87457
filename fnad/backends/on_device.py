"""Programs that run on a device, in whose memory the interpreter has nothing to do.

They are compiled at the first call, and what the compiler cannot lower is an error: to run it on the host all the same
would copy its arrays there and back in silence. `executor="interpreter"` asks for just that.
"""

from __future__ import annotations

from collections.abc import Sequence

from fnad import config
from fnad.backends.base import Array, Executor, Native
from fnad.backends.tiers import TieredProgram
from fnad.errors import LoweringError
from fnad.ir.program import Program
from fnad.placement import driver, on_host
from fnad.store import now, uncollected


class DeviceProgram(TieredProgram):
    """A program on a device, and the native code made of it, by the settings under which it was given."""

    def __init__(self, program: Program, donated: Sequence[int] = ()) -> None:
        super().__init__(program, donated)
        self._scatter_add: config.ScatterAddName = config.current().scatter_add

    def executor(self, *, eager: bool = False, often: bool = False) -> Executor:
        """The executor for the next run."""
        self.used = now()
        return self._on_host if config.current().executor == "interpreter" else self.native()

    def native(self) -> Native:
        """Native code; raises `LoweringError` for what the device cannot do."""
        native = self.code or self._compiled()
        assert native is not None
        return native

    def interpreted(self) -> Executor:
        """The executor that interprets the program on the host; the results are on the device."""
        return self._on_host

    def _on_host(self, arguments: Sequence[Array]) -> list[Array]:
        return list(map(driver().to_device, self._interpret(list(map(on_host, arguments)))))

    def _compile(self) -> tuple[Native, None]:
        driver()  # without which there is nothing to compile for
        try:
            with uncollected(), config.override(scatter_add=self._scatter_add):
                return self._backend.compiler.compile_program(self.simplified, self._donated), None
        except LoweringError as error:
            raise error.at(None, ON_HOST) from None


ON_HOST = (
    "run it on the CPU, fnad.jit(f, device='cpu'); or interpret it there, with copies of all arrays, in a block under "
    "fnad.config.override(executor='interpreter')"
)
