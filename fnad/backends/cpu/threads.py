"""The threads that share the iterations of a parallel loop with the thread that runs it.

A parallel loop is a function (context, n, scratch) and a number of tasks, which are the same however many threads there
are: so are the results, to the bit. `share` runs task 0 alone, unless the loop is known to take `long`. If the others
will take longer than a few times what it costs to wake threads, all threads share them. Each thread takes the tasks of
its own part, one after the other, then those that are left of other parts. So a thread finds what it computed in the
loop before in the caches of its core. Threads do not spin: one that gets no core, on a busy machine, delays only its
current task.

Whether that pays is measured: how long the tasks of a loop take on this thread alone, in two of its first runs and of
each 256, by the processor's time, and how long on several. A program shares all its long loops or none: what one core
has in its caches another one reads slowly. What it gains by sharing is a credit of up to 20 ms. It may lose that and
what moving its data takes, which is 2.5 ms or eight times the loop; then what it lost is a debt, and the program runs
on one thread for twice as long. After another such loss it does for four times as long, up to 64 times, until the
credit has been full again. So a program that gains is soon shared again when cores were busy for a moment, and one that
loses takes a few per cent more than on one thread. A loop of more than 5 ms is not run alone to be measured; what it
would take follows from the processor's time of the tasks. One loop at a time has the threads; another one, of a second
Python thread, runs on its own thread meanwhile.

The workers are threads of the C library, which Python does not manage; they take no signals. They start at the first
call that may use them, and end before a fork and at the exit. `threads_code.py` is the native code.
"""

from __future__ import annotations

import atexit
import ctypes
from functools import cache, partial
from time import perf_counter_ns, sleep
from typing import Any

import llvmlite.binding as llvm
import llvmlite.ir as ir

from fnad import forks
from fnad.backends.cpu import native, system, threads_code
from fnad.backends.cpu.codegen import LOWEST
from fnad.backends.cpu.threads_code import SIZE, Field
from fnad.backends.llvm.emitter import Builder, Dtype, Instructions, Kinds, Value, Values
from fnad.backends.llvm.instructions import SHARE
from fnad.backends.llvm.scalar import call, memory_type
from fnad.kernel.routines import LOCAL_ARRAYS

SYMBOL, STATE = "threads_share", "threads_state"

LEAST = 100_000
"""The least time of the tasks after the first, in nanoseconds, for which threads are woken.

Shorter loops lose more than waking costs: half of what they read is in the caches of the other core, and half of what
they write is when the next, serial part reads it.
"""

LAUNCHES = 4
"""The number of launches that must fit into this time: what is gained is then twice what is lost."""

LAUNCHES_MEASURED = 11

FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "reset": (None,),
    "end": (None,),
    "start": (ctypes.c_bool, ctypes.c_size_t, ctypes.c_void_p),
    "join": (None, ctypes.c_size_t),
}
"""The functions of the code that Python calls, after their prefix: the types of results and parameters."""

TOLD = "prefers_one", "note_alone", "note_shared"
EXPORTS = [SYMBOL, *(f"threads_{name}" for name in (*FUNCTIONS, *TOLD, "nothing", "worker"))]
"""The symbols of the code."""


class Workers:
    """The threads of this process, and the memory that they share."""

    def __init__(self) -> None:
        self.state = (ctypes.c_char * SIZE)()
        self.threads: list[ctypes.c_void_p] = []
        self.lock = forks.lock()
        llvm.add_symbol(STATE, ctypes.addressof(self.state))
        self.engine = native.linked(EXPORTS, threads_code, system.threads_module(), level=LOWEST)
        self.share, self.nothing = map(self.engine.get_function_address, (SYMBOL, "threads_nothing"))
        self.reset_system, self.end, self.start_thread, self.join = (
            ctypes.CFUNCTYPE(*types)(self.engine.get_function_address(f"threads_{name}"))
            for name, types in FUNCTIONS.items()
        )
        self.reset()
        llvm.add_symbol(SYMBOL, self.share)
        forks.at_fork(before=self.before_fork, after_in_child=self.reset)
        atexit.register(self.stop)

    def reset(self) -> None:
        """No workers, no loop: in a child, a thread that is not there may have held the mutex, or run one."""
        self.threads.clear()
        ctypes.memset(self.state, 0, SIZE)
        self.reset_system()

    def field(self, name: str) -> ctypes.c_int64:
        """A word of the state. No order of these stores matters: native code reads `workers` and `threshold` relaxed.

        `stop` is 0 before a worker starts, which orders the two, and again when all have ended.
        """
        return ctypes.c_int64.from_buffer(self.state, 8 * Field[name.upper()])

    def start(self, number: int) -> None:
        """Start workers until there are so many; if the system has no more threads, fewer."""
        with self.lock:
            before = len(self.threads)
            self.field("stop").value = 0
            while len(self.threads) < number and self.new_thread():
                pass
            self.field("workers").value = len(self.threads)
            if len(self.threads) > before:
                self.field("threshold").value = max(LEAST, LAUNCHES * self.launch_nanoseconds())

    def new_thread(self) -> bool:
        """Start one more worker; return whether the system had another thread."""
        self.threads.append(thread := ctypes.c_void_p())
        is_started = self.start_thread(len(self.threads), ctypes.addressof(thread))
        if not is_started:
            self.threads.remove(thread)
        return is_started

    def launch_nanoseconds(self) -> int:
        """The measured cost of waking all workers."""
        self.field("threshold").value = -1
        word, address = ctypes.c_int64, ctypes.c_void_p
        run = ctypes.CFUNCTYPE(None, address, address, *[word] * 4, address, address, word)(self.share)
        times: list[int] = []
        try:
            for _ in range(LAUNCHES_MEASURED):
                sleep(0.0002)  # for a worker that is still awake costs nothing to wake
                start = perf_counter_ns()
                run(self.nothing, None, len(self.threads) + 1, len(self.threads) + 1, False, False, None, None, 0)
                times.append(perf_counter_ns() - start)
        finally:
            self.field("threshold").value = LEAST
        return sorted(times)[len(times) // 2]

    def stop(self) -> None:
        """End all workers, each after the task that it is at; loops go on without them."""
        self.field("workers").value = 0
        self.end()
        while self.threads:
            if (thread := self.threads.pop()).value:  # else its start was interrupted
                self.join(thread.value)
        self.field("stop").value = 0

    def before_fork(self) -> None:
        with self.lock:
            self.stop()


@cache
def workers() -> Workers:
    """The workers of this process; the first call registers the symbol of `share` with LLVM."""
    return Workers()


def emit_share(builder: Builder, kinds: Kinds, values: Values) -> None:
    workers()
    words = [builder.zext(value, ir.IntType(64)) if value.type == ir.IntType(1) else value for value in values]
    call(builder, SYMBOL, ir.VoidType(), *words)


def local_of(dtype: Dtype, builder: Builder, kinds: Kinds, values: Values) -> Value:
    """Emit an array on the stack, which is there once for all runs of a loop around it."""
    with builder.goto_entry_block():
        return builder.alloca(memory_type(dtype), values[0].constant)


INSTRUCTIONS: Instructions = {SHARE: emit_share} | {
    routine.name: partial(local_of, dtype) for dtype, routine in LOCAL_ARRAYS.items()
}


def register(_: str) -> None:
    """Register `share` with LLVM."""
    workers()


def use(threads: int) -> None:
    """Have workers for loops on so many threads."""
    ours = workers()
    if len(ours.threads) < threads - 1:
        ours.start(threads - 1)
