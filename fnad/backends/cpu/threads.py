"""The threads that share the iterations of a parallel loop with the thread that runs it.

A parallel loop is a function (context, n, scratch) and a number of tasks, which are the same however many threads there
are: so are the results, to the bit. `share` runs task 0 alone, unless the loop is known to take `long`. If the others
will take longer than a few times what it costs to wake threads, each thread takes the tasks of its own part, one after
the other, then those that are left of other parts. So a thread finds what it computed in the loop before in the caches
of its core, and one that gets no core, on a busy machine, delays nothing but the task that it is at; nobody spins.

Whether that pays is measured: how long the tasks of a loop take on this thread alone, in two of its first runs and of
each 256, by the processor's time, and how long on several. A program shares all its long loops or none: what one core
has in its caches another one reads slowly. What it gains by sharing is a credit of up to 20 ms. It may lose that and
what moving its data takes, which is 2.5 ms or eight times the loop; then what it lost is a debt, and the program runs
on one thread for twice as long. After another such loss it does for four times as long, up to 64 times, until the
credit has been full again. So a program that gains is soon shared again when cores were busy for a moment, and one that
loses takes a few per cent more than on one thread. A loop of more than 5 ms is not run alone to be measured; what it
would take follows from the processor's time of the tasks. One loop at a time has the threads; another one, of a second
Python thread, runs on its own thread meanwhile.

    share(function, context, tasks, threads, long, stops, status, scratch, bytes):
        helpers = min(threads, tasks, 1 + workers) - 1, but 0 if a worker's stack has no room for so many bytes
        if helpers > 0 and not long { rest = (tasks - 1) * the time of function(context, 0, scratch) }
        if helpers == 0, or rest < threshold: run the others here; return
        program = what the status keeps; loop = what is known of the function with so many tasks and helpers
        if program.debt > 0, or loop.runs++ % 256 < 2 and rest < SHORT:
            run the others here; program.debt -= their time; loop.moved = true
            loop.alone = the least of their time and 65/64 loop.alone, unless that is 0; return
        if busy.exchange(1): run the others here; return
        parts = helpers + 1; next[part] = the first task of each part, but not task 0 again
        open = helpers; wake the workers; take(function, context, 0, scratch)
        open = 0; wait until active == 0; after each 50 ms, if it stops and there is Ctrl-C: status[0] = STOPPED
        busy = 0; if loop.moved.exchange(false): return
        alone = loop.alone, or what all tasks take by the processor's time of those taken here, unless these are 0
        program.credit = the least of CREDIT and program.credit + alone - the time since the workers were woken
        if program.credit == CREDIT { program.losses = 0 }
        if program.credit < -min(8 * alone, MOVING):
            program.losses += 1, up to LOSSES; program.debt = -program.credit * 2**program.losses; program.credit = 0
    worker(number):
        sleep until open > 0 or stop; if stop: return
        open -= 1; active += 1
        take(function, context, 1 + (number - 1) % (parts - 1), so many bytes of its stack); active -= 1
        if active == 0: wake who waits
        again
    take(function, context, own, scratch):
        for part in own, own + 1, ..., each modulo parts:
            while (n = next[part]++) < the first task of the part after it: function(context, n, scratch)

`open` and `active` change under the mutex, which orders everything else on processors that reorder memory, such as ARM:
what this thread wrote before it unlocked the mutex, to arrays too, is there for workers that locked it later, and what
their tasks wrote is there for this thread when it has locked it and found none active. The workers are threads of the C
library, which Python does not know and which take no signals. They start at the first call that may use them, and end
before a fork and at the exit.
"""

from __future__ import annotations

import atexit
import ctypes
import re
from functools import cache
from time import perf_counter_ns, sleep
from typing import Any

import llvmlite.binding as llvm
import llvmlite.ir as ir

from fnad import forks
from fnad.backends.cpu import system
from fnad.backends.cpu.loader import key_of, link, object_code
from fnad.backends.llvm.emitter import Builder, Dtype, Emit, Instructions, Kinds, Value, Values
from fnad.backends.llvm.instructions import SHARE
from fnad.backends.llvm.scalar import call, memory_type
from fnad.kernel.routines import LOCAL_ARRAYS
from fnad.kernel.statements import ACCOUNT, STOPPED

SYMBOL, STATE = "threads_share", "threads_state"

LEAST = 100_000
"""The least time of the tasks after the first, in nanoseconds, for which threads are woken.

Shorter loops lose more than waking costs: half of what they read is in the caches of the other core, and half of what
they write is when the next, serial part reads it.
"""

SHORT = 5_000_000
"""The time of these tasks, in nanoseconds, up to which a loop is run alone to see how long it takes."""

LAUNCHES = 4
"""The number of launches that must fit into this time: what is gained is then twice what is lost."""

LAUNCHES_MEASURED = 11

CREDIT = 20_000_000
"""The most time that a program has gained, in nanoseconds: what some turns of other processes take."""

MOVING = 2_500_000
"""The time, in nanoseconds, that it takes to move what a core has in its caches to others."""

LOSSES = 6
"""The most doublings of a debt: 64 times the loss is spent without a further loss."""

PARTS = 64
"""The most parts of the tasks, one for each thread: loops have no more tasks."""

STACK = 2**22
"""The bytes of a worker's stack, on which tasks have their arrays: some systems give new threads an eighth of this."""

ROOM = STACK - 2**20
"""The most bytes of scratch memory on a worker's stack."""

FIELDS = (
    "function",
    "context",
    "tasks",
    "bytes",
    "parts",
    "open",
    "active",
    "busy",
    "workers",
    "stop",
    "threshold",
)
LONG, PRIMITIVE = 8, 64  # the bytes of a field, and of a mutex or a condition variable, which take no more
WORK, DONE, MUTEX = (len(FIELDS) * LONG + n * PRIMITIVE for n in range(3))
SIZE = MUTEX + PRIMITIVE

NUMBERS = {
    "ACCOUNT": ACCOUNT,
    "STOPPED": STOPPED,
    "ROOM": ROOM,
    "SHORT": SHORT,
    "CREDIT": CREDIT,
    "LOSSES": LOSSES,
    "MOVING": MOVING,
    "PARTS": PARTS,
    "MOST": PARTS - 1,
    "STACK": STACK,
}
"""The numbers in the code."""

CODE = """
@threads_state = external global i8
declare i32 @PyGILState_Ensure()
declare i32 @PyErr_CheckSignals()
declare void @PyGILState_Release(i32)
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)

; Statistics: threads of Python may overwrite each other's, which changes when a loop is shared, not its results.
%loop = type { i64, i64, i64, i64 }  ; key, runs, alone, moved
%program = type { i64, i64, i64 }  ; credit, debt, losses
@threads_next = internal global [PARTS x [8 x i64]] zeroinitializer, align 64
@threads_loops = global [4096 x %loop] zeroinitializer, align 64

define internal ptr @loop_of(ptr %function, i64 %tasks, i64 %helpers) {
  %address = ptrtoint ptr %function to i64
  %high = shl i64 %helpers, 32
  %number = or i64 %tasks, %high
  %spread = mul i64 %number, -7046029254386353131
  %key = xor i64 %address, %spread
  %mixed = mul i64 %key, -7046029254386353131
  %place = lshr i64 %mixed, 52
  %loop = getelementptr [4096 x %loop], ptr @threads_loops, i64 0, i64 %place
  %found = load i64, ptr %loop
  %same = icmp eq i64 %found, %key
  br i1 %same, label %done, label %new
new:
  store %loop zeroinitializer, ptr %loop
  store i64 %key, ptr %loop
  br label %done
done:
  ret ptr %loop
}

define i1 @threads_prefers_one(ptr %program, ptr %loop, i64 %expected) {
  %runs_place = getelementptr %loop, ptr %loop, i64 0, i32 1
  %debt_place = getelementptr %program, ptr %program, i64 0, i32 1
  %debt = load i64, ptr %debt_place
  %owes = icmp sgt i64 %debt, 0
  br i1 %owes, label %pay, label %measure
pay:
  ret i1 true
measure:
  %runs = load i64, ptr %runs_place
  %counted = add i64 %runs, 1
  store i64 %counted, ptr %runs_place
  %turn = and i64 %runs, 255
  %early = icmp ult i64 %turn, 2
  %short = icmp slt i64 %expected, SHORT
  %due = and i1 %early, %short
  ret i1 %due
}

define void @threads_note_alone(ptr %program, ptr %loop, i64 %took) {
  %alone_place = getelementptr %loop, ptr %loop, i64 0, i32 2
  %moved_place = getelementptr %loop, ptr %loop, i64 0, i32 3
  %debt_place = getelementptr %program, ptr %program, i64 0, i32 1
  %before = load i64, ptr %alone_place
  %none = icmp eq i64 %before, 0
  %little = lshr i64 %before, 6
  %raised = add i64 %before, %little
  %most = select i1 %none, i64 9223372036854775807, i64 %raised
  %alone = call i64 @llvm.smin.i64(i64 %took, i64 %most)
  store i64 %alone, ptr %alone_place
  store i64 1, ptr %moved_place
  %owed = load i64, ptr %debt_place
  %left = sub i64 %owed, %took
  %debt = call i64 @llvm.smax.i64(i64 %left, i64 0)
  store i64 %debt, ptr %debt_place
  ret void
}

define void @threads_note_shared(ptr %program, ptr %loop, i64 %took, i64 %work) {
  %alone_place = getelementptr %loop, ptr %loop, i64 0, i32 2
  %moved_place = getelementptr %loop, ptr %loop, i64 0, i32 3
  %credit_place = getelementptr %program, ptr %program, i64 0, i32 0
  %debt_place = getelementptr %program, ptr %program, i64 0, i32 1
  %losses_place = getelementptr %program, ptr %program, i64 0, i32 2
  %moved = load i64, ptr %moved_place
  store i64 0, ptr %moved_place
  %measured = load i64, ptr %alone_place
  %is_measured = icmp sgt i64 %measured, 0
  %alone = select i1 %is_measured, i64 %measured, i64 %work
  %known = icmp sgt i64 %alone, 0
  %settled = icmp eq i64 %moved, 0
  %counts = and i1 %known, %settled
  br i1 %counts, label %count, label %return
count:
  %before = load i64, ptr %credit_place
  %losses = load i64, ptr %losses_place
  %gained = sub i64 %alone, %took
  %sum = add i64 %before, %gained
  %credit = call i64 @llvm.smin.i64(i64 %sum, i64 CREDIT)
  %missing = sub i64 0, %credit
  %some = shl i64 %alone, 3
  %allowed = call i64 @llvm.smin.i64(i64 %some, i64 MOVING)
  %lost = icmp sgt i64 %missing, %allowed
  br i1 %lost, label %owe, label %keep
owe:
  %more = add i64 %losses, 1
  %counted = call i64 @llvm.smin.i64(i64 %more, i64 LOSSES)
  %debt = shl i64 %missing, %counted
  store i64 %debt, ptr %debt_place
  store i64 0, ptr %credit_place
  store i64 %counted, ptr %losses_place
  ret void
keep:
  %full = icmp eq i64 %credit, CREDIT
  %left = select i1 %full, i64 0, i64 %losses
  store i64 %credit, ptr %credit_place
  store i64 %left, ptr %losses_place
  br label %return
return:
  ret void
}

define void @threads_end() {
  ; under the mutex: a worker that has read `stop` but does not wait yet would otherwise never be woken
  call void @lock(ptr @mutex)
  store i64 1, ptr @stop
  call void @unlock(ptr @mutex)
  call void @wake_all(ptr @work)
  ret void
}

define void @threads_nothing(ptr %context, i64 %task, ptr %scratch) {
  ret void
}

define internal i64 @first_of(i64 %part) {
  %parts = load i64, ptr @parts
  %tasks = load i64, ptr @tasks
  %product = mul i64 %part, %tasks
  %first = udiv i64 %product, %parts
  ret i64 %first
}

define internal ptr @next_of(i64 %part) {
  %next = getelementptr [PARTS x [8 x i64]], ptr @threads_next, i64 0, i64 %part
  ret ptr %next
}

define internal void @divide(i64 %begun) {
  %parts = load i64, ptr @parts
  br label %again
again:
  %part = phi i64 [0, %0], [%following, %again]
  %first = call i64 @first_of(i64 %part)
  %start = call i64 @llvm.smax.i64(i64 %first, i64 %begun)
  %next = call ptr @next_of(i64 %part)
  store atomic i64 %start, ptr %next monotonic, align 8  ; under the mutex, which orders it before all that `take` does
  %following = add i64 %part, 1
  %more = icmp slt i64 %following, %parts
  br i1 %more, label %again, label %done
done:
  ret void
}

define internal i64 @take(ptr %function, ptr %context, i64 %own, ptr %scratch) {
  %parts = load i64, ptr @parts
  br label %begin
begin:
  %turn = phi i64 [0, %0], [%later, %end]
  %before = phi i64 [0, %0], [%taken, %end]
  %shifted = add i64 %own, %turn
  %part = urem i64 %shifted, %parts
  %next = call ptr @next_of(i64 %part)
  %above = add i64 %part, 1
  %stop = call i64 @first_of(i64 %above)
  br label %again
again:
  %taken = phi i64 [%before, %begin], [%counted, %run]
  ; relaxed: the numbers of tasks are all that threads exchange here
  %task = atomicrmw add ptr %next, i64 1 monotonic
  %more = icmp slt i64 %task, %stop
  br i1 %more, label %run, label %end
run:
  call void %function(ptr %context, i64 %task, ptr %scratch)
  %counted = add i64 %taken, 1
  br label %again
end:
  %later = add i64 %turn, 1
  %others = icmp slt i64 %later, %parts
  br i1 %others, label %begin, label %done
done:
  ret i64 %taken
}

define internal void @take_on_stack(ptr %function, ptr %context, i64 %own, i64 %bytes) noinline {
  %scratch = alloca i8, i64 %bytes, align 64
  call i64 @take(ptr %function, ptr %context, i64 %own, ptr %scratch)
  ret void
}

define void @threads_share(
  ptr %function, ptr %context, i64 %tasks, i64 %threads, i1 %known, i1 %stops, ptr %status, ptr %scratch, i64 %bytes
) {
  ; relaxed, like `threshold`: an old number changes who runs the tasks alone
  %workers = load atomic i64, ptr @workers monotonic, align 8
  %others = sub i64 %threads, 1
  %later = sub i64 %tasks, 1
  %fits = icmp ule i64 %bytes, ROOM
  %able = select i1 %fits, i64 %workers, i64 0
  %few = call i64 @llvm.smin.i64(i64 %able, i64 %others)
  %fewer = call i64 @llvm.smin.i64(i64 %few, i64 MOST)
  %helpers = call i64 @llvm.smin.i64(i64 %fewer, i64 %later)
  %several = icmp sgt i64 %helpers, 0
  br i1 %several, label %choose, label %alone
choose:
  %threshold = load atomic i64, ptr @threshold monotonic, align 8
  %entered = call i64 @now()
  br i1 %known, label %consider, label %first
first:
  call void %function(ptr %context, i64 0, ptr %scratch)
  %end = call i64 @now()
  %took = sub i64 %end, %entered
  %rest = mul i64 %took, %later
  %long = icmp sgt i64 %rest, %threshold
  br i1 %long, label %consider, label %alone
consider:
  %begun = phi i64 [0, %choose], [1, %first]
  %expected = phi i64 [9223372036854775807, %choose], [%rest, %first]
  %learns = icmp sge i64 %threshold, 0
  br i1 %learns, label %look, label %claim
look:
  %program = getelementptr i64, ptr %status, i64 ACCOUNT
  %loop = call ptr @loop_of(ptr %function, i64 %tasks, i64 %helpers)
  %one = call i1 @threads_prefers_one(ptr %program, ptr %loop, i64 %expected)
  br i1 %one, label %alone, label %claim
claim:
  %noted = phi ptr [null, %consider], [%loop, %look]
  %account = phi ptr [null, %consider], [%program, %look]
  ; acquire, with the release below: the loop of another thread of Python is over, all that it read of the state too
  %busy = atomicrmw xchg ptr @busy, i64 1 acquire
  %free = icmp eq i64 %busy, 0
  br i1 %free, label %launch, label %alone
launch:
  call void @lock(ptr @mutex)
  store ptr %function, ptr @function
  store ptr %context, ptr @context
  store i64 %tasks, ptr @tasks
  store i64 %bytes, ptr @bytes
  %parts = add i64 %helpers, 1
  store i64 %parts, ptr @parts
  call void @divide(i64 %begun)
  store i64 %helpers, ptr @open
  call void @unlock(ptr @mutex)
  call void @wake_all(ptr @work)
  %start_time = call i64 @now()
  %start_work = call i64 @worked()
  %taken = call i64 @take(ptr %function, ptr %context, i64 0, ptr %scratch)
  %end_work = call i64 @worked()
  call void @lock(ptr @mutex)
  store i64 0, ptr @open
  br label %wait
wait:
  %active = load i64, ptr @active
  %some = icmp sgt i64 %active, 0
  br i1 %some, label %sleep, label %finish
sleep:
  %is_late = call i1 @wait_in_vain(ptr @done, ptr @mutex)
  %asks = and i1 %is_late, %stops
  br i1 %asks, label %signals, label %wait
signals:
  call void @unlock(ptr @mutex)
  %state = call i32 @PyGILState_Ensure()
  %answer = call i32 @PyErr_CheckSignals()
  call void @PyGILState_Release(i32 %state)
  call void @lock(ptr @mutex)
  %interrupted = icmp ne i32 %answer, 0
  br i1 %interrupted, label %stop, label %wait
stop:
  store atomic i64 STOPPED, ptr %status monotonic, align 8  ; relaxed: workers look at it between iterations, sometime
  br label %wait
finish:
  call void @unlock(ptr @mutex)
  %end_time = call i64 @now()
  %own = sub i64 %end_work, %start_work
  %divisor = call i64 @llvm.smax.i64(i64 %taken, i64 1)
  %each = sdiv i64 %own, %divisor
  %number = sub i64 %tasks, %begun
  %work_time = mul i64 %each, %number
  %with = sub i64 %end_time, %start_time
  store atomic i64 0, ptr @busy release, align 8
  %is_noted = icmp ne ptr %noted, null
  br i1 %is_noted, label %compare, label %return
compare:
  call void @threads_note_shared(ptr %account, ptr %noted, i64 %with, i64 %work_time)
  br label %return
alone:
  %start = phi i64 [0, %0], [1, %first], [%begun, %look], [%begun, %claim]
  %timed = phi ptr [null, %0], [null, %first], [%loop, %look], [null, %claim]
  %payer = phi ptr [null, %0], [null, %first], [%program, %look], [null, %claim]
  %untimed = icmp eq ptr %timed, null
  br i1 %untimed, label %ready, label %start_clock
start_clock:
  %started = call i64 @worked()
  br label %ready
ready:
  %since = phi i64 [0, %alone], [%started, %start_clock]
  br label %again
again:
  %task = phi i64 [%start, %ready], [%following, %run]
  %more = icmp slt i64 %task, %tasks
  br i1 %more, label %run, label %leave
run:
  call void %function(ptr %context, i64 %task, ptr %scratch)
  %following = add i64 %task, 1
  br label %again
leave:
  br i1 %untimed, label %return, label %note
note:
  %now = call i64 @worked()
  %worked = sub i64 %now, %since
  call void @threads_note_alone(ptr %payer, ptr %timed, i64 %worked)
  br label %return
return:
  ret void
}

define ptr @threads_worker(ptr %worker) {
  call void @begin_worker()
  %number = ptrtoint ptr %worker to i64
  call void @lock(ptr @mutex)
  br label %look
look:
  %stop = load i64, ptr @stop
  %ends = icmp ne i64 %stop, 0
  br i1 %ends, label %leave, label %ask
ask:
  %open = load i64, ptr @open
  %wanted = icmp sgt i64 %open, 0
  br i1 %wanted, label %join, label %sleep
sleep:
  call void @wait(ptr @work, ptr @mutex)
  br label %look
join:
  %fewer = sub i64 %open, 1
  store i64 %fewer, ptr @open
  %before = load i64, ptr @active
  %more = add i64 %before, 1
  store i64 %more, ptr @active
  %function = load ptr, ptr @function
  %context = load ptr, ptr @context
  %bytes = load i64, ptr @bytes
  %parts = load i64, ptr @parts
  %others = sub i64 %parts, 1
  %index = sub i64 %number, 1
  %turn = urem i64 %index, %others
  %own = add i64 %turn, 1
  call void @unlock(ptr @mutex)
  call void @take_on_stack(ptr %function, ptr %context, i64 %own, i64 %bytes)
  call void @lock(ptr @mutex)
  %active = load i64, ptr @active
  %left = sub i64 %active, 1
  store i64 %left, ptr @active
  %last = icmp eq i64 %left, 0
  br i1 %last, label %wake, label %look
wake:
  call void @wake(ptr @done)
  br label %look
leave:
  call void @unlock(ptr @mutex)
  ret ptr null
}
"""


FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "reset": (None,),
    "end": (None,),
    "start": (ctypes.c_bool, ctypes.c_size_t, ctypes.c_void_p),
    "join": (None, ctypes.c_size_t),
}
"""The functions of the code that Python calls, after their prefix: the types of results and parameters."""


class Workers:
    """The threads of this process, and the memory that they share."""

    def __init__(self) -> None:
        self.state = (ctypes.c_char * SIZE)()
        self.threads: list[ctypes.c_void_p] = []
        self.lock = forks.lock()
        llvm.add_symbol(STATE, ctypes.addressof(self.state))
        self.engine = link(object_code(key_of(text := code()), lambda: llvm.parse_assembly(text)))
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
        return ctypes.c_int64.from_buffer(self.state, FIELDS.index(name) * LONG)

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
        word, address, flag = ctypes.c_int64, ctypes.c_void_p, ctypes.c_bool
        run = ctypes.CFUNCTYPE(None, address, address, word, word, flag, flag, address, address, word)(self.share)
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


def code() -> str:
    """The code, in which each place in the state is an address."""
    places = {name: n * LONG for n, name in enumerate(FIELDS)} | {"work": WORK, "done": DONE, "mutex": MUTEX}
    text = CODE + system.threads_code()
    for word, number in NUMBERS.items():
        text = text.replace(word, str(number))
    address = lambda match: f"getelementptr (i8, ptr @{STATE}, i64 {places[match[1]]})"  # noqa: E731
    return re.sub(rf"@({'|'.join(places)})\b", address, text)


@cache
def workers() -> Workers:
    """The workers of this process; the first call registers the symbol of `share` with LLVM."""
    return Workers()


def emit_share(builder: Builder, kinds: Kinds, values: Values) -> None:
    workers()
    call(builder, SYMBOL, ir.VoidType(), *values)


def local_of(dtype: Dtype) -> Emit:
    """The emitter of an array on the stack, which is there once for all runs of a loop around it."""

    def emit(builder: Builder, kinds: Kinds, values: Values) -> Value:
        with builder.goto_entry_block():
            return builder.alloca(memory_type(dtype), values[0].constant)

    return emit


INSTRUCTIONS: Instructions = {SHARE: emit_share} | {
    routine.name: local_of(dtype) for dtype, routine in LOCAL_ARRAYS.items()
}


def register(_: str) -> None:
    """Register `share` with LLVM."""
    workers()


def use(threads: int) -> None:
    """Have workers for loops on so many threads."""
    ours = workers()
    if len(ours.threads) < threads - 1:
        ours.start(threads - 1)
