"""Lines of user code in LLVM's debug information.

All kernels of a module are said to come from one file, whose line n is number n of a table of sources: so the mode of a
derivative is separate from the line that it differentiates.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import llvmlite.ir as ir

from fnad.backends.llvm.emitter import Builder, Value
from fnad.ir.program import Source

HELD = "held"
"""The symbol of a variable of the module: the line whose library call is under way, or 0."""

FRAME = "frame"
"""The symbol of another one: the stack pointer of the function with lines that runs, or 0."""

LONG = ir.IntType(64)

SAVE = "llvm.stacksave.p0"
"""The instruction that reads the stack pointer."""

LINES_ONLY = 2
"""The kind of debug information that LLVM calls `LineTablesOnly`."""


class LineTable:
    """The sources of a module's instructions, of which source n - 1 has the line n."""

    def __init__(self, module: ir.Module) -> None:
        self.sources: list[Source] = []
        self._numbers: dict[tuple[Source, str], int] = {}
        self._module = module
        self._held, self._frame = (ir.GlobalVariable(module, LONG, name) for name in (HELD, FRAME))
        self._held.initializer = self._frame.initializer = LONG(0)
        self._file = module.add_debug_info("DIFile", {"filename": "user code", "directory": ""})
        unit = {
            "language": ir.DIToken("DW_LANG_C"),
            "file": self._file,
            "producer": "fnad",
            "isOptimized": True,
            "runtimeVersion": 0,
            "emissionKind": LINES_ONLY,
        }
        self._unit = module.add_debug_info("DICompileUnit", unit, is_distinct=True)
        module.add_named_metadata("llvm.dbg.cu", self._unit)
        for name, value in (("Debug Info Version", 3), ("Dwarf Version", 4)):
            module.add_named_metadata("llvm.module.flags", [ir.IntType(32)(2), name, ir.IntType(32)(value)])

    def scope(self, function: ir.Function) -> Any:
        """The scope of the lines of a function."""
        signature = self._module.add_debug_info("DISubroutineType", {"types": self._module.add_metadata([])})
        about = {
            "name": function.name,
            "scope": self._file,
            "file": self._file,
            "line": 0,
            "type": signature,
            "isDefinition": True,
            "isOptimized": True,
            "unit": self._unit,
        }
        found = self._module.add_debug_info("DISubprogram", about, is_distinct=True)
        function.set_metadata("dbg", found)
        return found

    def number(self, source: Source) -> int:
        """The line of a source."""
        number = self._numbers.setdefault((source, source.mode), len(self._numbers) + 1)
        if number > len(self.sources):
            self.sources.append(source)
        return number

    def location(self, source: Source, scope: Any) -> Any:
        """The location of an instruction of a source."""
        about = {"line": self.number(source), "column": 1, "scope": scope}
        return self._module.add_debug_info("DILocation", about)

    def enter(self, builder: Builder) -> Value:
        """Store the stack pointer in `FRAME` at the begin of a function; return the value before."""
        pointer = ir.IntType(8).as_pointer()
        save = self._module.globals.get(SAVE) or ir.Function(self._module, ir.FunctionType(pointer, []), SAVE)
        before = builder.load(self._frame)
        _store(builder, builder.ptrtoint(builder.call(save, []), LONG), self._frame)
        return before

    def leave(self, builder: Builder, before: Value) -> None:
        """Restore `FRAME` at the end of a function."""
        _store(builder, before, self._frame)

    @contextmanager
    def held(self, builder: Builder, source: Source | None) -> Generator[None, None, None]:
        """A block of instructions that call a library, during which the variable `HELD` is the line."""
        _store(builder, LONG(0 if source is None else self.number(source)), self._held)
        yield
        _store(builder, LONG(0), self._held)


def _store(builder: Builder, value: Value, variable: Value) -> None:
    """Store a value where the handler of a signal reads it, outside of what LLVM analyses."""
    builder.store_atomic(value, variable, "monotonic", 8)


class LinedModule(ir.Module):  # pyright: ignore[reportUntypedBaseClass]
    """A module whose instructions have lines."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.lines = LineTable(self)
