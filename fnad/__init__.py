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
from fnad.store import cache_info, clear_cache, uncollected
from fnad.tracebacks import boundary
from fnad.version import __version__ as __version__

if TYPE_CHECKING:
    from fnad import debug, flatten_util, nn, numpy, optim, random, scipy, test_util, testing, tree
    from fnad.api.archive import load, save
    from fnad.api.associative import associative_scan
    from fnad.api.batching import vmap
    from fnad.api.branches import cond, switch
    from fnad.api.callbacks import callback
    from fnad.api.checkpointing import checkpoint, remat
    from fnad.api.compilation import jit, make_program
    from fnad.api.constant import stop_gradient
    from fnad.api.custom import custom_jvp, custom_vjp
    from fnad.api.explaining import explain
    from fnad.api.exporting import export
    from fnad.api.external import external
    from fnad.api.forward import jvp
    from fnad.api.gradient import grad, value_and_grad
    from fnad.api.implicit import Minimum, fixed_point, minimize, root
    from fnad.api.iteration import fori_loop, scan, while_loop
    from fnad.api.jacobian import hessian, jacfwd, jacobian, jacrev, laplacian
    from fnad.api.jet import jet
    from fnad.api.linear import hvp, linear_transpose, linearize
    from fnad.api.lowered import ShapeDtypeStruct, eval_shape
    from fnad.api.mapping import map  # noqa: A004
    from fnad.api.ode import odeint
    from fnad.api.placing import block_until_ready, device, to_device, to_host
    from fnad.api.reverse import vjp
    from fnad.api.sparse import sparse_hessian, sparse_jacobian
    from fnad.api.tapping import cotangent_tap, tap, tapped
    from fnad.api.vectorizing import vectorize
    from fnad.api.viewing import view

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
    "archive": ("load", "save"),
    "associative": ("associative_scan",),
    "batching": ("vmap",),
    "branches": ("cond", "switch"),
    "callbacks": ("callback",),
    "checkpointing": ("checkpoint", "remat"),
    "compilation": ("jit", "make_program"),
    "constant": ("stop_gradient",),
    "custom": ("custom_jvp", "custom_vjp"),
    "explaining": ("explain",),
    "exporting": ("export",),
    "external": ("external",),
    "forward": ("jvp",),
    "gradient": ("grad", "value_and_grad"),
    "implicit": ("Minimum", "fixed_point", "minimize", "root"),
    "iteration": ("fori_loop", "scan", "while_loop"),
    "jacobian": ("hessian", "jacfwd", "jacobian", "jacrev", "laplacian"),
    "jet": ("jet",),
    "linear": ("hvp", "linear_transpose", "linearize"),
    "lowered": ("ShapeDtypeStruct", "eval_shape"),
    "mapping": ("map",),
    "ode": ("odeint",),
    "placing": ("block_until_ready", "device", "to_device", "to_host"),
    "reverse": ("vjp",),
    "sparse": ("sparse_hessian", "sparse_jacobian"),
    "tapping": ("cotangent_tap", "tap", "tapped"),
    "vectorizing": ("vectorize",),
    "viewing": ("view",),
}
_MODULE_OF = {name: f"fnad.api.{module}" for module, names in _MODULES.items() for name in names}
_PACKAGES = ("debug", "flatten_util", "nn", "numpy", "optim", "random", "scipy", "test_util", "testing", "tree")

if not TYPE_CHECKING:  # with a `__getattr__`, checkers accept any name

    @boundary
    def __getattr__(name: str) -> Any:
        """Import on first access, so that a library which offers derivatives takes no time of those who use none."""
        with uncollected():  # to look for garbage among the objects of modules takes a tenth of the time to import them
            if name in _PACKAGES:
                return import_module(f"fnad.{name}")
            if name in _MODULE_OF:
                found = getattr(import_module(_MODULE_OF[name]), name)
                globals()[name] = found = found if isinstance(found, type) else _at_boundary(found)
                return found
            raise import_module("fnad.trace.missing").missing("fnad", name)


@cache
def _at_boundary(function: Any) -> Any:
    """A public function, whose errors have no frames of fnad."""
    found = boundary(function)
    found.__module__ = "fnad"  # where pickle finds it
    return found


def __dir__() -> list[str]:
    return __all__
