"""fnad: derivatives of plain NumPy functions, compiled.

    import numpy as np, fnad

    def loss(w, x, y):
        return np.mean((np.tanh(x @ w["W"] + w["b"]) - y) ** 2)

    value, gradient = fnad.value_and_grad(loss)(w, x, y)

`grad`, `value_and_grad`, `vjp`, `jvp` differentiate, `stop_gradient` blocks derivatives, `jit` compiles; they nest in
any order; `explain` shows what a trace of a function finds. `config` has the settings, `errors` the exceptions; `numpy`
has NumPy's names for code that cannot be traced through NumPy itself; `nn` has convolution and pooling, `optim`
optimizers, `random` random numbers, `scipy` rules for SciPy's functions, `testing` checks of derivatives.
"""

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from fnad import config, errors
from fnad.config import debug_nans, disable_jit
from fnad.signals import refuse_handlers
from fnad.store import cache_info, clear_cache, uncollected
from fnad.tracebacks import boundary
from fnad.version import __version__ as __version__

if TYPE_CHECKING:
    from fnad import debug, distributed, flatten_util, nn, numpy, optim, random, scipy, test_util, testing, tree
    from fnad.api.functions.associative_scan import associative_scan
    from fnad.api.functions.branches import cond, switch
    from fnad.api.functions.callback import callback
    from fnad.api.functions.checkpoint import checkpoint, remat
    from fnad.api.functions.custom_rules import custom_jvp, custom_vjp
    from fnad.api.functions.device import block_until_ready, device, to_device, to_host
    from fnad.api.functions.explain import explain
    from fnad.api.functions.export import export
    from fnad.api.functions.external import external
    from fnad.api.functions.grad import grad, value_and_grad
    from fnad.api.functions.implicit import Minimum, fixed_point, minimize, root
    from fnad.api.functions.jacobian import hessian, jacfwd, jacobian, jacrev, laplacian
    from fnad.api.functions.jet import jet
    from fnad.api.functions.jit import jit, make_program
    from fnad.api.functions.jvp import jvp
    from fnad.api.functions.linear import hvp, linear_transpose, linearize
    from fnad.api.functions.loops import fori_loop, scan, while_loop
    from fnad.api.functions.lowered import ShapeDtypeStruct, eval_shape
    from fnad.api.functions.map import map  # noqa: A004
    from fnad.api.functions.ode import odeint
    from fnad.api.functions.register_rule import register_rule
    from fnad.api.functions.save_load import load, save
    from fnad.api.functions.sparse import sparse_hessian, sparse_jacobian
    from fnad.api.functions.stop_gradient import stop_gradient
    from fnad.api.functions.tap import cotangent_tap, tap, tapped
    from fnad.api.functions.vectorize import vectorize
    from fnad.api.functions.view import view
    from fnad.api.functions.vjp import vjp
    from fnad.api.functions.vmap import vmap

__all__ = [
    "Minimum",
    "ShapeDtypeStruct",
    "associative_scan",
    "block_until_ready",
    "cache_info",
    "callback",
    "checkpoint",
    "clear_cache",
    "cond",
    "config",
    "cotangent_tap",
    "custom_jvp",
    "custom_vjp",
    "debug",
    "debug_nans",
    "device",
    "disable_jit",
    "distributed",
    "errors",
    "eval_shape",
    "explain",
    "export",
    "external",
    "fixed_point",
    "flatten_util",
    "fori_loop",
    "grad",
    "hessian",
    "hvp",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jet",
    "jit",
    "jvp",
    "laplacian",
    "linear_transpose",
    "linearize",
    "load",
    "make_program",
    "map",
    "minimize",
    "nn",
    "numpy",
    "odeint",
    "optim",
    "random",
    "register_rule",
    "remat",
    "root",
    "save",
    "scan",
    "scipy",
    "sparse_hessian",
    "sparse_jacobian",
    "stop_gradient",
    "switch",
    "tap",
    "tapped",
    "test_util",
    "testing",
    "to_device",
    "to_host",
    "tree",
    "value_and_grad",
    "vectorize",
    "view",
    "vjp",
    "vmap",
    "while_loop",
]

_MODULES = {
    "associative_scan": ("associative_scan",),
    "branches": ("cond", "switch"),
    "callback": ("callback",),
    "checkpoint": ("checkpoint", "remat"),
    "custom_rules": ("custom_jvp", "custom_vjp"),
    "device": ("block_until_ready", "device", "to_device", "to_host"),
    "explain": ("explain",),
    "export": ("export",),
    "external": ("external",),
    "grad": ("grad", "value_and_grad"),
    "implicit": ("Minimum", "fixed_point", "minimize", "root"),
    "jacobian": ("hessian", "jacfwd", "jacobian", "jacrev", "laplacian"),
    "jet": ("jet",),
    "jit": ("jit", "make_program"),
    "jvp": ("jvp",),
    "linear": ("hvp", "linear_transpose", "linearize"),
    "loops": ("fori_loop", "scan", "while_loop"),
    "lowered": ("ShapeDtypeStruct", "eval_shape"),
    "map": ("map",),
    "ode": ("odeint",),
    "register_rule": ("register_rule",),
    "save_load": ("load", "save"),
    "sparse": ("sparse_hessian", "sparse_jacobian"),
    "stop_gradient": ("stop_gradient",),
    "tap": ("cotangent_tap", "tap", "tapped"),
    "vectorize": ("vectorize",),
    "view": ("view",),
    "vjp": ("vjp",),
    "vmap": ("vmap",),
}
_MODULE_OF = {name: f"fnad.api.functions.{module}" for module, names in _MODULES.items() for name in names}
_PACKAGES = (
    "debug",
    "distributed",
    "flatten_util",
    "nn",
    "numpy",
    "optim",
    "random",
    "scipy",
    "test_util",
    "testing",
    "tree",
)

if not TYPE_CHECKING:  # with a `__getattr__`, checkers accept any name

    @boundary
    def __getattr__(name: str) -> Any:
        """Import on first access, so that a library which offers derivatives takes no time of those who use none."""
        with uncollected():  # to look for garbage among the objects of modules takes a tenth of the time to import them
            if name in _PACKAGES:
                return import_module(f"fnad.{name}")
            if name in _MODULE_OF:
                refuse_handlers()  # before the import that one may have interrupted
                found = getattr(import_module(_MODULE_OF[name]), name)
                globals()[name] = found = found if isinstance(found, type) else _at_boundary(found)
                return found
            raise import_module("fnad.trace.unknown").missing("fnad", name)


@cache
def _at_boundary(function: Any) -> Any:
    """A public function, whose errors have no frames of fnad."""
    found = boundary(function)
    found.__module__ = "fnad"  # where pickle finds it
    return found


def __dir__() -> list[str]:
    return __all__
