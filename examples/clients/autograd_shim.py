"""Libraries written for HIPS autograd, such as lifelines, run on fnad, unchanged.

    pip install lifelines
    python examples/clients/autograd_shim.py [--jit] script.py [arguments]
    python examples/clients/autograd_shim.py [--jit] -m pytest --pyargs ...

`install()` puts modules under autograd's names into `sys.modules`. The names under `autograd.numpy` are NumPy's own,
since fnad differentiates plain NumPy; those under `autograd.scipy` are SciPy's. With `jit` the functions that an
optimizer calls over and over are compiled: `value_and_grad` and `grad`. A Hessian is asked for once, at the end of a
fit: to compile it takes longer than to compute it.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, partial, wraps
from types import ModuleType
from typing import Any

import numpy as np
import scipy.special
import scipy.stats

import fnad
import fnad.numpy
import fnad.scipy.special
import fnad.scipy.stats
from fnad.trace.tracer import Tracer

Function = Callable[..., Any]

# ---- differential operators ------------------------------------------------------------------------------------------


ORDER: ContextVar[int] = ContextVar("ORDER", default=0)
"""How many derivatives are still to be taken of what is being called: rules are followed no further."""


@contextmanager
def order_changed(by: int) -> Generator[None]:
    """So many more, or fewer."""
    token = ORDER.set(ORDER.get() + by)
    try:
        yield
    finally:
        ORDER.reset(token)


def operator(transform: Function, order: int = 1, compiled: bool = False) -> Function:
    """A transform in the form of autograd: it differentiates in one argument, or in several as a tuple.

    All other arguments may be anything. They are constants of the derivative, which is made anew when others come. What
    is compiled is remembered of the last few functions: a fit may minimize by one method after another. Within a trace
    nothing is remembered, since a function made there may have values of the trace.
    """

    def of(f: Function, argnum: int | Sequence[int] = 0) -> Function:
        several = not isinstance(argnum, int)
        make = made if ORDER.get() else remembered
        return make(f, tuple(argnum) if several else (argnum,), several)

    def made(f: Function, places: tuple[int, ...], several: bool) -> Function:
        last: list[Any] = [None, None]

        def with_constants(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Function:
            def inner(given: Any) -> Any:
                moved = dict(zip(places, given if several else (given,), strict=True))
                return f(*[moved.get(i, arg) for i, arg in enumerate(args)], **kwargs)

            return inner

        def prepared(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Function:
            constants = [arg for i, arg in enumerate(args) if i not in places] + [*kwargs.values()]
            if any(isinstance(one, Tracer) for one in constants):
                return transform(with_constants(args, kwargs))
            if last[0] is None or not same(last[0], constants):
                rest = tuple(None if i in places else arg for i, arg in enumerate(args))
                made = transform(with_constants(rest, kwargs))
                last[:] = constants, fnad.jit(made) if compiled else made
            return last[1]

        @wraps(f, assigned=("__name__", "__doc__"), updated=())
        def derivative(*args: Any, **kwargs: Any) -> Any:
            given = tuple(as_float(args[i]) for i in places) if several else as_float(args[places[0]])
            with order_changed(order):
                return prepared(args, kwargs)(given)

        return derivative

    remembered = lru_cache(maxsize=16)(made) if compiled else made
    return of


def as_float(value: Any) -> Any:
    """What has a derivative in the place of integers."""
    if isinstance(value, (bool, int)):
        return float(value)
    is_array = isinstance(value, (np.ndarray, np.generic))
    return np.asarray(value, float)[()] if is_array and value.dtype.kind in "iub" else value


def same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether two lists have the same objects."""
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def elementwise(f: Function) -> Function:
    """The derivative of each element of the result in the element of the argument at its place."""
    return fnad.grad(lambda x: np.sum(f(x)))


def make_vjp(f: Function, x: Any) -> tuple[Function, Any]:
    """The pullback at x, and the value."""
    with order_changed(1):
        value, pullback = fnad.vjp(f, x)
    return lambda ct: pullback(ct)[0], value


def make_jvp(f: Function, argnum: int = 0) -> Function:
    """A function of the arguments that returns one from a tangent to the value's."""

    def at(*args: Any, **kwargs: Any) -> Function:
        def push(tangent: Any) -> Any:
            with order_changed(1):
                return fnad.jvp(inner, (args[argnum],), (tangent,))

        def inner(x: Any) -> Any:
            return f(*args[:argnum], x, *args[argnum + 1 :], **kwargs)

        return push

    return at


def make_jvp_reversemode(f: Function, argnum: int = 0) -> Function:
    """The same, for the tangent alone."""
    push = make_jvp(f, argnum)
    return lambda *args, **kwargs: lambda tangent: push(*args, **kwargs)(tangent)[1]


# ---- functions with rules --------------------------------------------------------------------------------------------


class Primitive:
    """A function whose derivative `defvjp` states: for each argument a function (value, *arguments) -> pullback."""

    def __init__(self, f: Function) -> None:
        self.f = f
        self.makers: dict[int, Function | None] = {}
        self.custom: dict[int, Function] = {}
        wraps(f, updated=())(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The value, with the rule if a derivative is to be taken and there is one."""
        if not self.makers or not ORDER.get() or not any(isinstance(arg, Tracer) for arg in args):
            return self.f(*args, **kwargs)
        count = len(args)
        if count not in self.custom:
            self.custom[count] = self.with_rule(count)
        return self.custom[count](*args)

    def with_rule(self, count: int) -> Function:
        """The function of so many arguments as fnad has it."""
        function = fnad.custom_vjp(partial(self.f))

        def pull(residuals: Any, ct: Any) -> tuple[Any, ...]:
            value, args = residuals
            with order_changed(-1):
                return tuple(self.maker(i)(value, *args)(ct) for i in range(count))

        def run(*args: Any) -> Any:
            with order_changed(-1):
                value = self(*args)
            return value, (value, args)

        function.defvjp(run, pull)
        return function

    def maker(self, i: int) -> Function:
        """The rule for one argument; None states that the derivative is zero."""
        if i not in self.makers:
            raise NotImplementedError(f"VJP of {self.f} wrt argnum {i} not defined")
        return self.makers[i] or (lambda _, *args: lambda ct: np.zeros(np.shape(args[i])))


def defvjp(function: Primitive, *makers: Function | None, argnums: Sequence[int] | None = None) -> None:
    """State the rules of a primitive."""
    function.makers.update(zip(argnums or range(len(makers)), makers, strict=False))


def unbroadcast(ct: Any, target: Any) -> Any:
    """A cotangent summed over what broadcasting added to the target."""
    shape = np.shape(target)
    while np.ndim(ct) > len(shape):
        ct = np.sum(ct, axis=0)
    stretched = tuple(i for i, n in enumerate(shape) if n == 1 and np.shape(ct)[i] != 1)
    return np.sum(ct, axis=stretched, keepdims=True) if stretched else ct


def unbroadcast_f(target: Any, pullback: Function) -> Function:
    """A pullback whose result has the shape of the target."""
    return lambda ct: unbroadcast(pullback(ct), target)


# ---- nested containers -----------------------------------------------------------------------------------------------


def flatten(value: Any) -> tuple[Any, Function]:
    """One vector of all numbers in nested dicts, lists and tuples, and the function back."""
    if not isinstance(value, (dict, list, tuple)):
        return np.ravel(value), lambda flat: np.reshape(flat, np.shape(value))[()]
    keys = sorted(value) if isinstance(value, dict) else range(len(value))
    parts = [flatten(value[key]) for key in keys]
    ends = np.cumsum([0, *[np.size(flat) for flat, _ in parts]])

    def back(flat: Any) -> Any:
        found = [part(flat[a:b]) for (_, part), a, b in zip(parts, ends[:-1], ends[1:], strict=True)]
        return dict(zip(keys, found, strict=True)) if isinstance(value, dict) else type(value)(found)

    return (np.concatenate([flat for flat, _ in parts]) if parts else np.zeros(0)), back


# ---- the modules -----------------------------------------------------------------------------------------------------


def stack(arrays: Iterable[Any], axis: int = 0) -> Any:
    """NumPy's, which autograd's takes from any iterable."""
    return np.stack([*arrays], axis)


class Joined(ModuleType):
    """A module with the names of several others: of the first that has one."""

    def __init__(self, name: str, *others: ModuleType, **own: Any) -> None:
        super().__init__(name)
        vars(self).update(own, _others=others, __path__=[])

    def __getattr__(self, name: str) -> Any:
        for other in self._others:
            if not name.startswith("__") and hasattr(other, name):
                found = vars(self)[name] = getattr(other, name)
                return found
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


def modules(jit: bool = False) -> dict[str, ModuleType]:
    """The modules of autograd, by name."""
    table: dict[str, dict[str, Any]] = {
        "autograd": {
            "grad": operator(fnad.grad, compiled=jit),
            "value_and_grad": operator(fnad.value_and_grad, compiled=jit),
            "elementwise_grad": operator(elementwise),
            "jacobian": operator(fnad.jacobian),
            "hessian": operator(fnad.hessian, 2),
            "make_jvp": make_jvp,
        },
        "autograd.differential_operators": {"make_jvp_reversemode": make_jvp_reversemode, "make_jvp": make_jvp},
        "autograd.core": {"make_vjp": make_vjp},
        "autograd.extend": {"primitive": Primitive, "defvjp": defvjp},
        "autograd.builtins": {"DictBox": dict, "ListBox": list, "TupleBox": tuple, "dict": dict, "list": list},
        "autograd.tracer": {"Box": Tracer},
        "autograd.misc": {"flatten": flatten},
        "autograd.misc.flatten": {"flatten": flatten},
        "autograd.numpy.numpy_boxes": {"ArrayBox": Tracer},
        "autograd.numpy.numpy_vjps": {"unbroadcast_f": unbroadcast_f, "unbroadcast": unbroadcast},
        "autograd.scipy": {},
    }
    made: dict[str, ModuleType] = {name: Joined(name, **contents) for name, contents in table.items()}
    made["autograd.numpy"] = Joined("autograd.numpy", fnad.numpy, np, stack=stack)
    made["autograd.numpy.linalg"] = Joined("autograd.numpy.linalg", fnad.numpy.linalg, np.linalg)
    made["autograd.scipy.special"] = Joined("autograd.scipy.special", fnad.scipy.special, scipy.special)
    made["autograd.scipy.stats"] = Joined("autograd.scipy.stats", fnad.scipy.stats, scipy.stats)
    for name, module in made.items():
        parent, _, child = name.rpartition(".")
        if parent and child not in vars(made[parent]):
            setattr(made[parent], child, module)
    return made


def install(jit: bool = False) -> None:
    """Put the modules where autograd's would be; libraries are to be imported after this."""
    sys.modules.update(modules(jit))


def main() -> None:
    """Run a script or a module as Python would."""
    arguments = sys.argv[1:]
    jit = arguments[:1] == ["--jit"]
    arguments = arguments[jit:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        return
    install(jit)
    is_module = arguments[0] == "-m"
    sys.argv = arguments[is_module:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True) if is_module else runpy.run_path(
        sys.argv[0], run_name="__main__"
    )


if __name__ == "__main__":
    main()
