"""The key of native code besides its kernel: the surroundings, and LLVM with its description of this CPU."""

from __future__ import annotations

from functools import cache

import llvmlite.binding as llvm

from fnad import disk
from fnad.backends.cpu import vector_math
from fnad.backends.cpu.objects import DATA, IS_KNOWN
from fnad.backends.surroundings import surroundings


@cache
def fingerprint() -> bytes:
    """A digest of all of it."""
    features = llvm.get_host_cpu_features().flatten()
    machine = (llvm.llvm_version_info, llvm.get_process_triple(), llvm.get_host_cpu_name(), features)
    return disk.digest(surroundings(), repr((*machine, vector_math.available(), DATA, IS_KNOWN)).encode()).encode()
