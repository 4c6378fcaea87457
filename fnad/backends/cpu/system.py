"""The operating system: the functions that native code calls there, and how C functions take complex numbers.

`THREADS` is the part of the code of `threads.py` that differs between systems:

    lock(mutex), unlock(mutex)
    wait(condition, mutex)                  sleep until woken, with the mutex given back meanwhile
    wait_in_vain(condition, mutex)          likewise, for 50 ms at most; true if nothing woke the thread
    wake(condition), wake_all(condition)
    now(), worked()                         nanoseconds, and those that this thread had a processor
    begin_worker()                          prepare a new thread
    threads_reset()                         make the mutex and the conditions anew
    threads_start(number, handle)           start `threads_worker(number)`; true unless the system refuses
    threads_join(handle)                    wait until the thread has ended

A mutex and a condition each have 64 bytes, which is enough on all systems. Locking a mutex is an acquire operation and
unlocking it is a release operation, by POSIX and by Windows: a thread reads everything that other threads wrote before
they unlocked the mutex.
"""

from __future__ import annotations

import ctypes
import signal
import sys
import time
from typing import Any

import llvmlite.binding as llvm

POSIX = """
@all_signals = internal constant [128 x i8] c"ALL"
declare i32 @clock_gettime(i32, ptr)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_timedwait(ptr, ptr, ptr)
declare i32 @pthread_cond_signal(ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @pthread_attr_init(ptr)
declare i32 @pthread_attr_setstacksize(ptr, i64)
declare i32 @pthread_attr_destroy(ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)

define internal void @lock(ptr %mutex) {
  call i32 @pthread_mutex_lock(ptr %mutex)
  ret void
}

define internal void @unlock(ptr %mutex) {
  call i32 @pthread_mutex_unlock(ptr %mutex)
  ret void
}

define internal void @wait(ptr %condition, ptr %mutex) {
  call i32 @pthread_cond_wait(ptr %condition, ptr %mutex)
  ret void
}

define internal i1 @wait_in_vain(ptr %condition, ptr %mutex) {
  %time = alloca [2 x i64]
  %fraction = getelementptr i64, ptr %time, i64 1
  %now = call i64 @time_of(i32 0)
  %until = add i64 %now, 50000000
  %seconds = udiv i64 %until, 1000000000
  %nanoseconds = urem i64 %until, 1000000000
  store i64 %seconds, ptr %time
  store i64 %nanoseconds, ptr %fraction
  %error = call i32 @pthread_cond_timedwait(ptr %condition, ptr %mutex, ptr %time)
  %is_late = icmp ne i32 %error, 0
  ret i1 %is_late
}

define internal void @wake(ptr %condition) {
  call i32 @pthread_cond_signal(ptr %condition)
  ret void
}

define internal void @wake_all(ptr %condition) {
  call i32 @pthread_cond_broadcast(ptr %condition)
  ret void
}

define internal i64 @time_of(i32 %clock) {
  %time = alloca [2 x i64]
  call i32 @clock_gettime(i32 %clock, ptr %time)
  %fraction = getelementptr i64, ptr %time, i64 1
  %seconds = load i64, ptr %time
  %nanoseconds = load i64, ptr %fraction
  %scaled = mul i64 %seconds, 1000000000
  %sum = add i64 %scaled, %nanoseconds
  ret i64 %sum
}

define internal i64 @now() {
  %time = call i64 @time_of(i32 MONOTONIC)
  ret i64 %time
}

define internal i64 @worked() {
  %time = call i64 @time_of(i32 THREAD_CPUTIME)
  ret i64 %time
}

define internal void @begin_worker() {
  ; Python's handlers of signals are for the other threads
  call i32 @pthread_sigmask(i32 SET_MASK, ptr @all_signals, ptr null)
  ret void
}

define void @threads_reset() {
  call i32 @pthread_mutex_init(ptr @mutex, ptr null)
  call i32 @pthread_cond_init(ptr @work, ptr null)
  call i32 @pthread_cond_init(ptr @done, ptr null)
  ret void
}

define zeroext i1 @threads_start(ptr %number, ptr %handle) {
  %attributes = alloca [128 x i8], align 16
  call i32 @pthread_attr_init(ptr %attributes)
  call i32 @pthread_attr_setstacksize(ptr %attributes, i64 STACK)
  %error = call i32 @pthread_create(ptr %handle, ptr %attributes, ptr @threads_worker, ptr %number)
  call i32 @pthread_attr_destroy(ptr %attributes)
  %is_started = icmp eq i32 %error, 0
  ret i1 %is_started
}

define void @threads_join(i64 %handle) {
  call i32 @pthread_join(i64 %handle, ptr null)
  ret void
}
"""

WINDOWS = """
declare void @AcquireSRWLockExclusive(ptr)
declare void @ReleaseSRWLockExclusive(ptr)
declare i32 @SleepConditionVariableSRW(ptr, ptr, i32, i32)
declare void @WakeConditionVariable(ptr)
declare void @WakeAllConditionVariable(ptr)
declare i32 @QueryPerformanceCounter(ptr)
declare i32 @QueryPerformanceFrequency(ptr)
declare i64 @CreateThread(ptr, i64, ptr, ptr, i32, ptr)
declare i32 @WaitForSingleObject(i64, i32)
declare i32 @CloseHandle(i64)

define internal void @lock(ptr %mutex) {
  call void @AcquireSRWLockExclusive(ptr %mutex)
  ret void
}

define internal void @unlock(ptr %mutex) {
  call void @ReleaseSRWLockExclusive(ptr %mutex)
  ret void
}

define internal void @wait(ptr %condition, ptr %mutex) {
  call i32 @SleepConditionVariableSRW(ptr %condition, ptr %mutex, i32 -1, i32 0)
  ret void
}

define internal i1 @wait_in_vain(ptr %condition, ptr %mutex) {
  %woken = call i32 @SleepConditionVariableSRW(ptr %condition, ptr %mutex, i32 50, i32 0)
  %is_late = icmp eq i32 %woken, 0
  ret i1 %is_late
}

define internal void @wake(ptr %condition) {
  call void @WakeConditionVariable(ptr %condition)
  ret void
}

define internal void @wake_all(ptr %condition) {
  call void @WakeAllConditionVariable(ptr %condition)
  ret void
}

define internal i64 @now() {
  %count_place = alloca i64
  %frequency_place = alloca i64
  call i32 @QueryPerformanceCounter(ptr %count_place)
  call i32 @QueryPerformanceFrequency(ptr %frequency_place)
  %count = load i64, ptr %count_place
  %frequency = load i64, ptr %frequency_place
  %seconds = sdiv i64 %count, %frequency
  %rest = srem i64 %count, %frequency
  %scaled = mul i64 %seconds, 1000000000
  %scaled_rest = mul i64 %rest, 1000000000
  %nanoseconds = sdiv i64 %scaled_rest, %frequency
  %sum = add i64 %scaled, %nanoseconds
  ret i64 %sum
}

define internal i64 @worked() {
  ; Windows counts a thread's time in steps of 16 ms
  %time = call i64 @now()
  ret i64 %time
}

define internal void @begin_worker() {
  ret void
}

define void @threads_reset() {
  ; zeros are a free lock, and conditions for which no thread waits
  store i64 0, ptr @mutex
  store i64 0, ptr @work
  store i64 0, ptr @done
  ret void
}

define zeroext i1 @threads_start(ptr %number, ptr %handle) {
  ; 65536: the size is that of the stack, not of the part that has memory at once
  %thread = call i64 @CreateThread(ptr null, i64 STACK, ptr @threads_worker, ptr %number, i32 65536, ptr null)
  store i64 %thread, ptr %handle
  %is_started = icmp ne i64 %thread, 0
  ret i1 %is_started
}

define void @threads_join(i64 %handle) {
  call i32 @WaitForSingleObject(i64 %handle, i32 -1)
  call i32 @CloseHandle(i64 %handle)
  ret void
}
"""

IS_WINDOWS = sys.platform == "win32"


def yield_name() -> str:
    """The function that lets another thread have the processor."""
    return "SwitchToThread" if IS_WINDOWS else "sched_yield"


def threads_code() -> str:
    """The part of the code of threads that differs between systems."""
    if IS_WINDOWS:
        return WINDOWS
    numbers = {
        "THREAD_CPUTIME": time.CLOCK_THREAD_CPUTIME_ID,
        "MONOTONIC": time.CLOCK_MONOTONIC,
        "SET_MASK": int(signal.SIG_SETMASK),
        '"ALL"': '"' + 128 * r"\ff" + '"',
    }
    text = POSIX
    for word, number in numbers.items():
        text = text.replace(word, str(number))
    return text


LIBRARIES = {"__chkstk": ("ntdll", "__chkstk"), "hypotf": ("ucrtbase", "_hypotf")}
"""Functions of Windows that LLVM does not find: the one that large arrays on the stack call, one with another name."""

USES_FLOATS = "_fltused"
"""A mark in object files of Windows."""

_KEPT: list[Any] = []


def register() -> None:
    """Register with LLVM the symbols of object files that its search of the process does not find."""
    if IS_WINDOWS:
        _KEPT.append(mark := ctypes.c_int())
        llvm.add_symbol(USES_FLOATS, ctypes.addressof(mark))
        for symbol, (library, name) in LIBRARIES.items():
            _KEPT.append(found := getattr(ctypes.CDLL(library), name))
            llvm.add_symbol(symbol, ctypes.cast(found, ctypes.c_void_p).value)
