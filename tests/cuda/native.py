"""Device kernels on the host: what LLVM makes of them for a GPU, run by a thread of the system for each of a block's.

The module is the one that becomes PTX, with libdevice's functions, after all passes. In its text the numbers of thread
and block become arguments, what a block shares becomes memory of the host, barriers and shuffles become calls, and the
other instructions of a GPU functions of a few of LLVM's. So it shows what a pass has moved across a barrier, and what
libdevice gives where a function has no limit, of which the printed kernel (`harness.py`) knows nothing.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator, Sequence
from threading import Barrier, Thread
from typing import Any

import llvmlite.binding as llvm

from fnad.backends.cuda.ptx import linked, machine, module_text, optimized
from fnad.kernel.launches import Launch
from fnad.kernel.python_source import plain_text
from tests.gpu import Simulated

ARCH = "sm_90"
WAIT = 60
"""The seconds after which a thread is missing at a barrier."""


def with_numbers(found: re.Match[str]) -> str:
    """The head of a kernel's function with the numbers of thread and block as its last parameters."""
    return f"define {found[1]}{', '.join(filter(None, [found[2], 'i32 %thread', 'i32 %block']))}){found[3]}"


CALL = r"(?:tail )?call [^@\n]*@llvm\.nvvm\."
REWRITES: tuple[tuple[str, Any], ...] = (
    (rf"{CALL}read\.ptx\.sreg\.tid\.x\(\).*", "add i32 %thread, 0"),
    (rf"{CALL}read\.ptx\.sreg\.ctaid\.x\(\).*", "add i32 %block, 0"),
    (rf"{CALL}barrier[\w.]*\(.*", "call void @meet(i32 %thread, i32 0)"),
    (rf"{CALL}bar\.warp\.sync\(.*", "call void @meet(i32 %thread, i32 1)"),
    (rf"{CALL}shfl\.sync\.(down|up|idx)\.i32\(i32 -1, ([^)]*)\).*", r"call i32 @\1(i32 %thread, \2)"),
    (r"^define ptx_kernel (void @\w+\()(.+?)?\)( [^()]*\{)$", with_numbers),
    (r"addrspacecast \(ptr addrspace\(3\) (@[\w.]+) to ptr\)", r"\1"),
    (r" addrspace\(3\)", ""),
    (r"^target .*\n|^declare .*@llvm\.nvvm\..*\n|\"target-[a-z]+\"=\"[^\"]*\"", ""),
    (r"@llvm\.nvvm\.fabs\.", r"@llvm.fabs."),
    (r"@llvm\.nvvm\.(\w+)\.approx(?:\.ftz)?\.([df])(?:32)?\(", r"@\1.approx.\2("),
    (r"@llvm\.nvvm\.", "@"),
    (
        r"call (\{[^}]*\}|\w+) asm (?:sideeffect )?\"([^\"]*)\", \"[^\"]*\"\(",
        lambda found: f"call {found[1]} @{assembly(found[2])}(",
    ),
)

ASSEMBLY = {
    "rcp.approx.ftz.f32": "rcp.approx.f", "rsqrt.approx.ftz.f64": "rsqrt.approx.d", "sub.rn.": "sub.rn.f",
    "setp.equ.f64": "if_equal", "clo,chi": "multiply_add64", "mad.lo.cc.u32   $0": "multiply_add32",
    "mul.lo.u32": "multiply64", "sub.cc.u32": "sub128", "add.cc.u32": "add128", "ld.acquire": "acquire",
    "st.release": "release",
}  # fmt: skip
"""What assembly does, in libdevice and where blocks wait, by words that are in it."""


def assembly(text: str) -> str:
    return next(name for words, name in ASSEMBLY.items() if words in text)


def instructions() -> Iterator[str]:
    """The instructions of a GPU that libdevice asks for, on the host. What is approximate there is not here."""
    yield "declare void @meet(i32, i32)"
    yield from (f"declare i32 @{name}(i32, i32, i32, i32)" for name in ("down", "up", "idx"))
    for t, n in (("float", "f"), ("double", "d")):
        for name in ("add", "sub", "mul", "div"):
            yield defined(t, f"{name}.rn.{n}", f"{t} %a, {t} %b", f"%r = f{name} {t} %a, %b")
        yield defined(t, f"div.approx.{n}", f"{t} %a, {t} %b", f"%r = fdiv {t} %a, %b")
        for name, of in (("round", "rint"), ("sqrt.approx", "sqrt")):
            yield defined(t, f"{name}.{n}", f"{t} %a", f"%r = call {t} @llvm.{of}({t} %a)")
        root = f"%s = call {t} @llvm.sqrt({t} %a)\n%r = fdiv {t} 1.0, %s"
        yield defined(t, f"rsqrt.approx.{n}", f"{t} %a", root)
        for mode, of in (("rn", "rint"), ("rz", "trunc")):
            whole = f"%s = call {t} @llvm.{of}({t} %a)\n%r = call i32 @llvm.fptosi.sat.i32({t} %s)"
            yield defined("i32", f"{n}2i.{mode}", f"{t} %a", whole)
    yield defined("float", "ex2.approx.f", "float %a", "%r = call float @llvm.exp2(float %a)")
    yield defined("float", "lg2.approx.f", "float %a", "%r = call float @llvm.log2(float %a)")
    inside = "%s = call float @llvm.maxnum(float %a, float 0.0)\n%r = call float @llvm.minnum(float %s, float 1.0)"
    yield defined("float", "saturate.f", "float %a", inside)
    whole = "%s = bitcast double %a to i64\n"
    yield defined("i32", "d2i.lo", "double %a", whole + "%r = trunc i64 %s to i32")
    yield defined("i32", "d2i.hi", "double %a", whole + "%t = lshr i64 %s, 32\n%r = trunc i64 %t to i32")
    halves = "%s = zext i32 %a to i64\n%t = zext i32 %b to i64\n%u = shl i64 %t, 32\n%v = or i64 %u, %s\n"
    yield defined("double", "lohi.i2d", "i32 %a, i32 %b", halves + "%r = bitcast i64 %v to double")
    half = "%s = fdiv double 1.0, %a\n%t = bitcast double %s to i64\n%u = and i64 %t, -4294967296\n"
    yield defined("double", "rcp.approx.d", "double %a", half + "%r = bitcast i64 %u to double")
    yield defined("float", "rcp.approx.f", "float %a", "%r = fdiv float 1.0, %a")
    chosen = "%s = fcmp ueq double %a, %b\n%r = select i1 %s, double %c, double %d"
    yield defined("double", "if_equal", "double %a, double %b, double %c, double %d", chosen)
    for bits, name in ((32, "multiply_add"), (64, "multiply_add"), (64, "multiply")):
        has_sum = name == "multiply_add"
        wide = "".join(f"%{x}w = zext i{bits} %{x} to i{2 * bits}\n" for x in ("abc" if has_sum else "ab"))
        wide += f"%p = mul i{2 * bits} %aw, %bw\n%w = add i{2 * bits} %p, {'%cw' if has_sum else 0}\n"
        operands = ", ".join(f"i{bits} %{x}" for x in ("abc" if has_sum else "ab"))
        yield defined(f"{{ i{bits}, i{bits} }}", f"{name}{bits}", operands, wide + in_halves(bits))
    for name in ("sub", "add"):
        wide = "".join(f"%{x}w = zext i64 %{x} to i128\n" for x in "abcd")
        wide += "%bh = shl i128 %bw, 64\n%dh = shl i128 %dw, 64\n%x = or i128 %aw, %bh\n%y = or i128 %cw, %dh\n"
        wide += f"%w = {name} i128 %x, %y\n"
        operands = "i64 %a, i64 %b, i64 %c, i64 %d"
        yield defined("{ i64, i64 }", f"{name}128", operands, wide + in_halves(64))
    yield defined("i64", "acquire", "ptr %a", "%r = load atomic i64, ptr %a acquire, align 8")
    yield "define internal void @release(ptr %a, i64 %b) {\nstore atomic i64 %b, ptr %a release, align 8\nret void\n}"
    yield from map(rounded_down, ("add", "mul", "fma"), ("rz", "rz", "rz"))
    yield rounded_down("fma", "rm")


def in_halves(bits: int) -> str:
    """The lower and the upper half of a number."""
    pair = f"{{ i{bits}, i{bits} }}"
    wide = f"i{2 * bits}"
    halves = f"%l = trunc {wide} %w to i{bits}\n%h = lshr {wide} %w, {bits}\n%u = trunc {wide} %h to i{bits}\n"
    return halves + f"%q = insertvalue {pair} undef, i{bits} %l, 0\n%r = insertvalue {pair} %q, i{bits} %u, 1"


def defined(result: str, name: str, operands: str, body: str) -> str:
    return f"define internal {result} @{name}({operands}) {{\n{body}\nret {result} %r\n}}"


def rounded_down(name: str, mode: str) -> str:
    """An operation of single precision whose result is rounded to zero, or down: the nearest one or that before."""
    operands = ["%a", "%b", "%c"][: 3 if name == "fma" else 2]
    body = "\n".join(f"{x}w = fpext float {x} to double" for x in operands)
    given = ", ".join(f"double {x}w" for x in operands)
    exact = f"call double @llvm.fma({given})" if name == "fma" else f"f{name} double %aw, %bw"
    body += f"\n%w = {exact}\n%near = fptrunc double %w to float\n%back = fpext float %near to double\n"
    sizes = "".join(f"%{x}.size = call double @llvm.fabs(double %{x})\n" for x in ("w", "back"))
    if mode == "rz":
        body += sizes + "%far = fcmp ogt double %back.size, %w.size\n%down = bitcast i32 0 to float\n"
    else:
        body += "%far = fcmp ogt double %back, %w\n%down = bitcast i32 -8388608 to float\n"
    body += "%next = call float @nextafterf(float %near, float %down)\n%r = select i1 %far, float %next, float %near"
    return defined("float", f"{name}.{mode}.f", ", ".join(f"float {x}" for x in operands), body)


INSTRUCTIONS = {re.findall(r"@([\w.]+)\(", text)[0]: text for text in instructions()}


def host_text(launch: Launch) -> str:
    """The LLVM module of a kernel for the host."""
    text = str(optimized(linked(module_text([launch], ARCH)), machine(ARCH)))
    for pattern, replacement in REWRITES:
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    used = (instruction for name, instruction in INSTRUCTIONS.items() if f"@{name}(" in text)
    return "\n".join([text, "declare float @nextafterf(float, float)", *used])


class Meeting:
    """Where the threads of the block that runs wait for each other, and what lanes give to others."""

    def begin(self, threads: int, warp: int) -> None:
        self.warp, self.block = warp, Barrier(threads, timeout=WAIT)
        self.warps = [Barrier(min(warp, threads - start), timeout=WAIT) for start in range(0, threads, warp)]
        self.given = [0] * threads

    def meet(self, thread: int, is_of_warp: int) -> None:
        (self.warps[thread // self.warp] if is_of_warp else self.block).wait()

    def down(self, thread: int, value: int, lanes: int, limits: int) -> int:
        last = min(thread // self.warp * self.warp + self.warp, len(self.given)) - 1
        return self.exchanged(thread, value, min(thread + lanes, last))

    def up(self, thread: int, value: int, lanes: int, limits: int) -> int:
        return self.exchanged(thread, value, max(thread - lanes, thread // self.warp * self.warp))

    def idx(self, thread: int, value: int, lane: int, limits: int) -> int:
        return self.exchanged(thread, value, thread & (limits >> 8 & 31 | ~31) | lane)

    def exchanged(self, thread: int, value: int, source: int) -> int:
        self.given[thread] = value
        self.meet(thread, 1)
        found = self.given[source]
        self.meet(thread, 1)
        return found


MEETING = Meeting()
NUMBER = ctypes.c_int32
CALLBACKS: dict[str, Any] = {
    "meet": ctypes.CFUNCTYPE(None, NUMBER, NUMBER)(MEETING.meet),
    "down": ctypes.CFUNCTYPE(NUMBER, *[NUMBER] * 4)(MEETING.down),
    "up": ctypes.CFUNCTYPE(NUMBER, *[NUMBER] * 4)(MEETING.up),
    "idx": ctypes.CFUNCTYPE(NUMBER, *[NUMBER] * 4)(MEETING.idx),
}
COMPILED: dict[str, tuple[Callable[..., None], bool, Any]] = {}


def compiled(launch: Launch) -> tuple[Callable[..., None], bool]:
    """A kernel as a function of the addresses of its arrays, a thread and a block; equal ones are compiled once.

    And True if a thread waits for others.
    """
    key = f"{launch.kernel.name}: {plain_text(launch.kernel)}"
    if key not in COMPILED:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        for name, function in CALLBACKS.items():
            llvm.add_symbol(name, ctypes.cast(function, ctypes.c_void_p).value)
        host = llvm.Target.from_default_triple().create_target_machine(opt=0)  # LLVM's passes have run
        text = host_text(launch)
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), host)
        engine.finalize_object()
        types = [ctypes.c_void_p] * len(launch.kernel.parameters) + [NUMBER, NUMBER]
        function = ctypes.CFUNCTYPE(None, *types)(engine.get_function_address(launch.kernel.name))
        waits = re.search(rf"call \w+ @({'|'.join(CALLBACKS)})\(", text) is not None
        COMPILED[key] = function, waits, engine  # which owns the code
    return COMPILED[key][:2]


def run(launch: Launch, addresses: Sequence[int], warp: int = 32) -> None:
    """Run a launch on arrays at addresses, block after block."""
    function, waits = compiled(launch)
    for block in range(launch.blocks):
        if not waits:
            for n in range(launch.threads):
                function(*addresses, n, block)
            continue
        MEETING.begin(launch.threads, warp)
        threads = [Thread(target=function, args=(*addresses, n, block)) for n in range(launch.threads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


class Compiled(Simulated):
    """A device that runs what LLVM makes of kernels."""

    def run_kernel(self, launch: Launch, addresses: Sequence[int]) -> None:
        for parameter, address in zip(launch.kernel.parameters, addresses, strict=True):
            self.at(address, parameter.kind.dtype)  # which must still be in use
        run(launch, addresses, self.warp)
