"""Random Python functions as source text: a module with `f(x, y)`, which returns a number between -1 and 1.

Each statement binds one more number, `%v`. Its text has a hole, `$`, for each random expression of the numbers so far.
"""

from __future__ import annotations

from random import Random

PRELUDE = """
import contextlib
import functools
import math
from math import cos as cosine

import numpy as np

SCALE = {"a": 0.5, "b": [0.25, -0.75]}


@contextlib.contextmanager
def scaled(x):
    try:
        yield x * SCALE["a"]
    except ZeroDivisionError:
        pass


def doubled(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        return 2.0 * function(*args, **kwargs)

    return call


def times(n):
    return lambda function: lambda *args: n * function(*args)


"""

EXPRESSIONS = (
    "($ + $)",
    "($ - $)",
    "($ * $)",
    "($ / (2.0 + abs($)))",
    "-$",
    "math.tanh($)",
    "np.sin($)",
    "cosine($)",
    "float($)",
    "max($, $)",
    "min([$, $, 0.5])",
    "sum(map(lambda t: t * $, [$, 1.0]))",
    "functools.reduce(lambda p, q: p * q + $, [$, $])",
    "($ if $ < $ else $)",
    "($ if type($) is float else $)",
    "(SCALE['b'][0] * $)",
    "np.sum(np.array([$, $]))",
    "(lambda a, b=0.5: a * b)($, $) + (lambda a, b=0.5: a - b)($)",
    "sum(i * $ for i in range(3))",
    "sum([t * $ for t in ($, $) if t < 2.0])",
    "[$, $][bool($ > 0.0)]",
    "{'p': $, **{'q': $}}['q']",
    "(lambda *a, k=1.0, **o: sum(a) * k + o.get('z', 0.0))(*[$, $], **{'z': $})",
    "abs(complex($, $)) / 2.0",
    "len(f'{y:>{5}}') * $",
)

STATEMENTS = """
%v = $
---
%v = (w%n := $) * 0.5 + w%n
---
first%n, *rest%n = $, $, $
%v = first%n + sum(rest%n)
---
def g%n(a, b=$, *rest, k=0.5, **more):
    BODY
    return a * b + sum(rest) * k + sum(more.values())
%v = g%n($) + g%n($, *[$, $], k=$, z=$)
---
def make%n(total):
    def add(a):
        nonlocal total
        BODY
        total = total * 0.5 + a
        return total
    return add, lambda: total * $
add%n, now%n = make%n($)
%v = add%n($) + add%n($) * now%n()
---
def numbers%n(a):
    got = yield a * $
    BODY
    try:
        yield got + a
    finally:
        yield from (a, $)
steps%n = numbers%n($)
next(steps%n)
%v = steps%n.send($) + sum(steps%n)
---
%v = 0.0
for i%n in range(4):
    if %v > $:
        continue
    if i%n == 3 and $ < 0.0:
        break
    %v = %v * 0.5 + $
else:
    %v -= $
---
%v, left%n = $, 3
while left%n:
    left%n -= 1
    %v = math.sin(%v + $)
---
match ($, {'k': $, 'n': %n}):
    case (a, {'k': b, **others}) if a < b:
        %v = a * b + len(others)
    case (a, {'n': int(m)}):
        %v = a / m
---
match [$, $, $]:
    case [a, *_, float() as b]:
        %v = a - b
    case [*all%n]:
        %v = sum(all%n)
---
try:
    %v = SCALE['a' if $ > 0.0 else 'missing']
except (ZeroDivisionError, KeyError) as error:
    %v = len(str(error)) * 0.01 + $
else:
    %v = 5.0
finally:
    %v = %v * $
---
def early%n(a):
    try:
        if a > $:
            return a * $
        raise KeyError('k')
    except KeyError as error:
        return error.args[0] == 'k'
    finally:
        seen%n.append(a)
seen%n = []
%v = early%n($) + len(seen%n) * seen%n[0]
---
with scaled($) as %v, contextlib.suppress(ValueError):
    %v = %v * $
    raise ValueError
---
@doubled
@times($)
def h%n(a):
    BODY
    return a * a
%v = h%n($)
---
@functools.lru_cache
def cached%n(a):
    return a if a < 2 else cached%n(a - 1) + cached%n(a - 2)
%v = cached%n(8) * $
---
rows%n = [[t * u for t in ($, $)] for u in (1.0, $)]
%v = sum(t for row in rows%n for t in row) + {i: row[i] for i, row in enumerate(rows%n)}[1]
---
box%n = np.zeros(3)
box%n[1:] = $
box%n[0] += $
%v = np.sum(box%n * box%n[::-1])
---
%v = $
%v += $
%v *= $
assert %v == %v, 'nan'
del %v
%v = $
---
parts%n = functools.partial(lambda a, b, c: a * b - c, $, c=$)
%v = parts%n($) + sorted([$, $], key=lambda t: -t)[0]
---
class Base%n:
    unit = 0.5
    made = []

    def __init__(self, a):
        self.__a = a
        self.b = a * $
        self.made.append(1)

    def value(self):
        return self.__a * self.unit + self.__private()

    def __private(self):
        a = self.b
        BODY
        return a * $

    @property
    def double(self):
        return 2.0 * self.b

    @double.setter
    def double(self, a):
        self.b = a * 0.5

    @functools.cached_property
    def once(self):
        return self.b * $

    @classmethod
    def of(cls, a):
        return cls(a * cls.unit)

    @staticmethod
    def halved(a):
        return a * 0.5

    def __add__(self, other):
        return type(self)(self.b + getattr(other, "b", other))

    __radd__ = __add__

    def __iadd__(self, other):
        self.b += other
        return self

    def __neg__(self):
        return Base%n(-self.b)

    def __lt__(self, other):
        return self.b < other.b

    def __getitem__(self, i):
        return self.b * i if isinstance(i, int) else self.b + len(range(3)[i])

    def __contains__(self, a):
        return a < self.b

    def __iter__(self):
        yield from (self.b, self.__a)

    def __call__(self, *args, **kwargs):
        return sum(args, self.b) + sum(kwargs.values())

    def __getattr__(self, name):
        if name != "missing":
            raise AttributeError(name)
        return self.b


class Derived%n(Base%n):
    unit = 0.25

    def __init__(self, a):
        super().__init__(a + $)
        self.c = a

    def value(self):
        return super().value() * $ + [super(Derived%n, self).value() for _ in "a"][0] + self.c

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.b = -self.b


one%n, two%n = Base%n($), Derived%n.of($)
two%n.double = $
one%n += $
with two%n as inside%n:
    %v = inside%n.value()
%v += (one%n + two%n).value() + (1.0 + -one%n).double + two%n($, k=$) + one%n[2] + two%n[1:] + sum(one%n)
%v += (one%n < two%n) * ($ in one%n) + two%n.once + one%n.missing + Base%n.halved($) + len(Base%n.made)
""".strip().split("\n---\n")


class Writer:
    """Writes the statements of one function."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.count = 0

    def expression(self, names: list[str], depth: int) -> str:
        """A random expression of numbers."""
        if depth == 0 or self.random.random() < 0.2:
            return self.random.choice([*names, *names, "0.3", "-1.25", "SCALE['a']"])
        text = self.random.choice(EXPRESSIONS)
        return self.filled(text, names, depth - 1)

    def filled(self, text: str, names: list[str], depth: int) -> str:
        """A text with an expression in each hole."""
        parts = text.split("$")
        holes = [f"({self.expression(names, depth)})" for _ in parts[1:]]
        return "".join(part + hole for part, hole in zip(parts, [*holes, ""], strict=True))

    def statement(self, names: list[str], depth: int) -> list[str]:
        """The lines of a random statement, which binds one more number."""
        self.count += 1
        name = f"v{self.count}"
        text = self.random.choice(STATEMENTS).replace("%v", name).replace("%n", str(self.count))
        lines: list[str] = []
        for line in text.splitlines():
            if line.strip() != "BODY":
                lines.append(self.filled(line, names, 2))
                continue
            inner = [*names, "a"]
            body = self.block(inner, depth - 1, 1) if depth else []
            indent = line[: len(line) - len(line.lstrip())]
            lines += [indent + inside for inside in [*body, f"a = math.tanh({inner[-1]} + a)"]]
        names.append(name)
        return [*lines, f"{name} = math.tanh({name})"]

    def block(self, names: list[str], depth: int, count: int) -> list[str]:
        """The lines of so many statements."""
        return [line for _ in range(count) for line in self.statement(names, depth)]


def random_module(random: Random) -> str:
    """The text of a module with a random function."""
    names = ["x", "y"]
    lines = Writer(random).block(names, 2, random.randint(2, 5))
    total = " + ".join(names[2:])
    return PRELUDE + "\n".join(["def f(x, y):", *(f"    {line}".rstrip() for line in [*lines, f"return {total}"]), ""])
