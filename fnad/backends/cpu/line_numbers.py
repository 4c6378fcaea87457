"""The line of each address of object code, from its debug information: the line program of DWARF, version 4."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

import llvmlite.binding as llvm

LINES, RELOCATIONS, TEXTS = b".debug_line", b".rela.debug_line", (b".text", b".ltext")
"""Sections of an object file: the line program, its relocations, instructions."""

RELOCATION = Struct("<QQq")
"""A relocation: its place, its kind, and the addend, which is the offset of a function with lines."""

SYMBOLS, SYMBOL, FUNCTION = b".symtab", Struct("<IBBHQQ"), 2
"""The table of symbols, a record of it (name, kind, visibility, section, value, size), and the kind of a function."""

LINELESS = -1

END_OF_SEQUENCE, SET_ADDRESS = 1, 2
"""Extended operations."""

COPY, ADVANCE_ADDRESS, ADVANCE_LINE, ADD_CONSTANT, ADVANCE_FIXED = 1, 2, 3, 8, 9
"""Standard operations; the operands of others do not concern lines."""


class LineMap(NamedTuple):
    """The lines of code of `size` bytes: from each offset in `starts` on, the line at its place in `lines`.

    It is 0 for instructions of several lines, and `LINELESS` in functions without lines.
    """

    size: int
    starts: list[int]
    lines: list[int]

    def line(self, offset: int) -> int:
        """The line of the instruction at an offset."""
        place = bisect_right(self.starts, offset) - 1
        return self.lines[place] if place >= 0 else LINELESS


def line_map(code: bytes) -> LineMap:
    """The lines of object code with one section of instructions."""
    file = llvm.ObjectFileRef.from_data(code)
    names = (LINES, RELOCATIONS, SYMBOLS, *TEXTS)
    contents = {section.name(): section.data() for section in file.sections() if section.name() in names}
    functions = [addend for _, _, addend in RELOCATION.iter_unpack(contents.get(RELOCATIONS, b""))]
    rows = list(_rows(contents[LINES], iter(functions))) if functions else []
    # The row before a function without lines goes on into it.
    records = SYMBOL.iter_unpack(contents[SYMBOLS])
    rows += [(value, LINELESS) for _, kind, _, _, value, _ in records if kind % 16 == FUNCTION]
    rows.sort()
    size = max(len(contents.get(name, b"")) for name in TEXTS)
    return LineMap(size, [offset for offset, _ in rows], [line for _, line in rows])


def _rows(program: bytes, functions: Iterator[int]) -> Iterator[tuple[int, int]]:
    """The rows (offset, line) of a line program that sets its address to the offsets of these functions."""
    header = int.from_bytes(program[6:10], "little")
    step, base, spread, first = program[10], int.from_bytes(program[13:14], "little", signed=True), *program[14:16]
    at, address, line = 10 + header, 0, 1
    while at < len(program):
        operation, at = program[at], at + 1
        if operation >= first:
            advance, change = divmod(operation - first, spread)
            address, line = address + step * advance, line + base + change
            yield address, line
        elif operation == 0:
            length, at = _unsigned(program, at)
            if program[at] == END_OF_SEQUENCE:
                yield address, LINELESS
                line = 1
            elif program[at] == SET_ADDRESS:
                address = next(functions)
            at += length
        elif operation == COPY:
            yield address, line
        else:
            advance, change, at = _standard(program, operation, at)
            address, line = address + step * advance, line + change


def _standard(program: bytes, operation: int, at: int) -> tuple[int, int, int]:
    """The steps and lines by which a standard operation advances, and the place behind it."""
    spread, first = program[14:16]
    if operation == ADVANCE_LINE:
        change, at = _signed(program, at)
        return 0, change, at
    if operation == ADD_CONSTANT:
        return (255 - first) // spread, 0, at
    if operation == ADVANCE_FIXED:
        return int.from_bytes(program[at : at + 2], "little") // program[10], 0, at + 2
    advance = 0
    for _ in range(program[15 + operation]):
        advance, at = _unsigned(program, at)
    return advance if operation == ADVANCE_ADDRESS else 0, 0, at


def _unsigned(program: bytes, at: int) -> tuple[int, int]:
    """An integer in groups of seven bits, and the place behind it."""
    value = shift = 0
    while True:
        byte, at = program[at], at + 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, at


def _signed(program: bytes, at: int) -> tuple[int, int]:
    value, end = _unsigned(program, at)
    bits = 7 * (end - at)
    return value - (1 << bits) if value >> (bits - 1) else value, end
