"""Compilation in a thread beside the running program, which goes on with the code that it has.

    call ──▶ interpreted ──▶ interpreted ──▶ interpreted ──▶ native
      └─▶ waiting ─▶ lowered ─▶ compiled by LLVM, without the GIL ─┘

One thread compiles one program after the other and ends when none is waiting. A fork drops the waiting programs. It
waits until the program under way is compiled, because `TieredProgram` holds a lock meanwhile (`fnad.forks`). The next
call of a dropped program adds it again. At the end of a process the thread is ended like other daemon threads.
"""

from __future__ import annotations

import threading
from contextvars import Context, copy_context
from typing import Protocol
from weakref import ref

from fnad import forks


class Compilable(Protocol):
    """A program that can be compiled in the background."""

    def compile_in_background(self) -> None:
        """Compile the program."""
        ...


class Background:
    """The programs that wait, in order, each with the context of the call that found it worth compiling."""

    def __init__(self) -> None:
        self._waiting: dict[ref[Compilable], Context] = {}
        self._thread: threading.Thread | None = None
        self._lock = forks.lock()
        forks.at_fork(before=self._forget)

    def compile(self, program: Compilable) -> None:
        """Compile a program in the background, unless it is waiting already."""
        if self.compiles(program) and (thread := self._thread) is not None and thread.is_alive():
            return
        with self._lock:
            self._waiting.setdefault(ref(program), copy_context())
            if self._thread is None or not self._thread.is_alive():
                (thread := threading.Thread(target=self._compile_all, name="fnad compiler", daemon=True)).start()
                self._thread = thread

    def wait(self) -> None:
        """Wait until nothing is left to compile."""
        while (thread := self._thread) is not None and thread.is_alive():
            thread.join()

    def compiles(self, program: Compilable) -> bool:
        """True if a program is waiting or being compiled."""
        return ref(program) in self._waiting

    def _forget(self) -> None:
        with self._lock:
            self._waiting.clear()

    def _compile_all(self) -> None:
        while (following := self._following()) is not None:
            reference, context = following
            try:
                if (program := reference()) is not None:
                    context.run(program.compile_in_background)
            finally:
                program = None  # the reference alone keeps no program alive
                self._waiting.pop(reference, None)

    def _following(self) -> tuple[ref[Compilable], Context] | None:
        with self._lock:
            following = next(iter(self._waiting.items()), None)
            if following is None:
                self._thread = None
            return following


BACKGROUND = Background()
