"""Kernels as Python source, to read and to run under CPython.

A value that is used once is written where it is used, unless something in between changes its operands or the line gets
too long; the other variables are numbered in the order of the text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from fnad.kernel import statements as code
from fnad.kernel.device import BARRIER, WARP_BARRIER
from fnad.kernel.forward import stored_arrays
from fnad.kernel.liveness import has_effect, has_no_code
from fnad.kernel.prelude import SPELLINGS, prelude, spelled, words_of
from fnad.kernel.routines import ROUTINES, routine_named
from fnad.scalar.notation import Text, written
from fnad.scalar.operation import BOOL, INDEX, Dtype, Kind, Operation, Pointer, real_dtype
from fnad.scalar.operations import DTYPES, FLOOR_DIVIDE, INVERT, LOGICAL_NOT, MIN, REMAINDER
from fnad.scalar.template import CASTS

LONGEST_LINE = 90
"""The most characters of a value that is written where it is used, without the numbers of variables."""

NUMBERED = re.compile(r"\b(v|k)\d+\b")
"""The variables that are numbered in the order of the text."""

WORDS = {code.LoopKind.PARALLEL: "prange", code.LoopKind.SPAN: "span"}
"""The functions of the counters of loops that are not in a `range`."""


def kernel_text(kernel: code.Kernel) -> str:
    """A kernel as a Python function."""
    body = inlined(kernel.body)
    parameters = ", ".join(parameter.name for parameter in kernel.parameters)
    lines = [f"def {kernel.name}({parameters}):", *_block(body, "    "), ""]
    return renumbered("\n".join(lines))


def module_text(kernels: Sequence[code.Kernel]) -> str:
    """Kernels as a Python module of Numba functions, which needs only NumPy and Numba."""
    text = "\n\n".join(f"@njit(error_model='numpy')\n{kernel_text(kernel)}" for kernel in kernels)
    return f"{prelude(text)}\n\n\n{text}"


def namespace(text: str = "") -> dict[str, object]:
    """The globals that a printed kernel is executed in as plain Python, on flat NumPy arrays."""
    called = {word: routine for word in words_of(text) if (routine := routine_named(word))}
    return {**ROUTINES, **called, **SPELLINGS, "prange": range, "span": range, "inf": float("inf"), "nan": float("nan")}


def plain_text(kernel: code.Kernel) -> str:
    """A kernel as it is, without comments: kernels are equal if these texts are."""
    parameters = ", ".join(f"{p.name}: {p.kind}" for p in kernel.parameters)
    return "\n".join([parameters, *_block(kernel.body, "", comments=False)])


# ---- statements --------------------------------------------------------------------------------------------------


def _block(statements: Sequence[code.Statement], indent: str, *, comments: bool = True) -> Iterator[str]:
    if has_no_code(statements):
        yield f"{indent}pass"
        return
    for statement in statements:
        if comments or not isinstance(statement, code.Comment):
            yield from _lines(statement, indent, comments)


def _lines(statement: code.Statement, indent: str, comments: bool) -> Iterator[str]:
    match statement:
        case code.For() | code.While():
            yield f"{indent}{_header(statement)}"
            yield from _block(statement.body, indent + "    ", comments=comments)
        case code.If():
            yield from _branches(statement, indent, "if", comments)
        case _:
            yield indent + _line(statement)


def _header(loop: code.For | code.While) -> str:
    if isinstance(loop, code.While):
        return "while True:"
    start, stop = _index(loop.start), _index(loop.stop)
    bounds = [start, stop, str(loop.step)]
    if loop.step == 1:
        bounds = [stop] if start == "0" else [start, stop]
    return f"for {loop.counter.name} in {WORDS.get(loop.kind, 'range')}({', '.join(bounds)}):"


def _branches(statement: code.If, indent: str, word: str, comments: bool) -> Iterator[str]:
    yield f"{indent}{word} {_value(statement.condition).text}:"
    yield from _block(statement.then, indent + "    ", comments=comments)
    match statement.otherwise:
        case []:
            pass
        case [code.If() as other]:
            yield from _branches(other, indent, "elif", comments)
        case otherwise:
            yield f"{indent}else:"
            yield from _block(otherwise, indent + "    ", comments=comments)


def _line(statement: code.Statement) -> str:
    match statement:
        case code.Assign(targets, value):
            return f"{', '.join(target.name for target in targets)} = {_value(value).text}"
        case code.Store(array, index, value):
            return f"{array.name}[{_index(index)}] = {_value(value).text}"
        case code.Evaluate(call):
            return _value(call).text
        case code.Comment(text):
            return f"# {text}"
        case code.Break():
            return "break"
        case code.Return():
            return "return"
        case _:
            raise AssertionError("loops and branches have lines of their own")


# ---- expressions -------------------------------------------------------------------------------------------------


def _index(expression: code.Expression) -> str:
    return str(expression.value) if isinstance(expression, code.Constant) else _value(expression).text


def _value(expression: code.Expression) -> Text:
    match expression:
        case code.Name(name, _):
            return Text(name)
        case code.Constant(value):
            return Text(constant_text(value))
        case code.Load(array, index):
            return Text(f"{array.name}[{_index(index)}]")
        case code.Apply():
            return _call(expression)


def _call(call: code.Apply) -> Text:
    operation, inner = call.operation, call.operands
    kind = inner[0].kind if inner else None
    bare = operation.symbol is not None or operation is MIN or any(isinstance(o.kind, Pointer) for o in inner)
    texts = [Text(_index(o)) if bare and _is_index(o) else _value(o) for o in inner]
    if operation is INVERT and kind == BOOL:
        return written(LOGICAL_NOT, texts)
    by_constant = kind == INDEX and len(inner) == 2 and isinstance(inner[1], code.Constant)
    divides = operation in (FLOOR_DIVIDE, REMAINDER) and not by_constant
    if operation.symbol is None or divides or spelled(operation, kind) == "divide_complex":
        return _function(operation, kind, texts)
    return _wrapped(written(operation, texts), call.kind)


def _function(operation: Operation, kind: Kind, operands: Sequence[Text]) -> Text:
    texts = [operand.text for operand in operands]
    if operation.name in DTYPES and isinstance(kind, np.dtype):
        texts = [_cast_from(kind, DTYPES[operation.name], texts[0])]
    return Text(f"{spelled(operation, kind)}({', '.join(texts)})")


def _cast_from(source: Dtype, target: Dtype, text: str) -> str:
    """The operand of a cast: the real part of a complex number; a float for a narrow integer by way of a wide one."""
    if source.kind == "c" and target.kind not in "cb":
        return _cast_from(real_dtype(source), target, f"real({text})")
    if source.kind == "f" and target.kind in "iu" and target != np.int32 and target.itemsize < INDEX.itemsize:
        return f"{'i64' if target == np.uint32 else 'i32'}({text})"
    return text


def _wrapped(text: Text, kind: Kind) -> Text:
    """An integer's text cast to its own width, where Numba would continue in 64 bits."""
    narrow = isinstance(kind, np.dtype) and kind.kind in "iu" and kind.itemsize < INDEX.itemsize
    return Text(f"{CASTS[kind]}({text.text})") if narrow else text  # type: ignore[index]


def _is_index(expression: code.Expression) -> bool:
    return isinstance(expression, code.Constant) and expression.kind == INDEX


def constant_text(value: np.generic) -> str:
    """A scalar as an expression of its dtype; a complex one by its parts, where its literal would be another number.

    >>> constant_text(np.float32(0.5)), constant_text(np.complex128(complex(-0.0, np.inf)))
    ('f32(0.5)', 'make_complex(f64(-0.0), f64(inf))')
    """
    if value.dtype.kind == "c" and not _is_literal(value.real, value.imag):
        return f"make_complex({constant_text(value.real)}, {constant_text(value.imag)})"
    return f"{CASTS[value.dtype]}({value.item()!r})"


def _is_literal(real: np.generic, imag: np.generic) -> bool:
    """True if Python's literal of a complex number, a sum or a negative, has the signs of its zeros."""
    has_signs = all(np.isfinite(part) and (part or not np.signbit(part)) for part in (real, imag))
    return has_signs and bool(real or not np.signbit(imag))


# ---- values where they are used ----------------------------------------------------------------------------------


def inlined(statements: Sequence[code.Statement]) -> list[code.Statement]:
    """The statements with values that are used once where they are used."""
    return _Inliner(statements).block(statements)


class _Inliner:
    """Puts values that are used once into the statement that uses them, block by block."""

    def __init__(self, statements: Sequence[code.Statement]) -> None:
        self.uses: Counter[str] = Counter()
        self.assignments = Counter(target.name for target in code.assigned(statements))
        for statement in code.walk(statements):
            self.uses.update(name.name for name in statement.names())
        self.pending: dict[str, code.Expression] = {}

    def block(self, statements: Sequence[code.Statement]) -> list[code.Statement]:
        outer, self.pending = self.pending, {}
        found: list[code.Statement] = []
        for statement in statements:
            inlined = statement.with_operands(self._inlined)
            if isinstance(statement, code.Assign) and self._is_for_later(inlined):
                self.pending[statement.targets[0].name] = inlined.value  # type: ignore[union-attr]
                continue
            found += self._flushed(inlined)
            found.append(inlined.with_bodies(self.block))
        found += [self._assignment(name) for name in list(self.pending)]
        self.pending = outer
        return found

    def _inlined(self, expression: code.Expression) -> code.Expression:
        if isinstance(expression, code.Name):
            return self.pending.pop(expression.name, expression)
        return expression.with_parts(self._inlined)

    def _is_for_later(self, statement: code.Statement) -> bool:
        assert isinstance(statement, code.Assign)
        (first, *others), value = statement.targets, statement.value
        if others or self.assignments[first.name] > 1 or self.uses[first.name] != 1 or isinstance(first.kind, Pointer):
            return False
        return not has_effect(value) and len(NUMBERED.sub(r"\1", _value(value).text)) <= LONGEST_LINE

    def _flushed(self, statement: code.Statement) -> list[code.Statement]:
        """The assignments that cannot wait until after a statement, since it changes what they read."""
        if isinstance(statement, code.For | code.While | code.If) or is_barrier(statement):
            late = list(self.pending)
        else:
            changed = set(stored_arrays([statement]))
            if isinstance(statement, code.Assign):
                changed |= {target.name for target in statement.targets}
            late = [name for name, value in self.pending.items() if changed & {n.name for n in code.names_read(value)}]
        return [self._assignment(name) for name in late]

    def _assignment(self, name: str) -> code.Assign:
        value = self.pending.pop(name)
        return code.Assign((code.Name(name, value.kind),), value)


def is_barrier(statement: code.Statement) -> bool:
    """True if other threads' stores are seen after a statement."""
    return isinstance(statement, code.Evaluate) and statement.call.operation in (BARRIER, WARP_BARRIER)


def renumbered(text: str) -> str:
    """A text with its variables numbered in order of appearance."""
    numbers: dict[str, str] = {}
    counts: Counter[str] = Counter()

    def name(match: re.Match[str]) -> str:
        found = match[0]
        if found not in numbers:
            numbers[found] = f"{match[1]}{counts[match[1]]}"
            counts[match[1]] += 1
        return numbers[found]

    def line(text: str) -> str:
        return text if text.lstrip().startswith("#") else NUMBERED.sub(name, text)

    return "\n".join(map(line, text.split("\n")))
