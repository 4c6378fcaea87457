"""Samples of the address that this thread executes, taken two thousand times a second, on Linux.

A timer interrupts the thread. The handler of its signal is native code too, as Python's handlers run between
instructions of Python alone. It stores those of the first addresses that are in the code that is sampled: the address
of the interrupted instruction, then what is on the stack, to which called functions return. The frames of a library
may be larger than is worth searching; while one is called, the line of the call is in a variable.
"""

from __future__ import annotations

import ctypes
import platform
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import llvmlite.ir as ir
import numpy as np

from fnad.backends.cpu import codegen
from fnad.backends.cpu.loader import LOCK, Engine, link
from fnad.errors import UnsupportedFunctionError

PLACES = {"x86_64": (20, 21), "aarch64": (54, 55)}
"""The stack pointer and the address of the instruction in a `ucontext_t`, in words, by machine."""

NANOSECONDS = 500_000
"""The time between two samples."""

MOST = 2**14
"""The most samples."""

COUNT, LOW, HIGH, TOP, HELD, FIRST = range(6)
"""The words of the state: the number of samples, the addresses of the code, the end of the stack, the address of the
line whose library call is under way, and the first sample."""

SCANNED, DEPTH = 2**10, 4
"""The most words of the stack that are looked through, and the most addresses of a sample."""

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
    """The samples of code between two addresses, on the thread that makes this; `held` is the address of a line."""

    def __init__(self, low: int, high: int, held: int) -> None:
        self.state = np.zeros(FIRST + DEPTH * MOST, np.int64)
        self.state[[LOW, HIGH, TOP, HELD]] = low, high, _end_of_stack(), held

    @property
    def count(self) -> int:
        """The number of samples so far."""
        return min(int(self.state[COUNT]), MOST)

    def taken(self) -> list[list[int]]:
        """The first addresses of each sample, 0 where there are no more; a negative one is a line that was held."""
        return self.state[FIRST : FIRST + DEPTH * self.count].reshape(-1, DEPTH).tolist()

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


def _end_of_stack() -> int:
    libc, attributes = ctypes.CDLL(None), ctypes.create_string_buffer(64)
    libc.pthread_self.restype = ctypes.c_void_p
    start, size = ctypes.c_void_p(), ctypes.c_size_t()
    libc.pthread_getattr_np(ctypes.c_void_p(libc.pthread_self()), attributes)
    libc.pthread_attr_getstack(attributes, ctypes.byref(start), ctypes.byref(size))
    libc.pthread_attr_destroy(attributes)
    return (start.value or 0) + size.value


# ---- the handler -----------------------------------------------------------------------------------------------------


def _handler(state: int) -> Engine:
    """The code of the handler for a state at this address."""
    with LOCK:
        module = codegen.new_module("sampler")
        word = LONG.as_pointer()
        type_ = ir.FunctionType(ir.VoidType(), [ir.IntType(32), word, word])
        _write_handler(ir.Function(module, type_, name="handler"), LONG(state).inttoptr(word))
        return link(codegen.object_code(codegen.plain(module), codegen.HIGHEST))


def _write_handler(function: ir.Function, state: Any) -> None:
    builder = ir.IRBuilder(function.append_basic_block())
    context = function.args[2]

    def at(place: int) -> Any:
        return builder.gep(state, [LONG(place)])

    def is_in_code(address: Any) -> Any:
        low, high = builder.load(at(LOW)), builder.load(at(HIGH))
        return builder.and_(builder.icmp_unsigned(">=", address, low), builder.icmp_unsigned("<", address, high))

    stack, address = (builder.load(builder.gep(context, [LONG(n)])) for n in PLACES[platform.machine()])
    number = builder.load(at(COUNT))
    with builder.if_then(builder.icmp_unsigned(">=", number, LONG(MOST))):
        builder.ret_void()
    builder.store(builder.add(number, LONG(1)), at(COUNT))
    sample = builder.gep(state, [builder.add(builder.mul(number, LONG(DEPTH)), LONG(FIRST))])
    start = builder.block
    with builder.if_then(is_in_code(address)):
        builder.store(address, sample)
        inside = builder.block
    kept = builder.phi(LONG)
    kept.add_incoming(LONG(0), start)
    kept.add_incoming(LONG(1), inside)
    held = builder.load(builder.inttoptr(builder.load(at(HELD)), LONG.as_pointer()))
    with builder.if_then(builder.icmp_signed("!=", held, LONG(0))):
        builder.store(builder.neg(held), builder.gep(sample, [kept]))
        builder.ret_void()
    _write_scan(builder, stack, sample, kept, at(TOP), is_in_code)


def _write_scan(builder: Any, stack: Any, sample: Any, kept: Any, top: Any, is_in_code: Callable[[Any], Any]) -> None:
    """Store the addresses on the stack that are in the code behind the `kept` ones of a sample."""
    check, keep, go_on, end = (builder.function.append_basic_block() for _ in range(4))
    start = builder.block
    far = builder.add(stack, LONG(8 * SCANNED))
    far = builder.select(builder.icmp_unsigned("<", far, last := builder.load(top)), far, last)
    builder.branch(check)
    builder.position_at_end(check)
    place, count = builder.phi(LONG), builder.phi(LONG)
    before_return = builder.sub(builder.load(builder.inttoptr(place, LONG.as_pointer())), LONG(1))
    builder.cbranch(is_in_code(before_return), keep, go_on)
    builder.position_at_end(keep)
    builder.store(before_return, builder.gep(sample, [count]))
    one_more = builder.add(count, LONG(1))
    builder.branch(go_on)
    builder.position_at_end(go_on)
    now = builder.phi(LONG)
    following = builder.add(place, LONG(8))
    goes_on = builder.and_(builder.icmp_unsigned("<", following, far), builder.icmp_unsigned("<", now, LONG(DEPTH)))
    builder.cbranch(goes_on, check, end)
    for phi, value, block in (
        (place, stack, start), (place, following, go_on), (count, kept, start), (count, now, go_on),
        (now, count, check), (now, one_more, keep),
    ):  # fmt: skip
        phi.add_incoming(value, block)
    builder.position_at_end(end)
    builder.ret_void()
