"""Kernels as PTX: by LLVM's NVPTX back end, which is part of llvmlite, with functions of libdevice.

No GPU is needed, nor any other part of CUDA.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import llvmlite.ir as ir

from fnad.backends.cuda.libdevice import NAME, libdevice
from fnad.backends.cuda.target import CUDA
from fnad.backends.llvm.instructions import add_function
from fnad.backends.llvm.passes import free, take_apart
from fnad.errors import LoweringError
from fnad.kernel.launches import Launch

TRIPLE = "nvptx64-nvidia-cuda"
FEATURES, OF_MANY_ARRAYS = "+ptx80", "+ptx81"
"""The versions of PTX that kernels are written in: for the second one the driver has to be for CUDA 12.1."""

FEW_ARRAYS, MOST_ARRAYS = 512, 4095
"""The most arrays of a kernel in each of them."""

ARCHITECTURES = (70, 72, 75, 80, 86, 87, 89, 90)
"""Those that this version of PTX has, of which LLVM ends the process for others; a later GPU takes PTX for the last."""

ALIGNMENT = 16
"""The divisor of each array's address: the bytes that a thread loads and stores at once."""

ANY_REGISTERS = 256
"""The most threads of a block each of which may have all the registers that a thread can have."""

DECLARATION = re.compile(r'^declare [^@\n]*@"?(?P<name>[\w.]+)"?\(.*\n', re.MULTILINE)


@cache
def machine(arch: str, features: str = FEATURES) -> Any:
    """The target machine of an architecture, such as sm_90."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    found = re.fullmatch(r"sm_(\d+)[af]?", arch)
    written_for = [known for known in ARCHITECTURES if found is not None and known <= int(found[1])]
    if not written_for:
        raise LoweringError(f"{arch!r} is no architecture of a GPU of NVIDIA from 'sm_{ARCHITECTURES[0]}' on")
    cpu = f"sm_{written_for[-1]}"
    return llvm.Target.from_triple(TRIPLE).create_target_machine(cpu=cpu, features=features, opt=3)


def ptx_of(launch: Launch, arch: str = "sm_90") -> str:
    """The PTX of a kernel: its entry is `kernel`, with a parameter of 8 bytes for each array."""
    return ptx_of_all([replace(launch, kernel=replace(launch.kernel, name="kernel"))], arch)


def ptx_of_all(launches: Sequence[Launch], arch: str = "sm_90") -> str:
    """The PTX of several kernels, whose entries have their names; raises `LoweringError` for what PTX cannot say."""
    arrays = max((len(launch.kernel.parameters) for launch in launches), default=0)
    if arrays > MOST_ARRAYS:
        raise LoweringError(f"{CUDA.name} has kernels of at most {MOST_ARRAYS} arrays, not of {arrays}")
    written_for = machine(arch, FEATURES if arrays <= FEW_ARRAYS else OF_MANY_ARRAYS)
    return written_for.emit_assembly(optimized(linked(module_text(launches, arch)), written_for))


def module_text(launches: Sequence[Launch], arch: str) -> str:
    """The LLVM module of several kernels, which declares the functions of libm that they call."""
    module = ir.Module("kernels")
    module.triple, module.data_layout = TRIPLE, str(machine(arch).target_data)
    for launch in launches:
        function = add_function(module, launch.kernel, CUDA)
        if launch.threads > ANY_REGISTERS:
            threads = ir.Constant(ir.IntType(32), launch.threads)
            module.add_named_metadata("nvvm.annotations", [function, ir.MetaDataString(module, "maxntidx"), threads])
        function.linkage, function.calling_convention = "", "ptx_kernel"
        for argument in function.args:
            argument.attributes.align = ALIGNMENT
    text = str(module)
    take_apart(module)
    return text


def optimized(text: str, machine: Any) -> Any:
    """The module of a text after LLVM's passes, which inline the functions of libdevice."""
    parsed = llvm.parse_assembly(text)
    parsed.verify()
    options = llvm.PipelineTuningOptions(speed_level=2)
    builder = llvm.create_pass_builder(machine, options)
    passes = builder.getModulePassManager()
    passes.run(parsed, builder)
    free(passes)
    return parsed


def linked(text: str) -> str:
    """A module's text with the functions of libdevice that it declares by their names in C."""
    declared = [name for name in DECLARATION.findall(text) if not name.startswith("llvm.")]
    if not declared:
        return text
    library = libdevice()
    for name in declared:
        if f"__nv_{name}" not in library.parts:
            raise LoweringError(f"{CUDA.name} has no function {name}")
    text = DECLARATION.sub(lambda found: found[0] if found["name"] not in declared else "", text)
    text = re.sub(r'@"?(\w+)"?\(', lambda found: f"@__nv_{found[1]}(" if found[1] in declared else found[0], text)
    known = {*NAME.findall("\n".join(re.findall(r"^(?:define|declare|@).*?(?=\(|=)", text, re.MULTILINE)))}
    needed = [name for name in library.needed(f"__nv_{name}" for name in declared) if name not in known]
    header, definitions = text[: (end := text.index("\n\n"))], text[end:]
    return "\n".join([header, library.shared, *(library.parts[name] for name in needed), definitions])
