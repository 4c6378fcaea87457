"""Native code that kernels of several sizes share.

Kernels that differ only in their numbers, and in which of their arrays are one, are a family. The first ones of it are
compiled as they are, since most programs have one size or two. The next one is compiled with what differs between those
seen so far as arguments (`fnad.kernel.generalize`). From then on a kernel that is an instance of that runs it with
numbers of its own, and one that is not has it generalized again. Temporaries share arrays by their sizes: each way they
do needs code of its own, since an array that a kernel writes has one name there, but what differs is known by then.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from weakref import WeakValueDictionary

from fnad import forks
from fnad.backends.cpu.compiler import NativeFunction, by_position, compile_kernel
from fnad.backends.cpu.loader import Code
from fnad.kernel.generalize import Number, Outline, Pattern, outlined
from fnad.kernel.statements import Kernel

ALONE = 2
"""The number of kernels of a family that have code of their own."""


class Family:
    """Kernels of one outline, but for which arrays are one. It lives as long as code of one of them."""

    def __init__(self, outline: Outline, numbers: Sequence[Number]) -> None:
        self._pattern = Pattern.of(outline, numbers)
        self._own: WeakValueDictionary[tuple[str, Sequence[Number]], NativeFunction] = WeakValueDictionary()
        self._general: dict[str, tuple[Pattern, NativeFunction]] = {}
        self._seen = 0
        self._lock = forks.lock()

    def code(self, kernel: Kernel, outline: Outline, text: str, numbers: Sequence[Number]) -> Code:
        """The code of a kernel, of which the outline has this text; compiled if there is none that fits."""
        with self._lock:
            own = self._own.get((text, numbers))
            if own is not None:
                return Code(own, (), self)
            pattern, general = self._general.get(text, (None, None))
            if pattern is None or general is None or not pattern.fits(numbers):
                return self._compiled(kernel, outline, text, numbers)
            return Code(general, pattern.arguments(outline, numbers), self)

    def _compiled(self, kernel: Kernel, outline: Outline, text: str, numbers: Sequence[Number]) -> Code:
        pattern = self._pattern.joined(numbers)
        if self._seen < ALONE:
            native = self._own[text, numbers] = compile_kernel(kernel, f"{text}\n{numbers}")
            code = Code(native, (), self, is_alone=True)
        else:
            native = compile_kernel(pattern.kernel(outline))
            self._general[text] = pattern, native
            code = Code(native, pattern.arguments(outline, numbers), self)
        self._pattern = pattern
        self._seen += 1
        return code


_FAMILIES: WeakValueDictionary[str, Family] = WeakValueDictionary()
"""Families by the text of their outlines without the names of arrays."""


def code_of(kernel: Kernel) -> Code:
    """The native code of a kernel, which programs share: the steps of an unrolled loop are alike."""
    kernel = by_position(kernel)
    outline, numbers = outlined(kernel)
    text = outline.text
    key = without_arrays(kernel, text)
    family = _FAMILIES.get(key) or _FAMILIES.setdefault(key, Family(outline, numbers))
    return family.code(kernel, outline, text, numbers)


def without_arrays(kernel: Kernel, text: str) -> str:
    """The text of a kernel with the kinds of its parameters in the place of their names."""
    kinds = {parameter.name: str(parameter.kind) for parameter in kernel.parameters}
    return re.sub(r"\ba\d+\b", lambda name: kinds[name[0]], text.partition("\n")[2])
