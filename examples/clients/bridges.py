"""fnad beside PyTorch, JAX and PyTensor: functions of one as functions of the other, each with its derivatives.

Runs the bridges to the libraries that are installed, and compares derivatives. PyMC and numpyro sample a posterior
whose density is a fnad function, and the potential of a numpyro model becomes a fnad function.
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


def to_pytensor(f, result=None):
    """A fnad function, of f64 arrays to one array, as a PyTensor operation with gradients.

    `result` is the type of the result, that of the first argument if it is None.
    """
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
            return Apply(self, given, [given[0].type() if result is None else result()])

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


# ---- samplers --------------------------------------------------------------------------------------------------------

DATA = 0.9 * X + np.exp(0.4 * Y) + np.array([0.1, -0.2, 0.1])
AT = np.array([0.4, -0.3])


def misfit(p):
    """The log-likelihood of a slope and a rate of growth, for errors of 0.3."""
    return -0.5 * np.sum(((p[0] * X + np.exp(p[1] * Y) - DATA) / 0.3) ** 2)


def density(p):
    """The logarithm of the posterior density, up to a constant, with standard normal priors."""
    return misfit(p) - 0.5 * np.sum(p**2)


def check_draws(draws):
    """Compare the means of draws with those on a grid, within a quarter of the standard deviations."""
    grid = np.stack(np.meshgrid(*[np.linspace(-3.0, 3.0, 201)] * 2, indexing="ij"), axis=-1).reshape(-1, 2)
    weights = np.exp(fnad.jit(fnad.vmap(density))(grid))
    mean = np.average(grid, axis=0, weights=weights)
    spread = np.sqrt(np.average((grid - mean) ** 2, axis=0, weights=weights))
    np.testing.assert_array_less(np.abs(np.mean(draws, axis=0) - mean), 0.25 * spread)


def with_pymc():
    """Check the gradient of a PyMC model with a fnad function in it, and its draws."""
    import pymc
    import pytensor.tensor as pt

    with pymc.Model() as posterior:
        p = pymc.Normal("p", 0.0, 1.0, shape=2)
        pymc.Potential("misfit", to_pytensor(misfit, pt.dscalar)(p))
    np.testing.assert_allclose(posterior.compile_dlogp()({"p": AT}), fnad.grad(density)(AT), rtol=1e-12)
    with posterior:
        drawn = pymc.sample(1000, tune=500, chains=2, cores=1, random_seed=0, progressbar=False)
    check_draws(drawn.posterior["p"].values.reshape(-1, 2))
    return []


def with_numpyro():
    """Check the draws of a numpyro model with a fnad function in it, and the potential of a numpyro model in fnad."""
    import jax
    import numpyro
    from numpyro.infer import MCMC, NUTS
    from numpyro.infer.util import potential_energy

    jax.config.update("jax_enable_x64", True)

    def posterior(likelihood):
        p = numpyro.sample("p", numpyro.distributions.Normal(0.0, 1.0).expand([2]).to_event(1))
        numpyro.factor("misfit", likelihood(p))

    sampler = MCMC(NUTS(posterior), num_warmup=500, num_samples=2000, progress_bar=False)
    sampler.run(jax.random.key(0), to_jax(misfit))
    check_draws(np.asarray(sampler.get_samples()["p"]))

    def written_in_jax(p):
        return -0.5 * jax.numpy.sum(((p[0] * X + jax.numpy.exp(p[1] * Y) - DATA) / 0.3) ** 2)

    potential = from_jax(lambda p: potential_energy(posterior, (written_in_jax,), {}, {"p": p}), 0.0)
    np.testing.assert_allclose(fnad.grad(potential)(AT), -fnad.grad(density)(AT), rtol=1e-12)
    fit = fnad.optim.minimize(potential, AT)
    np.testing.assert_allclose(fnad.grad(density)(fit.x), 0.0, atol=1e-4)
    return []


BRIDGES = {
    "torch": with_torch,
    "jax": with_jax,
    "pytensor": with_pytensor,
    "pymc": with_pymc,
    "numpyro": with_numpyro,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("libraries", nargs="*", metavar="LIBRARY", help="the bridges to run (default: all)")
    for library in parser.parse_args().libraries or BRIDGES:
        if importlib.util.find_spec(library) is None:
            print(f"{library} is not installed")
            continue
        for found in BRIDGES[library]():
            for part, right in zip(found, expected(), strict=True):
                np.testing.assert_allclose(part, right, rtol=1e-12)
        print(f"{library}: the derivatives agree")
