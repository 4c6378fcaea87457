"""`type` of a traced value, however code comes to it and whatever it does with the answer."""

import importlib.util
import itertools
import warnings

import fnad
from tests.together import together

PRELUDE = """
import builtins, functools, itertools, operator
from types import SimpleNamespace
from collections import namedtuple
KIND = type
TABLE = {"type": type}
HOLDER = SimpleNamespace(kind=type)
NAMED = namedtuple("N", "kind")(type)
class Holder:
    static = staticmethod(type)
    def __init__(self): self.own = type
    @property
    def by_property(self): return type
INSTANCE = Holder()
CLOSED = (lambda kind: lambda x: kind(x))(type)
def by_default(x, t=type): return t(x)
def call(function, value): return function(value)
def imported(x):
    from builtins import type as t
    return t(x)
@functools.lru_cache
def cached(): return type
def unpacked(x):
    t, *_ = type, int
    return t(x)
def give(): return type
def matched(x):
    match (type, x):
        case (t, v): return t(v)
FORMS = {}
"""

REACHED = {
    "name": "type(x)",
    "module": "builtins.type(x)",
    "alias": "KIND(x)",
    "default": "by_default(x)",
    "table": "TABLE['type'](x)",
    "list": "[type][0](x)",
    "getattr": "getattr(builtins, 'type')(x)",
    "vars": "vars(builtins)['type'](x)",
    "globals": "globals()['KIND'](x)",
    "walrus": "(t := type)(x)",
    "partial": "functools.partial(type)(x)",
    "partial of it": "functools.partial(type, x)()",
    "map": "list(map(type, [x]))[0]",
    "attribute": "HOLDER.kind(x)",
    "static": "Holder.static(x)",
    "instance": "INSTANCE.own(x)",
    "lambda": "(lambda: type)()(x)",
    "attrgetter": "operator.attrgetter('type')(builtins)(x)",
    "itemgetter": "operator.itemgetter('type')(TABLE)(x)",
    "methodcaller": "operator.methodcaller('type', x)(builtins)",
    "comprehension": "[t(x) for t in (type,)][0]",
    "class": "x.__class__",
    "eval": "eval('type(x)')",
    "eval name": "eval('type')(x)",
    "star": "call(*[type, x])",
    "keywords": "call(**{'function': type, 'value': x})",
    "reduce": "functools.reduce(lambda a, t: t(a), [type], x)",
    "import": "imported(x)",
    "conditional": "(type if x > 0 else len)(x)",
    "or": "(None or type)(x)",
    "cached": "cached()(x)",
    "next": "next(t(x) for t in iter([type]))",
    "starmap": "list(itertools.starmap(type, [(x,)]))[0]",
    "dict get": "TABLE.get('type')(x)",
    "unpacked": "unpacked(x)",
    "metaclass": "type.__call__(type, x)",
    "object class": "object.__getattribute__(x, '__class__')",
    "sorted key": "max([x], key=lambda t: 0).__class__",
    "nested": "(lambda f: f(x))(type)",
    "returned": "give()(x)",
    "namedtuple": "NAMED.kind(x)",
    "property": "INSTANCE.by_property(x)",
    "match": "matched(x)",
    "operator call": "operator.call(type, x)",
    "closure": "CLOSED(x)",
}
"""How code reaches `type`."""

COMPARED = {
    "is": "{} is float",
    "reversed": "float is {}",
    "is not": "not ({} is not float)",
    "equal": "{} == float",
    "not equal": "not ({} != float)",
    "in": "{} in (float, int)",
    "in dict": "{} in {{float: 1}}",
    "get": "{{float: True}}.get({}, False)",
    "subclass": "issubclass({}, float)",
    "name": "{}.__name__ == 'float'",
    "operator": "operator.is_({}, float)",
    "id": "id({}) == id(float)",
    "list": "[float].count({}) == 1",
    "chain": "float is {} is float",
    "call": "{}(1) == 1.0",
    "frozenset": "{} in frozenset([float])",
    "hash": "hash({}) == hash(float)",
    "any": "any({} is k for k in (int, float))",
}
"""Expressions that are true of `float`."""


def test_type_under_any_name(tmp_path):
    """Each way to reach it with each comparison by identity, and with the next of the others."""
    pairs = [*itertools.product(REACHED, ("is", "get", "operator")), *zip(REACHED, itertools.cycle(COMPARED))]
    pairs += [(way, comparison) for way in ("name", "table") for comparison in COMPARED]
    forms = [COMPARED[comparison].format(REACHED[way]) for way, comparison in pairs]
    path = tmp_path / "forms.py"
    path.write_text(
        PRELUDE + "".join(f"def f{n}(x):\n    return x**2 if {form} else 100.0 * x\n" for n, form in enumerate(forms))
    )
    spec = importlib.util.spec_from_file_location("forms", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with together() as named, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that are not known
        for n, form in enumerate(forms):
            f = getattr(module, f"f{n}")
            with named(form):
                assert (f(3.0), fnad.grad(f)(3.0), fnad.jit(fnad.grad(f))(3.0)) == (9, 6, 6)
