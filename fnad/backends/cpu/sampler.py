"""Samples of the address that this thread executes, taken two thousand times a second, on Linux.

A timer interrupts the thread. The handler of its signal is native code too, as Python's handlers run between
instructions of Python alone. It stores the address of the interrupted instruction, and where a called function returns
to in the function with lines that runs; while that calls a library, the line of the call.
"""

from __future__ import annotations

import ctypes
import platform
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import llvmlite.ir as ir
import numpy as np

from fnad.backends.cpu import codegen
from fnad.backends.cpu.loader import LOCK, Engine, link
from fnad.errors import UnsupportedFunctionError

PLACES = {"x86_64": (21, None), "aarch64": (55, 53)}
"""The address of the instruction in a `ucontext_t`, in words, and where a called function returns to.

On x86-64 that is on the stack, right below the frame of the function that calls.
"""

NANOSECONDS = 500_000
"""The time between two samples."""

MOST = 2**14
"""The most samples."""

COUNT, HELD, FRAME, FIRST = range(4)
"""The words of the state: the number of samples, the addresses of the variables of lines, and the first sample."""

SI_SIGINFO, SA_RESTART, SIGEV_THREAD_ID, CLOCK_MONOTONIC = 4, 0x10000000, 4, 1
LONG = ir.IntType(64)


def refuse_elsewhere() -> None:
    """Raise `UnsupportedFunctionError` where no samples can be taken."""
    if sys.platform != "linux" or platform.machine() not in PLACES:
        raise UnsupportedFunctionError(
            f"a profile takes Linux on x86-64 or ARM64, not {sys.platform} on {platform.machine()}",
            remedy="see the kernels and their loops by fnad.view, and time whole calls",
        )


class Samples:
    """The samples of code whose variables `HELD` and `FRAME` are at these addresses, on the thread that makes this."""

    def __init__(self, held: int, frame: int) -> None:
        self.state = np.zeros(FIRST + 2 * MOST, np.int64)
        self.state[[HELD, FRAME]] = held, frame

    @property
    def count(self) -> int:
        """The number of samples so far."""
        return min(int(self.state[COUNT]), MOST)

    def taken(self) -> list[list[int]]:
        """The address of each sample, and that which a function returns to, or the line that was held, negative."""
        return self.state[FIRST : FIRST + 2 * self.count].reshape(-1, 2).tolist()

    @contextmanager
    def held(self, number: int) -> Generator[None, None, None]:
        """A block of a library call for the line of this number."""
        line = ctypes.c_int64.from_address(int(self.state[HELD]))
        line.value = number
        yield
        line.value = 0

    @contextmanager
    def running(self) -> Generator[None, None, None]:
        """A block in which samples are taken."""
        engine, libc = _handler(self.state.ctypes.data), ctypes.CDLL(None, use_errno=True)
        action, before = _Action(engine.get_function_address("handler"), flags=SI_SIGINFO | SA_RESTART), _Action()
        timer, event = ctypes.c_void_p(), _Event(0, signal.SIGPROF, SIGEV_THREAD_ID, threading.get_native_id())
        _checked(libc.sigaction(signal.SIGPROF, ctypes.byref(action), ctypes.byref(before)))
        try:
            _checked(libc.timer_create(CLOCK_MONOTONIC, ctypes.byref(event), ctypes.byref(timer)))
            period = (ctypes.c_long * 4)(0, NANOSECONDS, 0, NANOSECONDS)
            try:
                _checked(libc.timer_settime(timer, 0, ctypes.byref(period), None))
                yield
            finally:
                _checked(libc.timer_delete(timer))  # no signal of it comes afterwards
        finally:
            _checked(libc.sigaction(signal.SIGPROF, ctypes.byref(before), None))


class _Action(ctypes.Structure):
    """C's `struct sigaction`."""

    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_ulong * 16),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )

    def __init__(self, handler: int = 0, flags: int = 0) -> None:
        super().__init__(handler, flags=flags)


class _Event(ctypes.Structure):
    """C's `struct sigevent`."""

    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signal", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("thread", ctypes.c_int),
        ("rest", ctypes.c_int * 11),
    )


def _checked(status: int) -> None:
    if status:
        raise OSError(ctypes.get_errno(), "the timer of the profile cannot be set")


# ---- the handler -----------------------------------------------------------------------------------------------------


def _handler(state: int) -> Engine:
    """The code of the handler for a state at this address."""
    with LOCK:
        module = codegen.new_module("sampler")
        word = LONG.as_pointer()
        type_ = ir.FunctionType(ir.VoidType(), [ir.IntType(32), word, word])
        _write_handler(ir.Function(module, type_, name="handler"), LONG(state).inttoptr(word))
        return link(codegen.object_code(codegen.plain(module)))


def _write_handler(function: ir.Function, state: Any) -> None:
    builder, context = ir.IRBuilder(function.append_basic_block()), function.args[2]

    def at(base: Any, place: Any) -> Any:
        return builder.gep(base, [place if isinstance(place, ir.Instruction) else LONG(place)])

    def variable(place: int) -> Any:
        return builder.load(builder.inttoptr(builder.load(at(state, place)), LONG.as_pointer()))

    number = builder.load(at(state, COUNT))
    with builder.if_then(builder.icmp_unsigned(">=", number, LONG(MOST))):
        builder.ret_void()
    builder.store(builder.add(number, LONG(1)), at(state, COUNT))
    sample = at(state, builder.add(builder.mul(number, LONG(2)), LONG(FIRST)))
    instruction, link = PLACES[platform.machine()]
    builder.store(builder.load(at(context, instruction)), sample)
    held, frame = variable(HELD), variable(FRAME)
    builder.store(builder.neg(held), at(sample, 1))
    with builder.if_then(
        builder.and_(builder.icmp_signed("==", held, LONG(0)), builder.icmp_signed("!=", frame, held))
    ):
        slot = at(builder.inttoptr(frame, LONG.as_pointer()), -1) if link is None else at(context, link)
        builder.store(builder.sub(builder.load(slot), LONG(1)), at(sample, 1))
    builder.ret_void()
