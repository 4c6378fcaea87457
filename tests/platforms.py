"""macOS and Windows, simulated on Linux: a script, since what it takes away stays away.

    python tests/platforms.py run win32 FOLDER         run programs where Python is as on Windows, with the home FOLDER
    python tests/platforms.py symbols win32            print symbols of objects for it, and those it lacks
    python tests/platforms.py fused                    print fused multiply-adds, which no operation is
    python tests/platforms.py code FOLDER              write the LLVM code for Windows that `windows.c` runs
    python tests/platforms.py compare FOLDER           compare its results with those of NumPy

What its libraries have is in `tests/exports`. The functions of kernel32 that start and wake threads are made of POSIX
threads; `dir_fd`, links that are not followed, and descriptors of directories are refused as Windows refuses them.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import multiprocessing  # noqa: F401 - like others, loaded as Linux has it
import os
import pkgutil
import platform as machine
import random  # noqa: F401
import re
import shutil
import signal
import struct
import subprocess  # noqa: F401
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import llvmlite.binding as llvm
import numba  # noqa: F401
import numpy as np
import optree  # noqa: F401
import scipy.linalg
import scipy.special
import scipy.special.cython_special

# ruff: noqa: PLC0415 - fnad is loaded after things are taken away

EXPORTS = Path(__file__).parent / "exports"

BITS = 16242730742183356629, 6679402142117448868, 5892734326067077929
"""The first bits of key 0."""

TRIPLES = {
    "win32": (("x86_64-pc-windows-msvc", "x86-64"),),
    "darwin": (("arm64-apple-macosx12.0", "apple-m1"), ("x86_64-apple-macosx12.0", "x86-64")),
}
"""The targets of a platform, each with its oldest processor."""

LACKS: dict[str, dict[Any, tuple[str, ...]]] = {
    "darwin": {os: ("sched_getaffinity", "sched_setaffinity", "O_TMPFILE", "O_DIRECT")},
    "win32": {
        os: (
            *("register_at_fork", "fork", "geteuid", "getuid", "getgid", "getegid", "getpgid", "killpg", "setsid"),
            *("sched_getaffinity", "sched_setaffinity", "uname", "confstr", "sysconf", "mkfifo", "chown", "lchown"),
            *("O_NOFOLLOW", "O_DIRECTORY", "O_NONBLOCK", "O_CLOEXEC", "fchown", "pread", "pwrite", "getloadavg"),
            *("WNOHANG", "waitid", "nice", "pipe2", "statvfs", "fchdir", "getpriority"),
        ),
        signal: (
            *("pthread_sigmask", "pthread_kill", "sigwait", "setitimer", "alarm", "SIGALRM", "SIGKILL", "SIGUSR1"),
            *("SIGHUP", "SIG_SETMASK", "SIG_BLOCK", "SIGCHLD", "siginterrupt", "pause"),
        ),
        time: ("clock_gettime", "clock_gettime_ns", "CLOCK_MONOTONIC", "CLOCK_THREAD_CPUTIME_ID", "tzset"),
    },
}
MODULES = {"darwin": ("winreg", "msvcrt"), "win32": ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty")}
"""Names and modules that a platform's Python does not have."""

KERNEL32 = """
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_timedwait(ptr, ptr, ptr)
declare i32 @pthread_cond_signal(ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
declare i32 @clock_gettime(i32, ptr)
declare i32 @sched_yield()
define void @AcquireSRWLockExclusive(ptr %lock) {
  call i32 @pthread_mutex_lock(ptr %lock)
  ret void
}
define void @ReleaseSRWLockExclusive(ptr %lock) {
  call i32 @pthread_mutex_unlock(ptr %lock)
  ret void
}
define i32 @SleepConditionVariableSRW(ptr %condition, ptr %lock, i32 %milliseconds, i32 %flags) {
  %forever = icmp eq i32 %milliseconds, -1
  br i1 %forever, label %wait, label %wait_in_vain
wait:
  call i32 @pthread_cond_wait(ptr %condition, ptr %lock)
  ret i32 1
wait_in_vain:
  %time = alloca [2 x i64]
  call i32 @clock_gettime(i32 0, ptr %time)
  %seconds = load i64, ptr %time
  %later = add i64 %seconds, 1
  store i64 %later, ptr %time
  %error = call i32 @pthread_cond_timedwait(ptr %condition, ptr %lock, ptr %time)
  %woken = icmp eq i32 %error, 0
  %answer = zext i1 %woken to i32
  ret i32 %answer
}
define void @WakeConditionVariable(ptr %condition) {
  call i32 @pthread_cond_signal(ptr %condition)
  ret void
}
define void @WakeAllConditionVariable(ptr %condition) {
  call i32 @pthread_cond_broadcast(ptr %condition)
  ret void
}
define i32 @QueryPerformanceCounter(ptr %count) {
  %time = alloca [2 x i64]
  call i32 @clock_gettime(i32 1, ptr %time)
  %fraction = getelementptr i64, ptr %time, i64 1
  %seconds = load i64, ptr %time
  %nanoseconds = load i64, ptr %fraction
  %whole = mul i64 %seconds, 10000000
  %ticks = udiv i64 %nanoseconds, 100
  %sum = add i64 %whole, %ticks
  store i64 %sum, ptr %count
  ret i32 1
}
define i32 @QueryPerformanceFrequency(ptr %frequency) {
  store i64 10000000, ptr %frequency
  ret i32 1
}
define i64 @CreateThread(ptr %attributes, i64 %stack, ptr %function, ptr %argument, i32 %flags, ptr %id) {
  %handle = alloca i64
  %error = call i32 @pthread_create(ptr %handle, ptr null, ptr %function, ptr %argument)
  %thread = load i64, ptr %handle
  %is_started = icmp eq i32 %error, 0
  %found = select i1 %is_started, i64 %thread, i64 0
  ret i64 %found
}
define i32 @WaitForSingleObject(i64 %handle, i32 %milliseconds) {
  call i32 @pthread_join(i64 %handle, ptr null)
  ret i32 0
}
define i32 @CloseHandle(i64 %handle) {
  ret i32 1
}
define i32 @SwitchToThread() {
  call i32 @sched_yield()
  ret i32 1
}
"""

# ---- Python as it is there -------------------------------------------------------------------------------------------


def pretend(platform: str, home: str) -> None:
    """Take away what the platform does not have; other packages are loaded before, as Linux has them."""
    machine.platform()  # this and the next are kept
    machine.processor()
    sys.platform = platform
    os.environ.update(HOME=home, LOCALAPPDATA=f"{home}/AppData/Local")
    os.environ.pop("XDG_CACHE_HOME", None)
    for module, names in LACKS[platform].items():
        for name in names:
            vars(module).pop(name, None)
    tempfile._O_TMPFILE_WORKS = False  # type: ignore[attr-defined]
    sys.modules.update(dict.fromkeys(MODULES[platform]))  # type: ignore[arg-type]
    open_path, load = Path.open, llvm.load_library_permanently
    Path.open = lambda self, *args, **options: open_path(missing(self), *args, **options)  # type: ignore[method-assign]
    llvm.load_library_permanently = lambda name: refuse(RuntimeError(name)) if "mvec" in name else load(name)
    if platform == "win32":
        pretend_windows()


def missing(path: Path) -> Path:
    return Path("/no/such/place") if path.is_relative_to("/proc") else path


def refuse(error: BaseException) -> Any:
    raise error


def pretend_windows() -> None:
    shutil.which = lambda *_, **__: None  # type: ignore[assignment] - Windows' own function looks for programs
    for name in ("open", "stat", "mkdir", "unlink", "utime", "replace"):
        setattr(os, name, without_descriptors(getattr(os, name), follows=name == "utime"))
    listed, opened = os.listdir, os.open
    os.listdir = lambda path=".": refuse(TypeError("a descriptor")) if isinstance(path, int) else listed(path)
    os.open = lambda path, *args, **options: (
        refuse(PermissionError(13, path)) if Path(path).is_dir() else opened(path, *args, **options)
    )
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(KERNEL32), machine)
    engine.finalize_object()
    for name in re.findall(r"define \w+ @(\w+)", KERNEL32):
        llvm.add_symbol(name, engine.get_function_address(name))
    real = ctypes.CDLL
    libraries = {
        "ntdll": SimpleNamespace(__chkstk=real(None).abort),
        "ucrtbase": SimpleNamespace(_hypotf=real("libm.so.6").hypotf),
    }

    def load(name: str | None, *args: Any, **options: Any) -> Any:
        if name is None:
            raise TypeError("expected str, bytes or os.PathLike object, not NoneType")
        return libraries.get(name) or real(name, *args, **options)

    kept: list[Any] = [engine]
    for name in ("feclearexcept", "fetestexcept"):
        call = partial(lambda f, flag: f({1: 32, 16: 1}[flag]), getattr(real("libm.so.6"), name))  # inexact, invalid
        kept.append(ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(call))
        llvm.add_symbol(name, ctypes.cast(kept[-1], ctypes.c_void_p).value)
    ctypes.CDLL = load  # type: ignore[assignment, misc]
    pretend_windows.kept = kept  # type: ignore[attr-defined]


def without_descriptors(function: Callable[..., Any], *, follows: bool) -> Callable[..., Any]:
    """Return a function of `os` that refuses what Windows does."""

    def call(*args: Any, **options: Any) -> Any:
        given = [options.pop(name, None) for name in ("dir_fd", "src_dir_fd", "dst_dir_fd")]
        if any(descriptor is not None for descriptor in given):
            raise NotImplementedError("dir_fd unavailable on this platform")
        if follows and not options.pop("follow_symlinks", True):
            raise NotImplementedError("follow_symlinks unavailable on this platform")
        return function(*args, **options)

    return call


# ---- programs --------------------------------------------------------------------------------------------------------


def run(platform: str, home: str) -> Iterator[tuple[str, bool]]:
    """Yield each program by its name, and whether it is right."""
    pretend(platform, home)
    import fnad
    from fnad import disk
    from fnad.backends.cpu import system, threads, vector_math

    rng = np.random.default_rng(0)
    x, large, a = rng.standard_normal(5), rng.standard_normal(300_000), rng.standard_normal((40, 40))
    z, p = (x + 1j).astype("c8"), x**2
    assert (platform == "win32") == system.IS_WINDOWS
    assert not vector_math.available()

    def near(found: Any, want: Any) -> bool:
        return bool(np.allclose(found, want, rtol=1e-6 if np.asarray(found).dtype in ("c8", "f4") else 1e-11))

    def is_right(f: Callable[..., Any], want: Any, *arguments: Any) -> bool:
        compiled = fnad.jit(f)
        return all(near(compiled(*arguments), want) for _ in range(3))

    yield "grad", near(fnad.grad(lambda x: np.sum(np.sin(x) * x))(x), np.sin(x) + x * np.cos(x))
    with fnad.config.override(executor="compiled"):
        yield "jit", is_right(fnad.grad(lambda x: np.sum(np.exp(np.sin(x)))), np.exp(np.sin(x)) * np.cos(x), x)
        yield "matmul", is_right(fnad.grad(lambda a: np.sum(a @ a)), a.sum(0)[:, None] + a.sum(1), a)
        yield "linalg", is_right(lambda a: np.linalg.slogdet(a)[1], np.linalg.slogdet(a)[1], a)
        yield "flags", is_right(np.linalg.cholesky, np.linalg.cholesky(a @ a.T), a @ a.T)
        yield "complex", is_right(lambda z: np.exp(z), np.exp(z), z)
        yield "hypot", is_right(lambda z: np.abs(z), np.abs(z), z)
        yield "scan", is_right(lambda x: fnad.scan(lambda c, _: (c * x, None), x, None, length=9)[0], x**10, x)
        yield "callback", is_right(lambda x: fnad.callback(lambda v: v * 2, x, result=x), 2 * x, x)
        yield "special", is_right(fnad.grad(lambda x: np.sum(scipy.special.gammaln(x))), scipy.special.digamma(p), p)
        yield "random", is_right(lambda: fnad.random.bits(fnad.random.key(0), (3,)), np.array(BITS, "u8"))

        threads.use(3)
        threads.workers().field("threshold").value = -1  # threads are woken whatever it costs
        gradient = fnad.jit(fnad.value_and_grad(lambda x: np.sum(np.exp(np.sin(x)))))
        many = [gradient(large) for _ in range(4)]
        with fnad.config.override(threads=1):
            one = gradient(large)
        yield (
            "threads",
            len(threads.workers().threads) == 2 and all(v == one[0] and np.array_equal(g, one[1]) for v, g in many),
        )
        threads.workers().stop()
        yield "no threads", not threads.workers().threads and near(gradient(large)[0], np.sum(np.exp(np.sin(large))))

        places = {"darwin": "Library/Caches/fnad", "win32": "AppData/Local/fnad"}
        cache = disk.current()
        assert cache is not None
        yield "cache", cache.directory == Path(home, places[platform]) and any(cache.entries())
        key = disk.digest(b"an entry")
        cache.write(key, b"content")
        cache.write(key, b"content")
        yield "entry", cache.read(key) == b"content" and {e.is_whole for e in cache.entries()} == {True}
        damaged = cache.directory / key[:2] / key[2:]
        damaged.write_bytes(b"damaged")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            nothing = cache.read(key)
        yield "damage", nothing is None and not damaged.exists() and "is damaged" in str(caught[0].message)
    if platform == "win32":
        yield (
            "elsewhere",
            "is not in" in str(disk.at("/tmp/elsewhere-that-others-write").refusal or made_elsewhere(disk)),
        )

        replace = os.replace
        os.replace = lambda *names, **options: refuse(PermissionError(13, "in use"))
        cache.write(key, b"content")
        os.replace = replace
        yield "a file in use", cache.read(key) is None and {e.is_whole for e in cache.entries()} == {True}
    sys.modules["mpi4py"] = None  # type: ignore[assignment]  # what is installed is for this machine
    names = {each.name for each in pkgutil.walk_packages(fnad.__path__, "fnad.")}
    for name in names - {"fnad.__main__"} - ({"fnad.backends.cpu.posix"} if platform == "win32" else set()):
        import_module(name)
    yield "imports", True
    from fnad.cli.doctor import report

    told = report()
    yield "doctor", "is right" in told and "no libmvec" in told and "f64: cbrt, sin, " in told


def made_elsewhere(disk: Any) -> str:
    """Return why a directory that is not in the home is not made."""
    try:
        disk._make(Path("/tmp/elsewhere-that-others-write"))
    except disk.RefusedError as error:
        return str(error)
    return ""


# ---- objects ---------------------------------------------------------------------------------------------------------


def sources() -> Iterator[tuple[str, list[str]]]:
    """Yield kernels that call all functions by name, each with the dtypes of its parameters."""
    from fnad.backends.cpu import functions

    for dtype in ("f4", "f8", "c8", "c16"):
        known = [f for f in functions.FUNCTIONS if dtype[0] == "f" or f.name in functions.COMPLEX]
        calls = [f"{f.name}({', '.join(['x[i]', 'y[i]'][: f.arity])})" for f in known]
        calls += ["power(x[i], y[i])", "sqrt(x[i])", "abs(x[i])"]
        calls += ["x[i] // y[i]", "x[i] % y[i]", "floor(x[i])", "rint(x[i])"] if dtype[0] == "f" else []
        steps = "".join(f"        out[{n} * 1000 + i] = {call}\n" for n, call in enumerate(calls) if "abs" not in call)
        yield f"def program(x, y, out):\n    for i in range(1000):\n{steps}", [dtype] * 3
    yield "def program(x, out):\n    for i in range(5000):\n        out[i] = x[i]\n", ["f8", "f8"]
    yield "def program(x, out):\n    for i in range(5000):\n        out[i] = 0.0\n", ["f8", "f8"]
    yield "def program(x, y, out):\n    for i in range(99):\n        out[i] = x[i] // y[i] + x[i] % y[i]\n", ["i8"] * 3


def take_aim(triple: str, cpu: str) -> None:
    """Have code generated for a target, where no library has functions of vectors."""
    from fnad.backends.cpu import codegen, system, target, vector_math

    assert target.CPU  # made for this machine, which nothing below depends on
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    system.IS_WINDOWS = "windows" in triple
    if system.IS_WINDOWS:
        llvm.targets.os = SimpleNamespace(name="nt")  # for which llvmlite makes objects in ELF's format
    codegen._machine.cache_clear()
    codegen.target = cache(lambda: llvm.Target.from_triple(triple))
    llvm.get_process_triple, llvm.get_host_cpu_name = lambda: triple, lambda: cpu
    llvm.get_host_cpu_features = lambda: llvm.FeatureMap()
    vector_math.variants = lambda *_: ()


def module(source: str, dtypes: list[str]) -> Any:
    """Return the optimised module of a kernel."""
    from fnad.backends.cpu import codegen
    from fnad.backends.cpu.compiler import module_of

    sys.path.append(str(Path(__file__).parents[1]))
    from tests.kernel_text import parse_kernel

    return codegen.optimized(module_of(parse_kernel(source, "program", [np.dtype(dtype) for dtype in dtypes])))


def fused() -> list[str]:
    """Return the fused multiply-adds in sums of products, for processors that have such instructions."""
    from fnad.backends.cpu import codegen

    found: list[str] = []
    for triple, cpu in (*TRIPLES["darwin"], ("aarch64-unknown-linux-gnu", "generic"), ("x86_64-linux-gnu", "znver4")):
        take_aim(triple, cpu)
        for statement in ("out[i] = x[i] * y[i] + out[i]", "out[0] = accumulate(out[0], x[i] * y[i])"):
            source = f"def program(x, y, out):\n    for i in range(1000):\n        {statement}\n"
            for dtype in ("f4", "f8", "c16"):
                assembly = codegen.machine().emit_assembly(module(source, [dtype] * 3))
                assert re.search(r"\bv?f?mul", assembly)
                found += re.findall(r"\bv?fn?m(?:add|sub|la|ls)\w*", assembly)
    return found


def cases() -> Iterator[tuple[str, list[str], list[Any]]]:
    """Yield those kernels, each with dtypes and arrays for its parameters."""
    numbers = np.random.default_rng(0).uniform(0.1, 0.9, (3, 5000))
    for source, dtypes in sources():
        values = {"c": numbers + 1j * numbers[::-1], "f": numbers, "i": 1 + 99 * numbers}[dtypes[0][0]]
        arrays = [x.astype(dtype) for x, dtype in zip(values, dtypes[:-1], strict=False)]
        yield source, dtypes, [*arrays, np.zeros(40_000, dtypes[-1])]


def write_code(folder: Path) -> None:
    """Write the LLVM code of threads and of the kernels, with their arrays, for Windows."""
    from fnad.backends.cpu import native, system, threads, threads_code

    take_aim(*TRIPLES["win32"][0])
    (folder / "threads").write_text(native.llvm_text(threads.EXPORTS, threads_code, system.threads_module()))
    parts = [struct.pack("<q", system.invalid_flag())]
    for source, dtypes, arrays in cases():
        code = str(module(source, dtypes)).encode()
        parts += [struct.pack("<q", len(code)), code, struct.pack("<q", len(arrays))]
        parts += [struct.pack("<q", array.nbytes) + array.tobytes() for array in arrays]
    (folder / "cases").write_bytes(b"".join(parts))


def compare(folder: Path) -> Iterator[str]:
    """Yield for each kernel its largest error, in units in the last place of the number or of 1."""
    results = (folder / "results").read_bytes()
    names = {**vars(scipy.special), **vars(np), "range": range}
    for source, dtypes, arrays in cases():
        exec(source, names)
        with np.errstate(invalid="ignore"):
            names["program"](*arrays)
        before, want = sum(x.nbytes for x in arrays[:-1]), np.nan_to_num(arrays[-1], nan=-99.0)
        found = np.nan_to_num(np.frombuffer(results[before : before + want.nbytes], want.dtype), nan=-99.0)
        results = results[before + want.nbytes :]
        eps = np.finfo(dtypes[-1]).eps if dtypes[-1] != "i8" else 1.0
        worst = np.max(abs(found - want) / np.maximum(abs(want), 1.0)) / eps
        word = "" if worst <= 16 else "WRONG: "
        yield f"{word}{' '.join(dtypes)}: {worst:.1f} ulp in {source.count('out[')} functions"
    assert not results


def objects(triple: str, cpu: str) -> Iterator[bytes]:
    """Yield fnad's own native code and those kernels, compiled for a target."""
    from fnad.backends.cpu import blas_threads, codegen, direct_code, native, pool_code, system, threads_code

    take_aim(triple, cpu)
    switch = blas_threads.code_for("", is_there=True)
    codes = [threads_code, system.threads_module()], [direct_code], [pool_code]
    for text in (*(native.llvm_text([], *modules) for modules in codes), switch):
        yield codegen.machine().emit_object(llvm.parse_assembly(text))
    for source, dtypes in sources():
        yield codegen.machine().emit_object(module(source, dtypes))


def undefined(code: bytes) -> Iterator[str]:
    """Yield the symbols that an object, in the format ELF or that of macOS, does not define."""
    if code[:4] == b"\xcf\xfa\xed\xfe":
        yield from undefined_in_mach_o(code)
        return
    (first,), (number,) = struct.unpack_from("<Q", code, 40), struct.unpack_from("<H", code, 60)
    sections = [struct.unpack_from("<IIQQQQIIQQ", code, first + 64 * n) for n in range(number)]
    for _, kind, _, _, symbols, size, strings, *_ in sections:
        if kind == 2:
            for place in range(symbols + 24, symbols + size, 24):
                name, section = struct.unpack_from("<I2xH", code, place)
                if section == 0:
                    start = sections[strings][4] + name
                    yield code[start : code.index(b"\0", start)].decode()


def undefined_in_mach_o(code: bytes) -> Iterator[str]:
    place = 32
    for _ in range(struct.unpack_from("<I", code, 16)[0]):
        command, size = struct.unpack_from("<II", code, place)
        if command == 2:
            first, number, names, _ = struct.unpack_from("<IIII", code, place + 8)
            for n in range(number):
                name, kind = struct.unpack_from("<IB", code, first + 16 * n)
                if kind & 0x0E == 0:
                    yield code[names + name + 1 : code.index(b"\0", names + name)].decode()
        place += size


def strange(platform: str) -> tuple[set[str], set[str]]:
    """Return the symbols of objects for a platform, and those that neither its libraries nor Python nor fnad has."""
    from fnad.backends.cpu import objects as layouts
    from fnad.backends.cpu import symbols, system

    exports = set((EXPORTS / f"{platform}.txt").read_text().partition("\n")[2].split())
    ours = {*system.LIBRARIES} if platform == "win32" else set[str]()
    found = {name for each in TRIPLES[platform] for code in objects(*each) for name in undefined(code)}
    ours |= {*layouts.FUNCTIONS, "direct_ndarray"}
    ours |= {"get_threads", "set_threads", "state"}  # of `blas_threads`, which gives them the prefix of a library
    known = tuple(symbols.FAMILIES)
    return found, {name for name in found - exports - ours if not name.startswith(known) and not is_python(name)}


def is_python(name: str) -> bool:
    return name.startswith(("Py", "_Py")) and hasattr(ctypes.pythonapi, name)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    match sys.argv[1:]:
        case ["run", platform, home]:
            for name, is_right in run(platform, home):
                print(name if is_right else f"WRONG: {name}", flush=True)
        case ["symbols", platform]:
            for names in strange(platform):
                print(*sorted(names))
        case ["code", folder]:
            write_code(Path(folder))
        case ["compare", folder]:
            print(*compare(Path(folder)), sep="\n")
        case _:
            print(*fused() or ["no"])
