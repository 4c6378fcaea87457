"""The class of a traced value, asked for by Python's `type` under another name, against the answer outside a trace.

Each question is a module of its own, so that nothing but what stands there tells that `type` has another name.
"""

import importlib.util
import sys

import numpy as np
import pytest

import fnad
from fnad.errors import TracerEscapeError

ELEMENTS = {
    "of a table": """
TABLE = {"kind": type}
def ask(x): return TABLE["kind"](x) is KIND""",
    "of a table by get": """
TABLE = {"kind": type}
def ask(x): return TABLE.get("kind")(x) is KIND""",
    "deep in a table": """
TABLE = {"kinds": [(type,)]}
def ask(x): return TABLE["kinds"][0][0](x) is KIND""",
    "each of a list": """
LIST = [type]
def ask(x): return [f(x) is KIND for f in LIST]""",
    "each of a list of a default": """
def ask(x, kind=type): return [f(x) is KIND for f in [kind]]""",
    "of the builtins": """
import builtins
def ask(x): return vars(builtins)["type"](x) is KIND""",
    "of the builtins of the module": """
def ask(x): return __builtins__["type"](x) is KIND""",
    "handed to C": """
import functools, itertools, operator
def ask(x, kind=type):
    called = operator.call(kind, x), *itertools.starmap(kind, [(x,)]), functools.reduce(lambda a, f: f(a), [kind], x)
    return [found is KIND for found in (*called, *[found for found, _ in itertools.groupby([x], kind)])]""",
    "evaluated": """
def ask(x): return eval("type")(x) is KIND""",
}
QUESTIONS = {
    "default with arguments that are unpacked": """
def ask(x, kind=type): return kind(*[x]) is KIND""",
    "default": """
def ask(x, kind=type): return kind(x) is KIND""",
    "default by keyword": """
def ask(x, *, kind=type): return kind(x) in {KIND}""",
    "default of a lambda": """
ask = lambda x, kind=type: {KIND: 1}.get(kind(x))""",
    "default of a lambda within": """
def ask(x): return (lambda y, kind=type: kind(y) is KIND)(x)""",
    "default that is handed on": """
def other(x, kind=type): return kind(x) is KIND
def ask(x, kind=type): return other(x, kind)""",
    "default that is handed on to a function of another name": """
def call(f, x): return f(x)
def ask(x, kind=type): return call(kind, x) is KIND""",
    "global": """
kind = type
def ask(x): return kind(x) is KIND""",
    "partial": """
from functools import partial
kind = partial(type)
def ask(x): return kind(x) is KIND, next(map(kind, [x])) is KIND, partial(type, x)() is KIND""",
    "import": """
def ask(x):
    from builtins import type as kind
    return kind(x) is KIND""",
    "closure": """
def made():
    kind = type
    return lambda x: kind(x) is KIND
ask = made()""",
    "static method": """
class Asking:
    kind = staticmethod(type)
    def ask(self, x): return self.kind(x) is KIND
def ask(x): return Asking().ask(x), Asking.kind(x) is KIND""",
    "attribute of a class": """
class Asking:
    kind = type
    def __call__(self, x): return self.kind(x) is KIND
ask = Asking()""",
    "attribute of an object": """
class Asking:
    def __init__(self, kind=type): self.kind = kind
    def ask(self, x): return self.kind(x) is KIND
ASKING = Asking()
def ask(x): return ASKING.ask(x), ASKING.kind(x) is KIND, Asking().ask(x), Asking(type).ask(x)""",
    "slot": """
class Asking:
    __slots__ = ("kind",)
    def __init__(self): self.kind = type
    def ask(self, x): return self.kind(x) is KIND
ASKING = Asking()
def ask(x): return ASKING.ask(x)""",
    "field": """
from dataclasses import dataclass
@dataclass
class Asking:
    kind: object = type
    def ask(self, x): return self.kind(x) is KIND
ASKING = Asking()
def ask(x): return ASKING.ask(x)""",
    "named tuple": """
from collections import namedtuple
KINDS = namedtuple("Kinds", "kind")(type)
def ask(x): return KINDS.kind(x) is KIND""",
    "property": """
class Asking:
    @property
    def kind(self): return type
    def ask(self, x): return self.kind(x) is KIND
ASKING = Asking()
def ask(x): return ASKING.ask(x)""",
    "argument": """
def call(f, *args): return f(*args)
def ask(x): return call(type, x) is KIND, type(*[x]) is KIND""",
    "decorator": """
from functools import wraps
def given(f): return wraps(f)(lambda x: f(x, type))
@given
def ask(x, kind): return kind(x) is KIND""",
    "local table": """
def ask(x): return {"kind": type}["kind"](x) is KIND, (None or type)(x) is KIND, (kind := type)(x) is KIND""",
    "result": """
def get(): return type
def get_next(): yield type
def ask(x): return get()(x) is KIND, next(get_next())(x) is KIND""",
    "handed to C by its name": """
import functools, itertools, operator
def ask(x):
    called = operator.call(type, x), *itertools.starmap(type, [(x,)]), functools.reduce(lambda a, f: f(a), [type], x)
    return [found is KIND for found in (*called, *[found for found, _ in itertools.groupby([x], type)])]""",
    "composed": """
from functools import reduce
ask = reduce(lambda f, g: lambda x: f(g(x)), [lambda kind: kind is KIND, type])""",
    "base": """
def ask(x, kind=type): return issubclass(kind(x), KIND), isinstance(KIND(1), kind(x))""",
    "type itself": """
def same(kind=type): return kind is type, kind is not type, kind == type, {kind: 1}.get(type), type is type
def ask(x):
    kind = type
    class Meta(type): pass
    found = isinstance(x, kind), isinstance(KIND, kind), issubclass(Meta, kind), kind is type, type(KIND) is type
    return *found, type(Meta("A", (), {})) is Meta, same(), same(type), same(kind), repr(kind), kind.__name__""",
    "asked for its module": """
def ask(x, kind=type): return kind(x).__name__, kind(x).__module__, str(kind(x)), kind(x).mro()[0] is KIND""",
    "dispatch": """
from functools import singledispatch
@singledispatch
def ask(x): return "other"
ask.register(KIND, lambda x: "found")""",
    "match": """
def ask(x):
    match x:
        case KIND(): return "found"
    return "other\"""",
}


@pytest.mark.parametrize("kind", ["float", "np.float64", "np.ndarray"])
@pytest.mark.parametrize("name", [*QUESTIONS, *ELEMENTS])
def test_classes_asked_for_under_other_names(name, kind, tmp_path, monkeypatch):
    source = f"import numpy as np\nKIND = {kind}\n{(QUESTIONS | ELEMENTS)[name]}\n"
    module = made(source, tmp_path, monkeypatch)
    for value, part in ((3.0, lambda x: x), (np.ones(2), np.sum), (np.ones(2), lambda x: x)):
        expected = answer(lambda x: module.ask(part(x)), value)  # noqa: B023
        for transform in (fnad.grad, fnad.jit):
            found = []
            transform(lambda x: (found.append(answer(module.ask, part(x))), np.sum(x * x))[1])(value)  # noqa: B023
            assert found[-1] == expected


def answer(ask, x):
    try:
        return ask(x)
    except TypeError:  # np.ndarray(1) is no instance of a number's class
        return "refused"


def made(source, path, monkeypatch):
    (path / "asking_module.py").write_text(source)
    spec = importlib.util.spec_from_file_location("asking_module", path / "asking_module.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "asking_module", module)
    spec.loader.exec_module(module)
    return module


def test_what_is_called_beside_it_is_called_as_before(tmp_path, monkeypatch):
    """A hook stands between the user's code and what it calls, which may ask who called it."""
    source = """
import numpy as np
TABLE = {"kind": type, "vectorized": np.vectorize(lambda t: t * t), "text": str, "has": hasattr}
def f(x):
    each = [f for f in TABLE.values()][1]
    return np.sum(each(x)) * (2.0 if TABLE["kind"](x) is np.ndarray else 5.0) * len(TABLE["text"](np.sum(x) > 0))
"""
    module = made(source, tmp_path, monkeypatch)
    value = np.array([1.0, 2.0])
    for f in (module.f, fnad.jit(module.f)):
        assert f(value) == 2.0 * 5.0 * 4
        assert f(-value) == 2.0 * 5.0 * 5
    assert fnad.grad(module.f)(value).tolist() == [16.0, 32.0]


def test_functions_that_are_made_anew_in_each_run():
    def f(x):
        space = {}
        exec("def ask(x): return type(x) is float", space)
        return x * space["ask"](x)

    with pytest.raises(TracerEscapeError, match="has no source that is what runs"):
        fnad.jit(f)(1.0)
