"""SciPy's own functions on traced values, under whatever name they are known.

`from scipy.special import logsumexp` may have run before fnad was imported, in a module that has never heard of it. The
function it found is a Python function, and what such a function does is its code. So while a trace runs, the functions
that have a rule in `fnad.scipy` (`fnad.trace.scipy_table`) have other code: in a thread that traces it calls what
fnad.scipy has under the name, which follows its rule where an argument is traced and is SciPy's elsewhere; in all other
threads it runs SciPy's own. The function itself, its names, attributes, defaults and closure stay, and when the last
trace of the process ends it has its own code back.

Only modules that somebody has imported are looked at: when a trace begins, and when one is imported meanwhile.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from inspect import signature
from pkgutil import resolve_name
from types import CodeType, FunctionType, ModuleType
from typing import Any

from fnad.ir.builder import is_tracing
from fnad.numpy.bodies import OWN
from fnad.trace.scipy_table import TABLE


@cache
def _code(free: int) -> CodeType:
    """The other code of functions with so many free variables: a frame copies as many as its function has."""
    names = ", ".join(["", *[f"v{i}" for i in range(free)]])
    source = f"""
def around(_{names}):
    def exchanged(*args, **kwargs):
        if False: (None{names})
        return "an Exchange".call(*args, **kwargs)
    return exchanged
"""
    namespace: dict[str, Any] = {}
    exec(source, namespace)  # which is written above
    return namespace["around"](*[None] * (free + 1)).__code__


class Exchange:
    """A function of SciPy's with its own code and the other one, which has this object among its constants."""

    def __init__(self, function: FunctionType, path: str) -> None:
        self.function, self.path, self.own_code = function, path, function.__code__
        self.own = FunctionType(
            function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
        )
        self.own.__kwdefaults__ = function.__kwdefaults__
        self.own.__dict__.update(vars(function))
        self.own.__qualname__, self.own.__module__ = function.__qualname__, function.__module__
        self.other_code = self._other(function.__code__)
        if not (hasattr(function, "__wrapped__") or hasattr(function, "__signature__")):
            function.__signature__ = signature(function)  # type: ignore[attr-defined]  # which is read off the code
        OWN[function] = self.own

    def _other(self, code: CodeType) -> CodeType:
        like = _code(len(code.co_freevars))
        constants = tuple(self if constant == "an Exchange" else constant for constant in like.co_consts)
        return like.replace(
            co_consts=constants,
            co_freevars=code.co_freevars,
            co_filename=code.co_filename,
            co_firstlineno=code.co_firstlineno,
            co_name=self.function.__name__,
            co_qualname=self.function.__qualname__,
        )

    @cached_property
    def offered(self) -> Callable[..., Any]:
        """What fnad.scipy has in its place."""
        return resolve_name(self.path)

    def call(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call what fnad.scipy has where a trace runs in this thread, and SciPy's own code elsewhere."""
        return (self.offered if is_tracing() else self.own)(*args, **kwargs)


class _Exchanges:
    """All of them; as a finder of modules it sees which ones are imported, and finds none."""

    def __init__(self) -> None:
        self.waiting = set(TABLE)
        self.made: list[Exchange] = []
        self.is_on = False

    def begin(self) -> None:
        for name in sorted(name for name in self.waiting if name in sys.modules):  # `&` goes over all modules
            self.enter(sys.modules[name])
        self.is_on = True
        for exchange in self.made:  # without a call: there may be two hundred, at each trace
            exchange.function.__code__ = exchange.other_code
        if self.waiting:
            sys.meta_path.insert(0, self)

    def end(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        self.is_on = False
        for exchange in self.made:
            exchange.function.__code__ = exchange.own_code

    def enter(self, module: ModuleType) -> None:
        """Make the exchanges of a module."""
        self.waiting.discard(module.__name__)
        for exchange in _of_module(module):
            self.made.append(exchange)
            if self.is_on:
                exchange.function.__code__ = exchange.other_code

    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> Any:
        """None, or for a module with functions to exchange how it is found, which ends in exchanging them."""
        if fullname not in self.waiting:
            return None
        finders = (finder for finder in sys.meta_path if finder is not self)
        specs = (finder.find_spec(fullname, path, target) for finder in finders)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and spec.loader is not None:
            _then(spec.loader, self.enter)
        return spec


def _then(loader: Any, enter: Callable[[ModuleType], None]) -> None:
    """Have a loader, which is made for one module, call a function once that is there."""
    run = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        del loader.exec_module
        run(module)
        enter(module)

    loader.exec_module = exec_module


def _of_module(module: ModuleType) -> Iterator[Exchange]:
    for offering, names in TABLE[module.__name__].items():
        for name in names:
            function: Any = module
            for part in name.split("."):
                function = getattr(function, part, None)
            if isinstance(function, FunctionType) and function not in OWN:
                yield Exchange(function, f"{offering}:{name}")


EXCHANGES = _Exchanges()
