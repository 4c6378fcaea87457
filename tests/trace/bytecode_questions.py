"""What each instruction is taken for, asked of the Python that runs this; it needs nothing but the standard library."""

import importlib.util
import math
import operator
import pathlib
import sys
import types
from functools import partial
from typing import Any

FOLDER = pathlib.Path(__file__).parents[2] / "fnad"


def loaded(name, file):
    spec = importlib.util.spec_from_file_location(name, file)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    sys.modules["fnad"] = types.ModuleType("fnad")
    loaded("fnad.codes", FOLDER / "codes.py")
    loaded("fnad.records", FOLDER / "records.py")
code = loaded("bytecode", FOLDER / "trace" / "bytecode.py")
asked = []


class Module(types.ModuleType):
    """A module that notes of each look-up of `sine` and `part` what is known of it."""

    def __getattribute__(self, name):
        if name in ("sine", "part"):
            frame = sys._getframe(1)
            load = code.lookup_at(frame.f_code, frame.f_lasti)
            is_load = load is not None and load.is_of(frame, self, name)
            assert not is_load or load.is_called == code.is_called(frame)
            asked.append((name, is_load, code.is_called(frame)))
        return super().__getattribute__(name)


class Holder:
    def __init__(self):
        self.m = m

    sine = property(operator.attrgetter("m.sine"))

    def __getattr__(self, name):
        return m


class Container:
    """An object that notes which questions hold where it is asked for an element."""

    def __getitem__(self, i):
        frame = sys._getframe(1)
        asked.append((code.reads_element(frame), code.stores_element(frame), code.indexed(frame)))
        return i

    def __setitem__(self, i, value):
        self[i]

    def __add__(self, other):
        asked.append(code.is_augmented_assignment(sys._getframe(1)))
        return self

    def __float__(self):
        asked.append(code.is_modulo(sys._getframe(1)))
        return 1.0


class Stored(Container):
    def __setitem__(self, i, value):
        frame = sys._getframe(1)
        asked.append((code.reads_element(frame), code.stores_element(frame), code.indexed(frame)))


m = Module("m")
m.sine, m.part = math.sin, math
inner = Module("inner")
inner.sine, m.inner = math.sin, inner
sys.modules["bytecode_questions_m"] = m
holder, container, stored = Holder(), Container(), Stored()


def answers(f, *args):
    asked.clear()
    f(*args)
    return asked.copy()


def whose_lookup():
    called, bound, unproved = [("sine", True, True)], [("sine", True, False)], [("sine", False)]

    def local():
        here = m
        return here.sine(0.0)

    def imported():
        from bytecode_questions_m import part, sine  # noqa: PLC0415 # pyright: ignore[reportMissingImports]

        return sine, part

    def unpacked(a, b):
        x = b
        return a.sine(0.0) if x else b.sine

    def either(x):
        found = (m if x else inner).sine
        for y in (x, x):
            found(y)

    assert answers(lambda: m.sine(0.0)) == called
    assert answers(lambda: m.sine(*[0.0])) == called
    assert answers(lambda: m.sine(x=1) if asked else m.sine) == bound
    assert answers(lambda: m.inner.sine(0.0)) == called
    assert answers(lambda: (m.sine, m.part.pi)) == [*bound, ("part", True, False)]
    assert answers(local) == called
    assert answers(unpacked, m, 1) == called
    assert answers(lambda: getattr(m, "si" + "ne")(0.0)) == bound
    assert answers(lambda: getattr(m.inner, "sine", [m, None])) == bound
    assert answers(by_name, m, getattr, ["sine"]) == bound
    assert answers(imported) == [("part", True, False), ("sine", True, False)]
    assert answers(with_many_names()) == called
    assert answers(lambda: [m.sine(x) for x in (0.0, 1.0)]) == called * 2
    assert answers(lambda: [*(m.sine(x) for x in (0.0, 1.0))]) == called * 2
    assert answers(lambda: holder.m.sine(0.0)) in (called, [("sine", False, True)])  # it has a __getattr__
    for compiled in (
        lambda: operator.attrgetter("sine")(m),
        lambda: operator.methodcaller("sine", 0.0)(m),
        lambda: [getattr][0](m, "sine"),
        lambda: getattr([m][0], "sine"),  # noqa: B009
        lambda: attrgetter_called_getattr(m, "sine"),
        lambda: holder.sine,
        lambda: [m][0].sine(0.0),
        lambda: either(1.0),
    ):
        assert [answer[:2] for answer in answers(compiled)] == unproved, compiled


def attrgetter_called_getattr(owner, name):
    getattr = lambda owner, _: operator.attrgetter(name)(owner)  # noqa: A001, E731
    return getattr(owner, name)


def by_name(owner, get, names):
    return get(owner, names[0])


def with_many_names():
    """Return a function whose names take more than a byte to number."""
    names = "\n".join(f"    g{i}" for i in range(300))
    space = {"m": m}
    exec(f"def f(skip=True):\n  if not skip:\n{names}\n  return m.sine(0.0)\n", space)
    return space["f"]


def which_container():
    here = Container()

    def two(container, i):
        return container[i]

    assert answers(lambda: container[1]) == [(True, False, container)]
    assert answers(lambda: container[1:2]) == [(True, False, container)]
    assert answers(lambda: here[len([1]) + 1]) == [(True, False, here)]
    assert answers(two, here, 1) == [(True, False, here)]
    assert answers(lambda: [container][0][1]) == [(True, False, None)]
    assert answers(lambda: holder.c[1] if False else container[1 if asked is None else 2]) == [(True, False, None)]
    assert answers(lambda: operator.getitem(container, 1)) == [(False, False, None)]

    def store(stored, value):
        stored[1] = value
        stored[1:2] = value

    assert answers(store, stored, 0) == [(False, True, stored)] * 2


def which_assignment():
    def augmented(x):
        x += 1

    def formatted(text):
        text %= container

    assert answers(augmented, container) == [True]
    assert answers(lambda: container + 1) == [False]
    assert answers(formatted, "%.1f") == answers(lambda: "%.1f" % container) == [True]  # noqa: UP031
    assert answers(lambda: float(container) % 2) == answers(lambda: 1 % math.sin(container)) == [False]


def what_is_bound():
    kept = 0

    def free():
        nonlocal kept
        kept += 1

    def within():
        def inside():
            global asked_often  # noqa: PLW0603
            asked_often = 1

        return inside

    def own():
        cell = 0

        def change():
            nonlocal cell
            cell += 1

        return change

    assert code.rebinds(free.__code__)
    assert code.rebinds(within.__code__)
    assert not code.rebinds(own.__code__)
    assert not code.rebinds(augmented_own.__code__)


def variables_that_one_function_sets():
    def alone(x):
        return lambda: x

    def later():
        x = 1.0
        return lambda: lambda: x

    def shared(x):
        def put(value):
            nonlocal x
            x = value

        return put, lambda: x

    def outer(x):
        return alone(lambda: x)

    def generator(x):
        yield lambda: x

    assert [code.sets_alone(f.__code__, "x") for f in (alone, later, outer)] == [True, True, True]
    assert [code.sets_alone(f.__code__, "x") for f in (shared, generator)] == [False, False]
    assert not code.sets_alone(alone(1.0).__code__, "x")  # where it is free
    assert not code.sets_alone(outer.__code__, "alone")


def augmented_own(x):
    x += 1
    return x


def which_names_are_read():
    notes, count, limit, table = [], 0, 1, [1]

    def many(x):
        nonlocal count
        notes.append(x)
        count += 1
        m.level = limit + m.part.pi
        return [y * table[0] for y in x]

    def handed_on(x):
        notes.append(x)

        def inside():
            return notes[0]

        return inside

    def kept(x):
        return lambda y: notes.append(y), lambda: x

    def imports():
        import os.path as p  # noqa: PLC0415

        from . import sibling  # noqa: PLC0415 # pyright: ignore[reportMissingImports]

        return p, sibling

    def matched(x):
        match x:
            case Holder(height=1):
                return eval("x")
            case _:
                return getattr(x, "width")  # noqa: B009

    read = code.reads_of(many.__code__)
    assert (read.extended, read.counted) == ({"notes"}, {"count"})
    assert read.counters == set()
    assert {"level", "part", "pi", "append"} <= read.attributes
    assert {"m"} == read.names
    assert (read.reflects, read.modules, read.evaluated) == (False, (), ())
    assert code.reads_of(handed_on.__code__).extended == frozenset()
    assert code.reads_of(kept.__code__).extended == {"notes"}
    assert code.reads_of(imports.__code__).modules == ((0, "os.path"), (1, ""))
    read = code.reads_of(matched.__code__)
    assert read.reflects
    assert {"height", "width"} <= read.strings
    assert read.evaluated == (matched.__code__.co_firstlineno + 3,)
    assert code.reads_of(with_many_imports().__code__).modules == ((0, "math"), (2, "far"))
    assert code.reads_of(with_a_handler.__code__).handles
    assert not code.reads_of(handed_on.__code__).handles


def what_is_counted():
    calls, table, both, shared = [0], {"n": 0}, [0], [0]

    def counts(self, key, x):
        self.n += 1
        self.inner.n = self.inner.n - 2
        pick(self, key).m += 1
        self.inner.inner.k += 1
        calls[0] += 1
        table["n"] -= 1
        self.table["n"] += 1
        return x

    def reads(self, key, x):
        self.a = self.a + x
        self.b = self.b + self.b
        self.c += self.c
        self.d = (self.d if x else 0) + 1
        self.e = (self.e + 1) * 2
        self.f = self.g + 1
        self.h = 1 + self.h
        self.i(1 + 1)
        self.j += 1
        self.k[key] += 1
        self.l["n"] += self.l["m"]
        both[0] += 1
        table[key] += 1
        calls[0] = calls[0] + 1
        shared[0] += 1
        return self.j, both[0], lambda: shared[0]

    def stores(self):
        self.n += 1
        self.n = 0

    def deletes(self):
        self.n += 1
        del self.n

    read = code.reads_of(counts.__code__)
    assert (read.counters, read.tallied) == ({"n", "m", "k", "table"}, {"calls", "table"})
    assert read.sought == {"inner", "counts"}
    assert {"calls", "table"} <= read.unused
    for other in (reads, stores, deletes):
        read = code.reads_of(other.__code__)
        assert (read.counters, read.tallied) == (set(), set())
    many = code.reads_of(with_many_names_that_count().__code__)
    assert (many.counters, many.tallied) == ({"far"}, {"away"})


def pick(self, key):
    return self if key else None


def with_many_names_that_count():
    """Return a function with names and constants that take more than a byte to number."""
    names = "\n".join(f"    g{i}, {i + 0.5}" for i in range(300))
    space = {}
    exec(f"def f(x, skip=True):\n  if not skip:\n{names}\n  x.far += 4096\n  away[8192] += 4096\n", space)
    return space["f"]


def with_a_handler(x):
    try:
        return x.width
    except AttributeError:
        return x.height


def with_many_imports():
    """Return a function that imports modules whose names take more than a byte to number."""
    names = "\n".join(f"    g{i}" for i in range(300))
    space = {}
    exec(
        f"def f(skip=True):\n  if not skip:\n{names}\n  import math\n  from ..far import g0, away\n  g1.append(2)\n",
        space,
    )
    return space["f"]


def made(*args):
    return "made", *args


def by_hook(callee, *args, **options):
    return ("made", *args) if callee is float else callee(*args, **options)


def what_constants_stand_for():
    """Each function, and what it returns at 1.5 where `made` stands for float where it is called."""
    one = made(1.5)
    functions = {
        (lambda x: float(x)): one,
        (lambda x: (float(x if x else 3), float(x or 3), float(x and x and (x or 1)))): (one, one, one),
        (lambda x: [float(v) for v in (x, x)]): [one, one],
        (lambda x: float(*[x])): one,
        (lambda x: float([i for i in (x,) if i][0])): one,
        (lambda x: float(max(x, 2, key=lambda v: -v))): one,
        (lambda x: float(x) if x > 0 else float(-x)): one,
        (lambda x: (lambda: float(x))()): one,
        (lambda x: (isinstance(x, float), float, float.fromhex("1"))): (True, float, 1.0),
        (lambda x: type(x)(x)): 1.5,
        (lambda x: {float: 1}.get(type(x), 2)): 1,
        (lambda x: {float: lambda: 5}.get(type(x), 3)()): 5,
        (lambda x: (float, int)[0](x)): 1.5,
        (lambda x: float.fromhex("1").hex()): "0x1.0000000000000p+0",
        (lambda x: sorted([x], key=float)): [1.5],
    }
    for f, expected in functions.items():
        other = types.FunctionType(code.with_constants(f.__code__, {"float": made}, {"float"}), globals())
        assert other(1.5) == expected, f
        hooked = types.FunctionType(code.with_calls_by(f.__code__, by_hook, Called), globals())
        assert hooked(1.5) in (f(1.5), one), f

    def local(x: Any, f: Any = float):
        y = f(x)
        return y, (lambda: f(x))(), [float], sum([x, y[1]])

    hooked = types.FunctionType(code.with_calls_by(local.__code__, by_hook, Called), globals(), argdefs=(float,))
    assert code.calls_values(local.__code__)
    assert not code.calls_values(made.__code__)
    assert hooked(1.5) == (one, one, [float], 3.0)

    def unpacked(x: Any, f: Any = float, **options: Any) -> Any:
        g, args = f, (x,)
        first = f(*args), g(*args, **options)
        return first, (lambda *more: f(*more))(x), [(0, g(*args)) for _ in args], [f, x][0](*args)

    other = code.with_calls_by(unpacked.__code__, by_hook, Called)
    assert code.calls_values(unpacked.__code__)
    assert types.FunctionType(other, globals(), argdefs=(float,))(1.5) == ((one, one), one, [(0, one)], 1.5)
    many = with_many_names()
    many = types.FunctionType(code.with_constants(many.__code__, {"m": types.SimpleNamespace(sine=made)}, set()), {})
    assert many(True) == made(0.0)


class Called:
    """What is called in the place of a variable: `made` for float."""

    def __init__(self, name):
        self.name = name

    def __call__(self, *args, **options):
        return by_hook(sys._getframe(1).f_locals[self.name], *args, **options)


class Found:
    def __init__(self, name):
        self.name = name

    def __matmul__(self, owner):
        return getattr(owner, self.name)


class Hooked(Found):
    def __matmul__(self, owner):
        return partial(by_hook, super().__matmul__(owner))


class Globals:
    def __matmul__(self, name):
        frame = sys._getframe(1)
        return frame.f_globals[name] if name in frame.f_globals else frame.f_builtins[name]


HELD: Any
TABLE: Any
HELD, TABLE = types.SimpleNamespace(f=float, inner=types.SimpleNamespace(f=float)), [{"f": float}]


def what_is_called_of_attributes():
    """Each function, and whether `made` stands for float in it; else it does what it did."""
    functions = {
        (lambda x: HELD.f(x)): True,
        (lambda x: HELD.inner.f(HELD.inner.f.__name__ and x)): True,
        (lambda x: [HELD.f(v if v else 3) for v in (x,)][0]): True,
        (lambda x: (lambda: HELD.f(x))()): True,
        (lambda x: HELD.f(x) if x > 0 else HELD.f(-x)): True,
        (lambda x: TABLE[0]["f"](x)): True,
        (lambda x: TABLE[x > 9]["f"](x if x else 3)): True,
        (lambda x: TABLE[0].get("f")(x)): True,
        (lambda x: [TABLE[0]["f"](TABLE[0].get("f").__name__ and x), 3][0]): True,
        (lambda x: (TABLE if x > 9 else [*TABLE])[0]["f"].fromhex("1")): False,
        (lambda x: HELD.f(*[x])): True,
        (lambda x: HELD.inner.f(*[HELD.f(*(x,))][:1] and [x])): True,
        (lambda x: [HELD.f(*v) if v else 3 for v in ((x,),)][0]): True,
        (lambda x: sorted(*[[HELD.inner.f.fromhex("1")]])): False,
        (lambda x: "{0:{1}}".format(x, ".1f").join(["-", str(x).replace("5", "6")])): False,
        (lambda x: {"a": x}.get("b", HELD.inner.f.fromhex("1"))): False,
        (lambda x: max(HELD.__dict__.items(), key=lambda pair: len(pair[0]))[0].upper()): False,
    }
    for f, stands in functions.items():
        hooked = types.FunctionType(
            code.with_methods_by(f.__code__, by_hook, Found, Hooked, Globals(), set()), globals()
        )
        assert hooked(1.5) == (made(1.5) if stands else f(1.5)), f
    own = lambda x: [math.floor(x), types.SimpleNamespace(y=x).y, operator.neg(x)]  # noqa: E731
    hooked = code.with_methods_by(own.__code__, None, Found, Hooked, Globals(), {"math", "types", "operator"})
    assert types.FunctionType(hooked, globals())(1.5) == own(1.5)
    many, space = with_many_names(), {"m": types.SimpleNamespace(sine=float)}
    assert types.FunctionType(code.with_methods_by(many.__code__, by_hook, Found, Hooked, Globals(), set()), space)(
        True
    ) == made(0.0)
    raising = types.FunctionType(
        code.with_methods_by((lambda x: HELD.f(x).nothing(1)).__code__, by_hook, Found, Hooked, Globals(), set()),
        globals(),
    )
    try:
        raising(1.5)
    except AttributeError as error:
        assert "nothing" in str(error)  # noqa: PT017  # without pytest
    else:
        raise AssertionError


def of_a_metaclass():
    class Meta(type):
        pass

    return Meta


def who_asks_for_classes():
    asking = [
        *(lambda x: type(x) is float, lambda x: type(x) in {float}, lambda x: {float: 1}[type(x)]),
        *(
            lambda x: issubclass(type(x), float),
            lambda x: [type(y) for y in x],
            lambda x: type(x if x else 1) in (int,),
        ),
        *(lambda x: map(type, x), lambda x: [type], lambda x: x(kind=type), lambda x, f=None: (f or type)(x)),
    ]
    others = [
        lambda x: type(x).__name__,
        lambda x: type(x)(2),
        lambda x: type("A", (), {}),
        lambda x: isinstance(x, type),
        lambda x: isinstance(x, (type, int)),
        lambda x: type.mro(x),
        lambda x: x is type,
        of_a_metaclass,
    ]
    assert [code.asks_for_classes(f.__code__) for f in asking + others] == [True] * 10 + [False] * 8
    assert [code.stores_type(f.__code__) for f in asking] == [False] * 7 + [True] * 3
    assert code.globals_of(asking[4].__code__) == {"type"}


def where_an_instruction_comes_from():
    def f(x):
        return x + (
            m.sine(x)
        )  # fmt: skip

    first = f.__code__.co_firstlineno
    steps = code.steps_of(f.__code__)
    loads = next(step for step in steps if step.value == "sine")
    assert loads.line == first + 2
    assert code.place_at(f.__code__, loads.offset) == (first + 2, 12)


def running():
    return code.function_of(sys._getframe(1))


def which_function_runs():
    def made(value):
        return lambda: (value, running())

    def goes_on():
        yield running()

    async def awaited():
        return running()

    class Method:
        method = staticmethod(lambda *_, **__: running())

    functions = [made(value) for value in range(3)]
    assert [function() for function in functions] == list(enumerate(functions))
    assert next(goes_on()) is goes_on
    assert Method().method(1, a=2) is Method.method
    assert map(Method.method, [0]).__next__() is Method.method
    try:
        awaited().send(None)
    except StopIteration as end:
        assert end.value is awaited  # noqa: PT017
    assert code.function_of(sys._getframe()) is which_function_runs


def what_writes():
    writing = ("x[0] = y", "x[1:2] = y", "z = x; z += y", "x.y *= y", "z = x; z @= y")
    reading = ("return x + y * x[0] - x[1:2] @ y", "z = -x; return {1: z, **y}, lambda: x % z >> y | x & y ^ z")
    for lines, answer in ((writing, True), (reading, False)):
        for line in lines:
            for text in (f"def f(x, y): {line}", f"def f(x, y):\n    def inner(): {line}"):
                assert code.stores_into(compile(text, "f", "exec")) == answer, text


def how_many_arguments():
    calls = {
        lambda f: f: -1,
        lambda f: f(): 0,
        lambda f: f(f(1, 2), 3, 4): 3,
        lambda f: f.g(1, 2): 2,
        lambda f: f.g(1, h=2): 2,
        lambda f: math.fsum(f, 1, 2): 3,
        lambda f: lambda: f(1): 1,
    }
    for f, count in calls.items():
        assert code.most_arguments(f.__code__) == count, (f, count)
    for f in (lambda f: f(*f), lambda f: f(1, **f)):
        assert code.most_arguments(f.__code__) > 100


def an_unknown_version():
    for name, number in (("cpython", (3, 10)), ("cpython", (3, 14)), ("pypy", (3, 11))):
        try:
            code.version_of(name, number)
        except ImportError as error:
            assert f"not that of {name} 3.{number[1]}" in str(error)  # noqa: PT017
        else:
            raise AssertionError((name, number))


if __name__ == "__main__":
    assert sys.version_info[:2] in code.VERSIONS
    whose_lookup()
    which_container()
    which_assignment()
    what_is_bound()
    variables_that_one_function_sets()
    which_names_are_read()
    what_is_counted()
    what_constants_stand_for()
    what_is_called_of_attributes()
    who_asks_for_classes()
    where_an_instruction_comes_from()
    which_function_runs()
    what_writes()
    how_many_arguments()
    an_unknown_version()
