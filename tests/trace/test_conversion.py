# ruff: noqa: E501 - the cases are modules
"""Converted functions against what Python does: values, order of evaluation, exceptions; and the proof of source.

Each case is a module of its own with a function `case(say)`. `say` notes what is evaluated and returns it.
"""

import importlib.util
import inspect
import linecache
import pickle
import re
import sys
import traceback
import warnings
from itertools import count

import numpy as np
import pytest

import fnad
from fnad.ir.types import F64, Aval
from fnad.trace.conversion import converted
from fnad.trace.tracing import trace_function
from tests.steps import steps

PRELUDE = '''
def own_of(noisy): return object.__getattribute__(noisy, "__dict__")


class Noisy:
    """An object whose every operation is said."""

    def __init__(self, say, name):
        own_of(self).update(say=say, name=name)

    def __getattribute__(self, name):
        own = own_of(self)
        own["say"](f"{own['name']}.{name}")
        return Noisy(own["say"], f"{own['name']}.{name}")

    def __setattr__(self, name, value):
        own = own_of(self)
        own["say"](f"{own['name']}.{name} =")

    def __delattr__(self, name):
        own = own_of(self)
        own["say"](f"del {own['name']}.{name}")

    def __call__(self, *args, **kwargs):
        own = own_of(self)
        own["say"](f"{own['name']}({len(args)}, {sorted(kwargs)})")
        return Noisy(own["say"], f"{own['name']}()")

    def __getitem__(self, index):
        own = own_of(self)
        own["say"](f"{own['name']}[{index if isinstance(index, (int, slice, tuple)) else '?'}]")
        return Noisy(own["say"], f"{own['name']}[]")

    def __setitem__(self, index, value):
        own_of(self)["say"](f"[{index}] =")

    def __delitem__(self, index):
        own_of(self)["say"](f"del [{index}]")

    def __iter__(self):
        own_of(self)["say"]("iter")
        return iter((1, 2))

    def __add__(self, other):
        own_of(self)["say"]("+")
        return self

    def __iadd__(self, other):
        own_of(self)["say"]("+=")
        return self

    def __lt__(self, other):
        own_of(self)["say"]("<")
        return self

    def __bool__(self):
        own_of(self)["say"]("bool")
        return True

    def __enter__(self):
        own_of(self)["say"]("enter")
        return self

    def __exit__(self, kind, error, trace):
        own_of(self)["say"](f"exit {kind}")
        return True
'''
"""The begin of every module."""

CASES = {
    "order in expressions": """
def case(say):
    a, b = Noisy(say, "a"), Noisy(say, "b")
    a.x(b.y, *b.z, k=a[1].w, **{"m": b[2:3]})
    a.x[b.i, say(1)] = b.v
    a.x.y += b.w
    a[say(2)] += b.w
    a[say(3)][say(4)].z = b.q = say(5)
    del a.x.y, b[say(6)]
    a.f(say(7)) < b.g(say(8)) < a.h
    (a.p, b.q), *a.r = (say(1), say(2)), say(3)
    [a.u, a[say(9)]] = b
    return f"{say(1)!r:>{say(9)}}{say(2)}", say(1) if say(0) else say(3), say(0) or say(4) and say(5)""",
    "order in statements": """
def case(say):
    a, b = Noisy(say, "a"), Noisy(say, "b")
    with a.x as b.y, a(say(1)) as (c, d):
        raise ValueError(say("inside"))
    for a.x, in [(say(1),), (2,)]:
        continue
    else:
        say("else")
    for b[say(3)] in a.z: break
    assert a.t, b.u
    while say(0): pass
    else: say("else of while")
    @a.deco(say(1))
    @b.other
    def inner(x: say("annotation") = say("default"), *, k=say("by keyword")) -> say("result"): pass
    class Inner(say(object), metaclass=say(type)):
        x: say("annotation in class") = say("in class")
    x: say("annotation of a variable") = 1
    return [say(i) for i in range(3) if say(i)]""",
    "closures": """
COUNT = 10
def case(say):
    total, unused = 0, 1
    def add(n):
        nonlocal total
        total += n
        return total
    def deeper():
        def deepest(): return total, unused
        return deepest
    def bump():
        global COUNT, FRESH
        COUNT += 1; FRESH = COUNT
        return COUNT + FRESH
    makers = [lambda i=i: (i, total) for i in range(3)]
    late = [lambda: i for i in range(3)]
    add(3), add(4)
    return add(1), deeper()(), bump(), bump(), [m() for m in makers], [m() for m in late], add.__closure__ is None""",
    "unbound variables": """
def case(say):
    def inner():
        return later
    try: inner()
    except NameError as error: say(str(error))
    try: missing
    except NameError as error: say(str(error))
    later = 1
    say(inner())
    del later
    try: later
    except UnboundLocalError as error: say(str(error))
    inner()""",
    "generators": """
def numbers(say, n):
    try:
        for i in range(n):
            got = yield say(i)
            if got: say(("got", got))
        return "end"
    except ValueError as error:
        yield ("error", str(error))
    finally:
        say("finally")
def case(say):
    def all_of():
        result = yield from numbers(say, 2)
        say(result)
    found = list(all_of())
    one = numbers(say, 5)
    next(one); one.send("x")
    found.append(one.throw(ValueError("v")))
    two = numbers(say, 3); next(two); two.close()
    left = numbers(say, 3); next(left)
    lazy = (say(x) for x in numbers(say, 2))
    return found, list(lazy), sum(x for x in numbers(say, 3)), dict(zip("ab", numbers(say, 2)))""",
    "classes": """
class Meta(type):
    def __prepare__(name, bases, **kw): return {"prepared": sorted(kw)}
    def __call__(cls, *args): return super().__call__(*args)
    def __getattr__(cls, name): return f"meta {name}"
    def __len__(cls): return 7
class Field:
    def __set_name__(self, owner, name): self.name = name
    def __get__(self, obj, kind=None): return self if obj is None else vars(obj).get(self.name, 0)
    def __set__(self, obj, value): vars(obj)[self.name] = value * 2
    def __delete__(self, obj): vars(obj).pop(self.name)
class Base:
    made = []
    def __init_subclass__(cls, **kw): cls.made.append(cls.__name__)
    def who(self): return "base"
    @classmethod
    def of(cls, v): return cls(v)
    @staticmethod
    def static(v): return v + 1
    def __class_getitem__(cls, item): return (cls.__name__, item)
class Point(Base, metaclass=Meta, flag=1):
    __slots__ = ("x", "__hidden")
    field = Field()
    def __init__(self, x): self.x = x; self.__hidden = x + 1; self.field = x
    @property
    def hidden(self): return self.__hidden
    @hidden.setter
    def hidden(self, v): self.__hidden = v
    @hidden.deleter
    def hidden(self): del self.__hidden
    def __add__(self, other): return Point(self.x + getattr(other, "x", other))
    __radd__ = __add__
    def __iadd__(self, v): self.x += v; return self
    def __eq__(self, other): return self.x == other.x
    def __hash__(self): return hash(self.x)
    def __getitem__(self, i): return i, self.x
    def __contains__(self, v): return v == self.x
    def __iter__(self): return iter((self.x, self.__hidden))
    def __format__(self, spec): return f"P{spec}"
    def __call__(self, *a, **k): return self.x, a, k
    def who(self): return "point of " + super().who() + __class__.__name__
    def __getattr__(self, name):
        if name == "no": raise AttributeError("none of that")
        return name
    def __private(self): return self.__class__.__name__
    def calls(self): return self.__private(), (lambda: self.__hidden)(), [self.__hidden for _ in "a"]
def case(say):
    p = Point(1); q = Point.of(2)
    p += 3
    p.hidden += 4; p.field += 1
    say((p.field, p.hidden, p._Point__hidden, Point.field.name, Point.missing, len(Point), Point.prepared))
    del p.hidden, q.field
    try: p.hidden
    except AttributeError as error: say(str(error))
    say((q.field, q.other, getattr(q, "no", 5), hasattr(q, "no"), (p + q).x, (1 + q).x, sum([q], q).x, q == Point(2)))
    class Local(Point):
        count = 0
        names = [n for n in ("a", "b")]
        def __init__(self): super().__init__(9); type(self).count += 1
        def who(self):
            def inner(): return super(Local, self).who()
            return inner() + str([super(Local, self).x for _ in "a"])
    Local.__qualname__
    return (f"{q:>3}", q(1, k=2), 2 in q, list(q), {q: 1}[Point(2)], q.who(), q.calls(), Local().who(), Local.count,
            Base.made, Point[int], Point.static(1), q[1:2, ...], Local.__qualname__, Local.names)""",
    "comprehensions": """
ROWS = [[1, 2], [3, 4]]
class Table:
    n = 2
    squares = [i * i for i in range(n)]
    table = {k: [j for j in range(k)] for k in squares}
def case(say):
    found = [y := x + 1 for row in ROWS for x in row if (z := x) % 2]
    pairs = {(i, j) for i in range(3) for j in range(i) if i != j}
    nested = [[[c * z for c in row] for row in ROWS] for _ in range(2)]
    lazy = ((a, b) for a in say([1, 2]) for b in say([3]))
    say("before")
    return (found, y, z, pairs, nested, list(lazy), Table.table, {k: v for k, v in zip("ab", ROWS)},
            [f() for f in [lambda: x for x in range(3)]], [[] for [] in [[]]], any(say(x) > 1 for x in (1, 2, 3)))""",
    "match": """
from dataclasses import dataclass
@dataclass
class P:
    x: int
    y: int = 0
    @property
    def norm(self): return abs(self.x)
class K: ONE = 1
def kind(v, say):
    match v:
        case 0 | K.ONE: return "small"
        case int(n) if say(n) > 10: return f"int {n}"
        case float() as f: return ("float", f)
        case [1, *rest, {"k": k, **others}]: return rest, k, others
        case [a, (b, c)]: return a, b, c
        case {"x": [P(x, y=0), *_]}: return x
        case P(norm=5): return "norm"
        case P(x=0) | P(1): return "point"
        case str() | None: return "none"
        case _: return "other"
def case(say):
    values = 0, 1, 11, 2.5, [1, 2, 3, {"k": 1, "m": 2}], [3, (4, 5)], {"x": [P(7)]}, P(-5, 1), P(0, 3), P(1), None, P(8), {}
    return [kind(v, say) for v in values]""",
    "try": """
def early(say):
    for i in range(3):
        try:
            if i == 1: continue
            if i == 2: return say("return")
        finally:
            say(("finally", i))
def swallow(say):
    try: return 1 / 0
    except ZeroDivisionError as error: say(type(error))
    else: say("else")
    finally: return "finally"
def again(say):
    try:
        try: {}["k"]
        except KeyError as error: raise ValueError("v") from error
    except ValueError as error:
        return repr(error.__cause__), repr(error.__context__)
def group(say):
    try: raise ExceptionGroup("g", [ValueError(1), TypeError(2), KeyError(3)])
    except* (ValueError, KeyError) as found: say([repr(e) for e in found.exceptions])
    except* TypeError as found: say(len(found.exceptions))
def case(say):
    return early(say), swallow(say), again(say), group(say)""",
    "calls": """
import functools
def f(a, /, b=2, *rest, c, d=4, **more): return a, b, rest, c, d, sorted(more.items())
def wrap(g):
    @functools.wraps(g)
    def wrapped(*args, **kwargs): return ("wrapped", g(*args, **kwargs))
    return wrapped
@wrap
@wrap
def decorated(x): return x
@functools.lru_cache
def cached(n): return n if n < 2 else cached(n - 1) + cached(n - 2)
def case(say):
    one, two = lambda x: x + 1, lambda x: x + 2
    part = functools.partial(f, 1, c=5)
    return (f(1, c=3), f(*[1, 2], *(3,), c=4, **{"e": 5}, **{"g": 6}), decorated(3), one(1), two(1), part(7, z=1),
            cached(10), (lambda *a, **k: (a, k))(1, x=2), list(map(lambda x: x * 2, [1, 2])), sorted("ba", key=ord),
            max([1, 5, 3], key=lambda x: -x), functools.reduce(lambda a, b: a * b, [1, 2, 3]), min([], default=4),
            int("12", base=8), float("1.5"), str(b"a", "ascii"), bool([]), type(1), type("T", (), {"x": 1})().x,
            divmod(7, 2), pow(2, 3, 5), round(2.675, 2), round(2.5), abs(-3), complex("1+2j"), isinstance(True, int))""",
    "frames": """
import sys
X = 5
def case(say):
    y = 6
    def inner(): return sorted(locals()), y
    class Body: z = 1; seen = sorted(k for k in vars() if not k.startswith("__")); names = dir()[-2:]
    return (sorted(k for k in locals() if k != "say"), eval("X + y"), globals()["X"], inner(), Body.seen, Body.names,
            sys._getframe().f_code.co_name, sys._getframe().f_lineno, eval("[y for _ in 'a']", {"y": 2}),
            exec("q = 1"), sorted(vars()) == dir() == sorted(locals()), inner.__name__, inner.__qualname__, inner.__doc__, case.__doc__, inner.__module__ == __name__)""",
    "slices": """
def case(say):
    l = list(range(10))
    l[2:4] = "ab"; l[::4] = [0, 0, 0]; del l[1], l[-2:]
    l[1:2] += [7]; l[0] += 1; l[say(1)] *= say(2)
    d = {"a": {"b": 1}}
    d["a"]["b"] += 1; d["n"] = d["c"] = 2; d["a"]["x"], d["y"] = 3, 4
    t = (1, 2, 3)
    return l, d, l[1:], l[:say(2)], l[-1], {(1, 2): 3}[*t[:2]], t[slice(1)], "abc"[::-1]""",
    "augmented": """
class Box: v = 1; w = [1]
G = 1
TABLE = {"n": 0, "l": [0]}
def case(say):
    global G
    box = Box(); local = 1; items = [1]
    def inner():
        nonlocal local, items
        local += 1; local **= 3; items += [2]
    inner()
    G += 1; G *= 4; G //= 3; G |= 8
    Box.v += 1; box.v += 1; box.v = box.v + 1; box.w += [2]; box.w[0] += 1
    say(box).v = say(box).v + 1
    TABLE["n"] += 1; TABLE["l"][0] += 1; TABLE["l"] += [3]; TABLE["n"] -= 1.5
    i = 0
    l = [10, 20]
    i, l[i] = 1, 5
    return local, items, G, Box.v, box.v, Box.w, box.w, TABLE, l""",
    "imports": """
def case(say):
    import os.path, math as m
    from collections import OrderedDict as O, namedtuple
    from os import path
    try: from os import nothing_of_that_name
    except ImportError as error: say(str(error).split("(")[0])
    try: import nothing.of.that.name
    except ModuleNotFoundError as error: say(str(error))
    return os.path is path, m.floor(2.5), O(a=1), namedtuple("N", "a b")(1, 2)""",
    "odd classes": """
class Lies:
    @property
    def __class__(self): return int
    def __call__(self, v): return v
class Flat:
    __slots__ = ()
    def __len__(self): return 0
def case(say):
    return Lies()(4), isinstance(Lies(), int), type(Lies()).__name__, bool(Flat())""",
    "identity": """
def case(say):
    a = [1]; b = a; c = [1]
    return a is b, a is not c, a is b is not c, a is None, type(a) is list, type(type(a)) is type, a in [b], type is type""",
    "decorated classes": """
import dataclasses, enum, typing, contextlib
@dataclasses.dataclass(order=True)
class D:
    x: int
    y: list = dataclasses.field(default_factory=list)
    def __post_init__(self): self.x += 1
class Color(enum.Enum):
    RED = 1
    GREEN = enum.auto()
    def next(self): return Color.GREEN if self is Color.RED else Color.RED
class N(typing.NamedTuple):
    a: int
    b: float = 2.0
    def total(self): return self.a + self.b
@contextlib.contextmanager
def managed(say):
    try: yield say("in")
    except ValueError: say("caught")
    finally: say("out")
def case(say):
    with managed(say) as v: raise ValueError(v)
    @dataclasses.dataclass
    class L(D): z: int = 3
    return D(1), D(1) < D(2), Color.RED.next(), Color(2).name, N(1).total(), N(1)._replace(a=3), L(1, [2]), list(Color)""",
    "asynchronous": """
import asyncio
class A:
    async def __aenter__(self): return 1
    async def __aexit__(self, *a): return True
async def ticks(n):
    for i in range(n): yield i
async def main(say):
    found = [i async for i in ticks(3) if say(i)]
    async with A() as a: raise ValueError
    async for i in ticks(2): say(i)
    return found, a, await asyncio.sleep(0, "slept"), [await asyncio.sleep(0, j) for j in range(2)]
def case(say): return asyncio.run(main(say))""",
    "private names": """
class _A:
    __x = 1
    def f(self, __y=2): return self.__x, __y, _A.__x, [self.__x for _ in "a"], (lambda: self.__x)()
    def g(self): self.__z = 1; self.__z += 1; del self.__x_; return self.__z
    def h(self):
        class __B: __x = 5; read = __x
        return __B.read, __B._B__x, vars(self)
def case(say):
    a = _A()
    try: a.g()
    except AttributeError as error: say(str(error))
    return a.f(), a.h(), a._A__z""",
    "errors": """
def deeper(x):
    return (x.
            missing)
def case(say):
    x = 1
    for attempt in (lambda: deeper(1), lambda: x(), lambda: x[0], lambda: {}["a"], lambda: [1][5], lambda: len(),
                    lambda: deeper(1, 2), lambda: deeper(y=1), lambda: 1 .x.y, lambda: float("q"), lambda: int("z"),
                    lambda: [x for x in 3], lambda: (lambda a: a)(), lambda: "a" + 1, lambda: [1, 2].index(5),
                    lambda: next(iter([])), lambda: max([]), lambda: sum(["a"]), lambda: sorted([1, "a"]), lambda: round("a")):
        try: attempt()
        except Exception as error: say((type(error).__name__, str(error)))
    a, b = (1,
            2, 3)""",
    "error in a comprehension": """
def case(say):
    return [say(
        1 / x)
        for x in (1, 0)]""",
    "error in a property": """
class C:
    @property
    def p(self):
        return (1 +
                self.q)
    @property
    def q(self): raise KeyError("q")
def case(say): return C().p""",
    "error in an operator": """
class C:
    def __add__(self, o): return self[o]
    def __getitem__(self, i):
        raise LookupError(i)
def case(say):
    x = C() + \\
        1""",
    "error with notes": """
def case(say):
    try:
        [].pop()
    except IndexError as error:
        error.add_note("n")
        raise""",
}
if sys.version_info >= (3, 12):
    CASES["type parameters"] = """
type Pair[T] = tuple[T, T]
class Stack[T]:
    def __init__(self): self.items: list[T] = []
    def push[S: (int, str)](self, x: S) -> S: self.items.append(x); return (x, S.__name__, T.__name__)
def first[T](xs: list[T], n=3) -> T: return xs[0], T.__name__, n
def case(say):
    def local[*Ts, **P](*a): return a, Ts.__name__, P.__name__
    class Box[U](Stack[U]): u = 1
    type Local = int
    return first([1]), Stack().push(2), local(3), Box().items, Pair.__value__, Local.__value__, f"{'a' + f"{1}"}", [
        super(Box, b).push("x") for b in [Box()]]"""
if sys.version_info >= (3, 14):
    CASES["templates and bare exceptions"] = """
def case(say):
    x = 2
    found = t"{say(x)!r:>{say(5)}} {x.real=}"
    try: {}["k"]
    except KeyError, ValueError: say("caught")
    return found.strings, [(i.value, i.expression, i.conversion, i.format_spec) for i in found.interpolations]"""
if sys.version_info >= (3, 15):
    CASES["unpacking in comprehensions, lazy imports"] = """
lazy import colorsys as colors
lazy from fractions import Fraction
ROWS = [[1, 2], [3]]
def case(say):
    tables = [{"a": 1}, {"b": 2}]
    lists, lazy = [*row for row in say(ROWS)], (*(x + n for x in row) for n in say([1, 2]) for row in ROWS)
    return (lists, {**table for table in tables if say(table)}, {*row for row in ROWS}, list(lazy),
            colors.rgb_to_hsv(1, 0, 0), Fraction(1, 2), frozendict(a=1)["a"])"""

NUMBERS = count()


def loaded(text, folder):
    """The namespace of a module with this text."""
    name = f"case{next(NUMBERS)}"
    path = folder / f"{name}.py"
    path.write_text(PRELUDE + text)
    return imported(name, path)


def imported(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with warnings.catch_warnings(action="ignore", category=SyntaxWarning):  # of `return` in a `finally` block
        spec.loader.exec_module(module)
    return module


def outcome_of(call):
    """What a call of `case` returns or raises, where, and what is said on the way; without addresses."""
    said = []

    def say(value):
        said.append(repr(value))
        return value

    try:
        result = repr(call(say))
    except Exception as error:  # noqa: BLE001 - whatever it is
        frames = [f for f in traceback.extract_tb(error.__traceback__) if "case" in f.filename.rpartition("/")[2]]
        notes = getattr(error, "__notes__", None)
        result = (
            type(error),
            str(error),
            notes,
            [(f.name, f.lineno, f.end_lineno, f.colno, f.end_colno) for f in frames],
        )
    return result, said


def tracing(call):
    """Call in a trace, and return the result of that."""
    found = []

    def run(leaves):
        found.append(call())
        return leaves

    trace_function(run, [Aval(F64)], name="run")
    return found[0]


def recording(call):
    """Call in a trace that records what is read, and return the result of that."""
    found = []

    def run(x):
        found.append(call())
        return x

    fnad.jit(run)(1.0)
    return found[0]


def without_numbers(outcome):
    """The text of an outcome without addresses and the numbers of modules."""
    return re.sub(r"0x[0-9a-f]+|case\d+", "", repr(outcome))


@pytest.mark.parametrize("name", CASES)
def test_a_converted_function_computes_what_it_says(name, tmp_path):
    plain, outside, inside, recorded = (loaded(CASES[name], tmp_path).case for _ in range(4))
    expected = without_numbers(outcome_of(plain))
    assert ("class '" in expected[:10]) == name.startswith(("error", "unbound"))
    assert converted(outside) is not outside
    assert without_numbers(outcome_of(converted(outside))) == expected
    assert without_numbers(tracing(lambda: outcome_of(converted(inside)))) == expected
    assert without_numbers(recording(lambda: outcome_of(recorded))) == expected


# ---- the proof of source ---------------------------------------------------------------------------------------------


def defined(text, file, name="f", namespace=None):
    """What a text defines under a name, compiled as the text of a file."""
    namespace = {"__name__": "some"} if namespace is None else namespace
    exec(compile(text, file, "exec"), namespace)
    return namespace[name]


TEXT = "A = 2\ndef f(x):\n    return x * A\n"
OTHER = {
    "a number": TEXT.replace("* A", "* 3"),
    "a constant of the same name": TEXT.replace("x * A", "A * x"),
    "a column": TEXT.replace("x * A", "x  * A"),
    "a line": "\n" + TEXT,
    "a line within": TEXT.replace("return", "\\\n        return"),
    "the name": TEXT.replace("def f", "def g"),
    "the class around": "class f:\n    A = 2\n    def f(x):\n        return x * A\n",
    "a default": TEXT.replace("(x)", "(x, y=1)"),
    "no Python": TEXT.replace("def", "%def"),
    "nothing": "",
}


@pytest.mark.parametrize("what", OTHER)
def test_a_function_of_a_file_that_was_edited_is_not_converted(what, tmp_path):
    path = tmp_path / "edited.py"
    path.write_text(OTHER[what])
    f = defined(TEXT, str(path))
    assert converted(f) is f
    assert fnad.grad(f)(3.0) == 2
    linecache.checkcache()
    path.write_text(TEXT)
    linecache.checkcache()
    assert converted(g := defined(TEXT, str(path))) is not g


def test_code_without_source_is_not_converted():
    for file in ("<string>", "/nowhere/at/all.py", __file__):
        f = defined(TEXT, file)
        assert converted(f) is f
        assert fnad.grad(f)(3.0) == 2


ALIKE = """
f, g = lambda x: x * 1, lambda x: x * 2; h = lambda x: x * 1; k = lambda x: x * 1
class A: f = lambda s: 1; f = lambda s: 2
def f1(x): return 1
def f1(x): return 2
table = [lambda x, i=i: (lambda: x * i)() for i in range(3)]; made = (lambda n: (lambda x: x * n))(7)
"""


def test_functions_that_look_alike_are_told_apart(tmp_path):
    path = tmp_path / "alike.py"
    path.write_text(ALIKE)
    module = imported("alike", path)
    functions = {name: vars(module)[name] for name in ("f", "g", "h", "k", "f1", "made")}
    functions |= {"method": module.A.f, **{f"table {i}": f for i, f in enumerate(module.table)}}
    twins = {name: converted(f) for name, f in functions.items()}
    assert all(twins[name] is not functions[name] for name in functions)
    assert {name: twin(3) for name, twin in twins.items()} == {name: f(3) for name, f in functions.items()}
    assert len({id(twin.__code__) for twin in twins.values()}) == len(twins) - 2  # those of the table have one code


def test_a_decorated_function_is_what_the_decorator_made(tmp_path):
    path = tmp_path / "decorated.py"
    path.write_text("""
import functools
def twice(f):
    @functools.wraps(f)
    def call(x): return 2 * f(x)
    return call
def replace(f): return lambda x: float(x) * 5
def erase(f): return len
@twice
@twice
def f(x): return float(x)
@replace
def g(x): return float(x)
@erase
def h(x): return float(x)
""")
    module = imported("decorated", path)
    assert (fnad.grad(module.f)(3.0), fnad.grad(module.g)(3.0)) == (4, 5)
    assert module.h is len


def test_a_function_of_a_long_module_is_converted_alone(tmp_path):
    def work(count):
        path = tmp_path / f"functions{count}.py"
        path.write_text("".join(f"def f{i}(x):\n    y = float(x) * {i}\n    return y\n\n\n" for i in range(count)))
        f = getattr(imported(path.stem, path), f"f{count - 1}")
        return steps(lambda: converted(f))

    assert work(2_000) < 1.5 * work(20)


def test_lambdas_of_one_statement_are_converted_together(tmp_path):
    def work(count):
        path = tmp_path / f"lambdas{count}.py"
        path.write_text("table = [\n" + "".join(f"    lambda x: float(x) * {i},\n" for i in range(count)) + "]\n")
        table = imported(path.stem, path).table
        found = steps(lambda: [converted(f) for f in table])
        assert [fnad.grad(f)(3.0) for f in table] == list(range(count))
        return found

    assert work(40) < 60 * work(2), "it is 20 times as much, and 400 times if each lambda has the statement compiled"


class Globals(dict):
    """A namespace that makes what is not there."""

    def __missing__(self, name):
        if name != "factor":
            raise KeyError(name)
        return 5.0


def test_globals_may_be_a_mapping(tmp_path):
    path = tmp_path / "custom.py"
    path.write_text(text := "def f(x):\n    return float(x) * factor\n")
    f = defined(text, str(path), namespace=Globals())
    assert converted(f) is not f
    assert converted(f)(2.0) == 10
    assert fnad.grad(f)(2.0) == fnad.jit(fnad.grad(f))(2.0) == 5


def test_cells_of_a_notebook_are_converted():
    cells = {
        "<ipython-input-1-a>": "def f(x):\n    return float(x) * 2\n",
        "<ipython-input-2-a>": "%matplotlib inline\ndef f(x):\n    return float(x) * 3\n",
        "<ipython-input-3-a>": "files = !ls\nf = lambda x: float(x) * 4\n",
    }
    for number, (file, text) in enumerate(cells.items()):
        linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
        f = defined(re.sub("[%!].*", "0", text), file)
        assert converted(f) is not f
        assert fnad.grad(f)(3.0) == number + 2
        del linecache.cache[file]


def test_what_the_user_sees_of_a_function_is_its_own(tmp_path):
    path = tmp_path / "seen.py"
    path.write_text("""
import functools
def f(x, *, k=1):
    "Text."
    seen.append((f.__code__, f, f.__defaults__, f.__doc__, inner := (lambda: x)))
    return x * k
seen = []
""")
    module = imported("seen", path)
    before = module.f.__code__
    assert fnad.grad(module.f)(2.0) == 1
    assert module.f.__code__ is before
    assert hash(converted(module.f).__code__) != hash(before)
    assert module.seen[0][:4] == (before, module.f, None, "Text.")
    assert pickle.loads(pickle.dumps(module.f)) is module.f
    assert inspect.getsource(module.f).startswith("def f")
    assert inspect.getsource(module.seen[0][4]).strip().startswith("seen.append")


@pytest.mark.parametrize("kind", [list, tuple, dict])
def test_containers_may_be_deep(kind):
    def of(value):
        return {"a": value} if kind is dict else kind([value])

    table = innermost = of(None) if kind is tuple else of([])
    for _ in range(5000):
        table = of(table)
    f = fnad.jit(lambda x: x * 2.0 if table else x)
    assert f(3.0) == f(3.0) == 6
    assert innermost


class Filling:
    """An object that is called, and fills a copy of an array of its own."""

    def __init__(self):
        self.rows = np.array([1.0, 2.0, 3.0])

    def fill(self, t):
        rows = self.rows.copy()
        rows[0] = t[0] ** 2
        return rows * t[1]

    def __call__(self, t):
        return self.fill(t)


@pytest.mark.parametrize("transform", [fnad.jacobian, fnad.jacfwd, fnad.jacrev, lambda f: fnad.jit(fnad.jacobian(f))])
def test_an_object_that_is_called_is_converted(transform):
    assert transform(Filling())(np.array([0.5, 2.0])).tolist() == [[2, 0.25], [0, 2], [0, 3]]


@pytest.mark.parametrize("before", ["if False:\n    pass\nelse:", "try:"])
def test_a_lambda_in_a_part_of_a_statement_of_a_page(before, tmp_path):
    end = "except ValueError:\n    pass\n" if before == "try:" else ""
    block = f"{before}\n    f = lambda x: np.array([x, 3 * x]).sum()\n{end}"
    page = tmp_path / "page.md"
    page.write_text(f"A text, which is no Python.\n\n{block}\nMore of it.\n")
    names = {"np": np}
    exec(compile(f"\n\n{block}", str(page), "exec"), names)
    assert fnad.grad(names["f"])(1.0) == 4.0


def test_a_thread_that_outlives_the_trace_runs_as_plain_code(tmp_path):
    path = tmp_path / "outliving.py"
    path.write_text("""
import math, threading
class Point:
    def __init__(self, x): self.x = float(x)
    def __add__(self, other): return Point(self.x + other.x)
gate, found, threads = threading.Event(), [], []
def compute(): return [type((Point(1) + Point(math.exp(y))).x) is float and math.exp(y) for y in (0.0, 1.0)]
def later(n):
    found.append(compute())
    assert gate.wait(60)
    found.append(compute())
def f(x):
    threads.append(threading.Thread(target=later, args=(1,)))
    threads[-1].start()
    return x * Point(2).x
""")
    module = imported("outliving", path)
    for transform in (fnad.grad, lambda f: fnad.jit(fnad.grad(f))):
        assert transform(module.f)(3.0) == 2
    module.gate.set()
    for thread in module.threads:
        thread.join()
    assert len(module.found) == 2 * len(module.threads)
    assert all(each == module.compute() for each in module.found)
