"""fnad's words for those of JAX, PyTorch, TensorFlow and HIPS autograd.

Whatever looks for a name that is not there asks this table for the way out: `fnad.lax` for names of the modules, `x.at`
for attributes of a traced value, `size()` for those that are called, `lr=` for keywords.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import import_module

_TO_DEVICE = "write fnad.to_device(tree), outside of the function"
_TO_HOST = "write fnad.to_host(tree), outside of the function"
_ON = "write fnad.jit(f, device='cuda'), or run it in a block under fnad.device('cuda')"
_DEFAULT = "write fnad.device('cuda') for a block of code; fnad.config.set_default sets it for the process"
_PRECISION = "write fnad.config.override(matmul_precision='tensorfloat32'), or fnad.config.set_default for the process"
_ONE_GPU = "programs run on the CPU or on one GPU, that which CuPy has chosen: `fnad doctor` describes it"
_NO_RECORD = "nothing is recorded: call the function itself for its value, fnad.grad(f) for its gradient"
_STATIC = "fnad.stop_gradient(x) has the same values, and no derivative"
_NUMPY = "write NumPy's own functions, or fnad.numpy for names bound before the trace"
_COLLECTIVE = "fnad.vmap(f) maps f over rows on one device; fnad.distributed.psum(x) and others reduce over processes"
_PROGRAM = "write fnad.make_program(f)(*args), which prints, compares and runs"
_NETWORK = "parameters are any pytree, and a network is a function of them: see docs/nn.md"
_PARAMETERS = "parameters are any pytree: give them to opt.init(params) and opt.update(gradients, state, params)"
_WRITE = "write x[i] = v or x[i] += v on a copy, x = x.copy(): the caller's array is left alone"
_GRADIENT = "differentiate the function, fnad.grad(f)(x), which returns the gradient"
_EACH = "write fnad.vmap(fnad.grad(f)), or fnad.grad(lambda x: np.sum(f(x)))"
_REGISTER = "dataclasses are pytrees as they are; optree.register_pytree_node registers others, in the namespace 'fnad'"
_RATE = "write learning_rate="
_B = "write b1= and b2="
_COMPLEX = "leave it out: for f of real output grad is df/dx - i df/dy; fnad.jacrev(f, holomorphic=True) is df/dz"
_ALWAYS = "leave it out: a derivative is a function like any other, and nests as it is"
_AXIS = "write axis="

WORDS: dict[str, str] = {
    # ---- names ---------------------------------------------------------------------------------------------------
    "fnad.lax": "its control flow is in fnad itself (fnad.cond, fnad.scan, fnad.while_loop), and the rest is NumPy",
    "fnad.jnp": _NUMPY,
    "fnad.np": _NUMPY,
    "fnad.make_jaxpr": _PROGRAM,
    "fnad.xla_computation": "write fnad.jit(f).lower(*args).as_text('llvm')",
    "fnad.pmap": _COLLECTIVE,
    "fnad.shard_map": _COLLECTIVE,
    "fnad.xmap": _COLLECTIVE,
    "fnad.device_put": _TO_DEVICE,
    "fnad.device_get": _TO_HOST,
    "fnad.devices": _ONE_GPU,
    "fnad.local_devices": _ONE_GPU,
    "fnad.device_count": _ONE_GPU,
    "fnad.default_device": _DEFAULT,
    "fnad.default_matmul_precision": _PRECISION,
    "fnad.set_float32_matmul_precision": _PRECISION,
    "fnad.tree_util": "write fnad.tree; classes are registered by optree.register_pytree_node, in the namespace 'fnad'",
    "fnad.detach": _STATIC,
    "fnad.grad_and_value": "write fnad.value_and_grad(f), which returns the value first",
    "fnad.default_backend": "write fnad.config.current().device",
    "fnad.closure_convert": "leave it out: a function may take traced values from its closure",
    "fnad.custom_gradient": "write fnad.custom_vjp",
    "fnad.pure_callback": "write fnad.callback(f, *args, result=like_the_result)",
    "fnad.io_callback": "write fnad.callback(f, *args, result=like_the_result)",
    "fnad.host_callback": "write fnad.callback, or fnad.debug.print for numbers",
    "fnad.named_call": "leave it out: programs show the lines of the source",
    "fnad.named_scope": "leave it out: programs show the lines of the source",
    "fnad.ensure_compile_time_eval": "compute it outside of the function; what depends on no argument is constant",
    "fnad.Array": "arrays are np.ndarray; for traced ones too, isinstance(x, np.ndarray) is true",
    "fnad.experimental": "what there is stands in fnad itself: fnad.odeint, fnad.checkpoint, fnad.callback",
    "fnad.profiler": "write fnad.debug.profile(f, *args); fnad.explain(f, *args) says what a trace finds",
    "fnad.detect_anomaly": "write fnad.debug_nans",
    "fnad.set_detect_anomaly": "write fnad.debug_nans",
    "fnad.gradcheck": "write fnad.testing.check_grads, or fnad.testing.check for all comparisons",
    "fnad.sow": "write fnad.tap(x, name), and fnad.tapped(f) for the function that returns it",
    "fnad.perturb": "write fnad.cotangent_tap(x, name), and fnad.tapped(fnad.grad(f)) for what returns it",
    "fnad.debug_infs": "write fnad.debug_nans, which stops at inf too",
    "fnad.from_numpy": "leave it out: arrays are np.ndarray",
    "fnad.gradients": "write fnad.grad",
    "fnad.enable_x64": "leave it out: dtypes are NumPy's, f64 unless arrays are f32",
    "fnad.stages": "write fnad.jit(f).lower(*args)",
    **{f"fnad.{name}": _EACH for name in ("elementwise_grad", "egrad", "deriv")},
    "fnad.holomorphic_grad": "write fnad.jacrev(f, holomorphic=True)",
    "fnad.tensor_jacobian_product": "write fnad.vjp(f, x), whose pullback takes the tensor",
    "fnad.hessian_tensor_product": "write fnad.hvp(f, (x,), (v,))",
    "fnad.multigrad_dict": "write fnad.grad(lambda kwargs: f(**kwargs)), which takes a dict",
    "fnad.defvjp": "write fnad.custom_vjp",
    "fnad.typing": "arrays are np.ndarray",
    "fnad.multigrad": "write fnad.grad(f, argnums=(0, 1))",
    "fnad.grad_and_aux": "write fnad.grad(f, has_aux=True)",
    "fnad.make_vjp": "write fnad.vjp(f, x)",
    "fnad.make_jvp": "write fnad.jvp(f, (x,), (dx,))",
    "fnad.make_hvp": "write fnad.hvp(f, (x,), (v,))",
    "fnad.hessian_vector_product": "write fnad.jvp(fnad.grad(f), (x,), (v,))[1]",
    "fnad.primitive": "write fnad.custom_vjp, or declare a primitive: see CONTRIBUTING.md",
    "fnad.value_and_gradient": "write fnad.value_and_grad",
    "fnad.gradient": "write fnad.grad",
    "fnad.grad_fn": "write fnad.make_program(f)(*args) for the program",
    "fnad.tensor": "write np.array",
    "fnad.Tensor": "arrays are np.ndarray",
    "fnad.Variable": "an argument of the function is a variable: fnad.grad(f, argnums=...) says which",
    "fnad.constant": "write np.array; what is no argument of the function is constant",
    "fnad.no_grad": _NO_RECORD,
    "fnad.enable_grad": _NO_RECORD,
    "fnad.inference_mode": _NO_RECORD,
    "fnad.set_grad_enabled": _NO_RECORD,
    "fnad.GradientTape": _GRADIENT,
    "fnad.autograd": _GRADIENT,
    "fnad.backward": _GRADIENT,
    "fnad.func": "its names are in fnad itself: fnad.grad, fnad.vjp, fnad.jvp, fnad.vmap, fnad.jacrev, fnad.hessian",
    "fnad.function": "write fnad.jit",
    "fnad.compile": "write fnad.jit",
    "fnad.manual_seed": "write key = fnad.random.key(0), and draw from it: see docs/random.md",
    "fnad.cuda": _ON,
    "fnad.set_default_device": _DEFAULT,
    "fnad.synchronize": "write fnad.block_until_ready(tree)",
    "fnad.vectorized_map": "write fnad.vmap",
    "fnad.map_fn": "write fnad.map, or fnad.vmap for all rows at once",
    "fnad.case": "write fnad.switch",
    "fnad.clear_caches": "write fnad.clear_cache",
    "fnad.custom_grad": "write fnad.custom_vjp",
    "fnad.vhp": "write fnad.hvp(f, (x,), (v,)): the Hessian is symmetric",
    **{f"fnad.{name}": f"write fnad.nn.{name}" for name in ("relu", "softmax", "log_softmax", "sigmoid", "one_hot")},
    **{f"fnad.{name}": "convert to float32: there is no shorter float" for name in ("float16", "bfloat16")},
    **{f"fnad.nn.{name}": _NETWORK for name in ("Module", "Linear", "Dense", "Sequential", "Parameter", "Layer")},
    **{f"fnad.nn.{name}": f"write fnad.nn.{name.lower()}, a function" for name in ("ReLU", "GELU", "Softmax")},
    "fnad.random.PRNGKey": "write fnad.random.key(seed)",
    "fnad.random.seed": "write key = fnad.random.key(0), and draw from it: see docs/random.md",
    **{f"fnad.random.{name}": "write fnad.random.normal(key, shape)" for name in ("randn", "standard_normal")},
    **{f"fnad.random.{name}": "write fnad.random.uniform(key, shape)" for name in ("rand", "random", "random_sample")},
    "fnad.random.shuffle": "write fnad.random.permutation(key, x)",
    "fnad.random.beta": "write x / (x + y) with x and y drawn by fnad.random.gamma, each with a key of its own",
    "fnad.random.dirichlet": "write x / np.sum(x) with x = fnad.random.gamma(key, alpha)",
    "fnad.random.truncated_normal": (
        "write scipy.special.ndtri(fnad.random.uniform(key, shape, minval=ndtr(lower), maxval=ndtr(upper)))"
    ),
    "fnad.random.multivariate_normal": "write mean + np.linalg.cholesky(cov) @ fnad.random.normal(key, mean.shape)",
    **{f"fnad.tree.{name}": _REGISTER for name in ("register_pytree_node", "register_pytree_node_class")},
    "fnad.tree.register_dataclass": _REGISTER,
    "fnad.nn.dot_product_attention": "write fnad.nn.softmax(q @ k.mT / np.sqrt(q.shape[-1])) @ v",
    "fnad.nn.functional": "its functions are in fnad.nn itself",
    "fnad.nn.Conv2d": "write fnad.nn.conv(x, kernel, strides, padding)",
    "fnad.nn.initializers": "draw with fnad.random, and scale",
    "fnad.nn.tanh": "write np.tanh",
    "fnad.nn.standardize": "write (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + epsilon)",
    "fnad.config.update": "write fnad.config.set_default(executor='compiled'), or fnad.config.override for a block",
    "fnad.optim.SGD": "write fnad.optim.sgd(learning_rate)",
    "fnad.optim.Adam": "write fnad.optim.adam(learning_rate)",
    "fnad.optim.AdamW": "write fnad.optim.adamw(learning_rate, weight_decay=...)",
    "fnad.optim.RMSprop": "write fnad.optim.rmsprop(learning_rate)",
    "fnad.optim.Adagrad": "write fnad.optim.adagrad(learning_rate)",
    "fnad.optim.LBFGS": "write fnad.optim.lbfgs()",
    "fnad.optim.lr_scheduler": "give a schedule for the learning rate: fnad.optim.cosine_decay_schedule(0.1, 1000)",
    # ---- attributes of traced values -------------------------------------------------------------------------------
    "x.at": _WRITE,
    "x.detach": _STATIC,
    "x.requires_grad": "fnad.grad(f, argnums=...) says in which arguments f is differentiated",
    "x.requires_grad_": "fnad.grad(f, argnums=...) says in which arguments f is differentiated",
    "x.backward": _GRADIENT,
    "x.grad": _GRADIENT,
    "x.grad_fn": _PROGRAM,
    "x.retain_grad": "write x = fnad.cotangent_tap(x, 'x'); fnad.tapped(fnad.grad(f)) returns it: docs/debugging.md",
    "x.register_hook": "write x = fnad.cotangent_tap(x, 'x') to see it; to change it, fnad.custom_vjp of the identity",
    "x.numpy": "leave it out: it is an array; for numbers return it, or show it with fnad.debug.print",
    "x.cpu": _TO_HOST,
    "x.cuda": _TO_DEVICE,
    "x.to": f"write x.astype(dtype) for a dtype; for a device {_TO_DEVICE}",
    "x.addressable_data": _ONE_GPU,
    "x.block_until_ready": "write fnad.block_until_ready(x), outside of the function",
    "x.clone": "write x.copy()",
    "x.numel": "write x.size",
    "x.permute": "write x.transpose(axes)",
    "x.unsqueeze": "write np.expand_dims(x, axis)",
    "x.expand": "write np.broadcast_to(x, shape)",
    "x.contiguous": "leave it out: traced values have no layout in memory",
    "x.float": "write x.astype(np.float32)",
    "x.double": "write x.astype(np.float64)",
    "x.long": "write x.astype(np.int64)",
    "x.type": "write x.astype(dtype)",
    "x.weak_type": "leave it out: Python numbers follow NumPy's rules of promotion",
    "x.assign": "return the new value: a traced function keeps no variables",
    **{f"x.{name}_": _WRITE for name in ("add", "sub", "mul", "div", "copy", "fill", "zero", "clamp")},
    "x.t": "write x.T",
    **{f"x.{name}": "write x @ y" for name in ("mm", "bmm", "mv", "matmul")},
    "x.norm": "write np.linalg.norm(x)",
    "x.dim": "write x.ndim",
    "x.masked_fill": "write np.where(mask, value, x)",
    "x.gather": "write np.take_along_axis(x, indices, axis)",
    "x.chunk": "write np.array_split(x, sections)",
    "x.pow": "write x**y",
    "x.clamp": "write np.clip(x, low, high)",
    "x.sigmoid": "write fnad.nn.sigmoid(x)",
    "x.relu": "write fnad.nn.relu(x)",
    "x.softmax": "write fnad.nn.softmax(x)",
    # ---- attributes that are called --------------------------------------------------------------------------------
    "size()": "write x.shape[i] for the length of an axis, x.size for the number of elements",
    "shape()": "write x.shape[i] for the length of an axis, x.shape for all",
    "ndim()": "write x.ndim",
    "T()": "write x.T",
    # ---- keywords --------------------------------------------------------------------------------------------------
    "dim=": _AXIS,
    "dims=": _AXIS,
    "axes=": _AXIS,
    "reduction_indices=": _AXIS,
    "keepdim=": "write keepdims=",
    "keep_dims=": "write keepdims=",
    "unbiased=": "write ddof=1 for unbiased=True, ddof=0 for unbiased=False",
    "correction=": "write ddof=",
    "requires_grad=": "leave it out: fnad.grad(f, argnums=...) says in which arguments f is differentiated",
    "device=": _ON,
    "size=": "write shape=",
    "lr=": _RATE,
    "step_size=": _RATE,
    "betas=": _B,
    "beta1=": "write b1=",
    "beta2=": "write b2=",
    "beta_1=": "write b1=",
    "beta_2=": "write b2=",
    "epsilon=": "write eps=",
    "rho=": "write decay=",
    "weight_decay=": "write fnad.optim.adamw(learning_rate, weight_decay=...), or chain fnad.optim.add_decayed_weights",
    "params=": _PARAMETERS,
    "max_iter=": "repeat the update in a loop: see docs/optim.md",
    "history_size=": "write memory_size=",
    "line_search_fn=": "write linesearch=fnad.optim.scale_by_zoom_linesearch(20)",
    "argnum=": "write argnums=",
    "argnames=": "write argnums=, the positions of the arguments",
    "wrt=": "write argnums=",
    "static_argnum=": "write static_argnums=",
    "static_argname=": "write static_argnames=",
    "static_argnums=": "let the function take it from its closure: lambda x: f(x, n)",
    "static_argnames=": "let the function take it from its closure: lambda x: f(x, n=n)",
    "donate_argnames=": "write donate_argnums=, the positions of the arguments",
    "backend=": "write device=",
    "inline=": "leave it out: inside another transform a compiled function is like the function itself",
    "keep_unused=": "leave it out: arguments that are not used cost nothing",
    "in_shardings=": _ONE_GPU,
    "out_shardings=": _ONE_GPU,
    "holomorphic=": _COMPLEX,
    "allow_int=": "leave it out: integers among floats are constant; pass what is to be differentiated as a float",
    "reduce_axes=": _COLLECTIVE,
    "axis_name=": _COLLECTIVE,
    "spmd_axis_name=": _COLLECTIVE,
    "in_dims=": "write in_axes=",
    "out_dims=": "write out_axes=",
    "randomness=": "give each row a key: fnad.random.split(key, count)",
    "chunk_size=": "write fnad.map for one row after the other",
    "create_graph=": _ALWAYS,
    "retain_graph=": "leave it out: a pullback may be called any number of times",
    "strict=": "leave it out: an output that depends on no input has the derivative 0",
    "vectorize=": "leave it out: all rows are computed at once",
    "prevent_cse=": "leave it out: no pass looks into a checkpoint until all are done",
    "use_reentrant=": "leave it out: there is one way",
    "preserve_rng_state=": "leave it out: draw from keys, with fnad.random",
    "concrete=": "leave it out: Python may decide by traced scalars",
    "fullgraph=": "leave it out: what cannot be traced is an error",
    "dynamic=": "leave it out: there is a program for each combination of shapes",
    "mode=": "leave it out: fnad.config says what runs a program",
    "jit_compile=": "leave it out: fnad.jit compiles",
    "input_signature=": "leave it out: there is a program for each combination of shapes and dtypes",
    "nopython=": "leave it out: what cannot be traced is an error",
    "parallel=": "leave it out: long loops run on several threads",
    "fun=": "write f=, or give the function first",
    "func=": "write f=, or give the function first",
    "fn=": "write f=, or give the function first",
}


def word_for_keyword(message: str) -> str | None:
    """The way out of a keyword that a function does not take, from what Python says of it."""
    match = re.search(r"unexpected keyword argument '(\w+)'", message)
    return WORDS.get(f"{match[1]}=") if match else None


def alike(name: str, names: Iterable[str]) -> str | None:
    """The public name that is nearly spelt like another one, if there is one."""
    public = [known for known in names if not known.startswith("_")]
    return next(iter(import_module("difflib").get_close_matches(name, public, 1, 0.65)), None)
