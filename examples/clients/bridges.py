"""fnad beside PyTorch, JAX and PyTensor: functions of one as functions of the other, each with its derivatives.

Runs the bridges to the libraries that are installed, and compares derivatives.
"""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false

import argparse
import importlib.util

import numpy as np

import fnad


def model(x, y):
    """A function of both libraries' users: its value and derivatives are smooth."""
    return np.tanh(x) * y + np.sin(x * y)


def pulled(f):
    """The pullback of a fnad function, compiled: (cotangent, *arguments) to a tuple of cotangents."""
    return fnad.jit(lambda ct, *args: fnad.vjp(f, *args)[1](ct))


# ---- PyTorch ---------------------------------------------------------------------------------------------------------


def to_torch(f):
    """A fnad function, of arrays to one array, as a function of tensors; the memory is shared."""
    import torch

    run, pull = fnad.jit(f), pulled(f)

    class Bridge(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *tensors):
            ctx.save_for_backward(*tensors)
            return torch.from_numpy(np.asarray(run(*[tensor.detach().numpy() for tensor in tensors])))

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, ct):
            found = pull(ct.contiguous().numpy(), *[tensor.detach().numpy() for tensor in ctx.saved_tensors])
            return tuple(torch.from_numpy(np.asarray(part)) for part in found)

    return Bridge.apply


def from_torch(module, result):
    """A function of tensors as a function that fnad differentiates; `result` is what `fnad.external` takes."""
    import torch

    def forward(*arrays):
        return module(*[torch.tensor(array) for array in arrays]).detach().numpy()

    def backward(ct, *arrays):
        tensors = [torch.tensor(array, requires_grad=True) for array in arrays]
        found = torch.autograd.grad(module(*tensors), tensors, torch.tensor(ct), allow_unused=True)
        return tuple(None if part is None else part.numpy() for part in found)

    return fnad.external(forward, result=result, vjp=backward)


# ---- JAX -------------------------------------------------------------------------------------------------------------


def to_jax(f):
    """A fnad function, of arrays to one array, under jax.jit, jax.grad and jax.vmap."""
    import jax

    def on_host(g):
        return lambda *arrays: jax.tree.map(np.asarray, g(*map(np.asarray, arrays)))

    run, pull = on_host(fnad.jit(f)), on_host(pulled(f))

    @jax.custom_vjp
    def bridge(*args):
        like = fnad.eval_shape(f, *[fnad.ShapeDtypeStruct(arg.shape, arg.dtype) for arg in args])
        shape = jax.ShapeDtypeStruct(like.shape, like.dtype)
        return jax.pure_callback(run, shape, *args, vmap_method="sequential")

    def backward(args, ct):
        shapes = tuple(jax.ShapeDtypeStruct(arg.shape, arg.dtype) for arg in args)
        return jax.pure_callback(pull, shapes, ct, *args, vmap_method="sequential")

    bridge.defvjp(lambda *args: (bridge(*args), args), backward)
    return bridge


def from_jax(f, result):
    """A JAX function as a function that fnad differentiates; `result` is what `fnad.external` takes."""
    import jax

    run, pull = jax.jit(f), jax.jit(lambda ct, *args: jax.vjp(f, *args)[1](ct))
    return fnad.external(
        lambda *args: np.asarray(run(*args)),
        result=result,
        vjp=lambda ct, *args: tuple(map(np.asarray, pull(ct, *args))),
        batch=lambda *args: np.asarray(jax.vmap(f)(*args)),
    )


# ---- PyTensor --------------------------------------------------------------------------------------------------------


def to_pytensor(f):
    """A fnad function, of f64 arrays to one array of the first one's shape, as a PyTensor operation with gradients."""
    from pytensor.graph.basic import Apply
    from pytensor.graph.op import Op
    from pytensor.tensor import as_tensor_variable

    run, pull = fnad.jit(f), pulled(f)

    class Pullback(Op):
        def make_node(self, ct, *args):
            return Apply(self, [ct, *args], [arg.type() for arg in args])

        def perform(self, node, inputs, outputs):
            for place, part in zip(outputs, pull(*inputs), strict=True):
                place[0] = np.asarray(part)

    class Bridge(Op):
        def make_node(self, *args):
            given = list(map(as_tensor_variable, args))
            return Apply(self, given, [given[0].type()])

        def perform(self, node, inputs, outputs):
            outputs[0][0] = np.asarray(run(*inputs))

        def pullback(self, inputs, outputs, cotangents):
            found = Pullback()(*cotangents, *inputs)
            return found if isinstance(found, list) else [found]

        def grad(self, inputs, cotangents):
            return self.pullback(inputs, None, cotangents)

    return Bridge()


# ---- runs ------------------------------------------------------------------------------------------------------------

X, Y = np.array([0.3, -1.2, 2.0]), np.array([1.5, 0.2, -0.7])


def expected():
    """The derivatives of the sum of the model by fnad."""
    return fnad.grad(lambda x, y: np.sum(model(x, y)), argnums=(0, 1))(X, Y)


def with_torch():
    """Check both bridges to PyTorch."""
    import torch

    x, y = (torch.tensor(array, requires_grad=True) for array in (X, Y))
    bridge = to_torch(model)
    assert torch.autograd.gradcheck(bridge, (x, y))
    bridge(x, y).sum().backward()
    back = from_torch(lambda x, y: torch.tanh(x) * y + torch.sin(x * y), lambda x, y: x)
    there_and_back = fnad.grad(lambda x, y: np.sum(back(x, y)), argnums=(0, 1))(X, Y)
    return [(x.grad.numpy(), y.grad.numpy()), there_and_back]


def with_jax():
    """Check both bridges to JAX."""
    import jax

    jax.config.update("jax_enable_x64", True)
    bridge = to_jax(model)
    found = jax.jit(jax.grad(lambda x, y: bridge(x, y).sum(), argnums=(0, 1)))(X, Y)
    back = from_jax(lambda x, y: jax.numpy.tanh(x) * y + jax.numpy.sin(x * y), lambda x, y: x)
    rows = fnad.vmap(fnad.grad(back, argnums=(0, 1)))(X, Y)
    return [found, fnad.grad(lambda x, y: np.sum(back(x, y)), argnums=(0, 1))(X, Y), rows]


def with_pytensor():
    """Check the bridge to PyTensor."""
    import pytensor
    import pytensor.tensor as pt

    x, y = pt.vector("x", dtype="float64"), pt.vector("y", dtype="float64")
    cost = to_pytensor(model)(x, y).sum()
    return [pytensor.function([x, y], pytensor.grad(cost, [x, y]))(X, Y)]


BRIDGES = {"torch": with_torch, "jax": with_jax, "pytensor": with_pytensor}

if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    for library, run in BRIDGES.items():
        if importlib.util.find_spec(library) is None:
            print(f"{library} is not installed")
            continue
        for found in run():
            for part, right in zip(found, expected(), strict=True):
                np.testing.assert_allclose(part, right, rtol=1e-12)
        print(f"{library}: the derivatives agree")
