"""Arrays in the memory of a device: where they may be given, and where results are."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fnad
from fnad.errors import ArgumentTypeError, DeviceError, DtypeError, PlacementError, SettingError
from tests.gpu import Distant, OtherLibrarys, Simulated, simulated

X = np.linspace(0.5, 2.0, 6)


def loss(w: Any, x: Any) -> Any:
    return np.sum(np.tanh(x * w["a"]) + w["b"]) ** 2


W = {"a": X, "b": np.float64(0.25)}


@pytest.fixture
def device() -> Iterator[Simulated]:
    """A device on which programs are interpreted, so that the test is of what is around them."""
    with simulated() as device, fnad.config.override(device="cuda", executor="interpreter"):
        yield device


def host(tree: Any) -> Any:
    for leaf in fnad.tree.leaves(tree):
        assert isinstance(leaf, Distant)
    return fnad.to_host(tree)


# ---- there and back ------------------------------------------------------------------------------------------------


def test_arrays_there_and_back(device: Simulated) -> None:
    placed = fnad.to_device({"w": X, "n": 3, "s": np.float32(2.0)})
    assert isinstance(placed["w"], Distant)
    assert isinstance(placed["s"], Distant)
    assert placed["n"] == 3
    assert fnad.to_device(placed)["w"] is placed["w"]
    back = fnad.to_host(placed)
    assert_array_equal(back["w"], X)
    assert type(back["s"]) is np.float32
    assert fnad.to_host(X) is X


def test_another_librarys_array_is_not_copied(device: Simulated) -> None:
    theirs = OtherLibrarys(X.copy())
    assert fnad.to_device(theirs).memory.base is theirs.memory


def test_block_until_ready_waits_where_there_is_something_to_wait_for(device: Simulated) -> None:
    fnad.block_until_ready((X, 1.0))
    assert "synchronize" not in device.calls
    fnad.block_until_ready(fnad.to_device([X]))
    assert device.calls[-1] == "synchronize"


# ---- transforms ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [fnad.to_device, lambda tree: tree, lambda tree: fnad.tree.map(other, tree)])
def test_transforms_take_arrays_wherever_they_are(device: Simulated, place: Any) -> None:
    w, x = place(W), place(X)
    with fnad.device("cpu"):
        value, gradient = fnad.value_and_grad(loss)(W, X)
        rows = fnad.vmap(fnad.grad(loss), in_axes=(None, 0))(W, np.stack([X, 2 * X]))
    for f in (fnad.value_and_grad(loss), fnad.jit(fnad.value_and_grad(loss))):
        for _ in range(3):
            found = host(f(w, x))
            assert_allclose(found[0], value)
            assert_allclose(found[1]["a"], gradient["a"])
            assert_allclose(found[1]["b"], gradient["b"])
    assert_allclose(host(fnad.vmap(fnad.grad(loss), in_axes=(None, 0))(w, place(np.stack([X, 2 * X]))))["a"], rows["a"])
    out, pull = fnad.vjp(loss, w, x)
    assert_allclose(host(pull(out))[0]["a"], value * gradient["a"])
    assert_allclose(host(fnad.jvp(lambda x: loss(w, x), (x,), (x,)))[0], value)


def other(value: Any) -> Any:
    return OtherLibrarys(np.array(value))


def test_an_array_of_the_device_from_outside_is_read_at_each_call(device: Simulated) -> None:
    table = fnad.to_device(X)
    f = fnad.jit(lambda x: x * table)
    assert_array_equal(host(f(X)), X * X)
    table.memory[:] = 2.0
    with fnad.config.override(executor="interpreter"):
        assert_array_equal(host(f(X)), 2 * X)
    assert_array_equal(host(fnad.grad(lambda x: np.sum(x * table))(X)), np.full(6, 2.0))


def test_python_decides_by_values_on_the_device(device: Simulated) -> None:
    f = fnad.jit(lambda x: x * 2 if x[0] > 1 else x * 3)
    for first in (0.5, 2.0, 0.5, 2.0):
        x = np.full(3, first)
        assert_array_equal(host(f(fnad.to_device(x))), x * (2 if first > 1 else 3))


def test_nans_are_followed_to_where_they_arise(device: Simulated) -> None:
    with fnad.debug_nans(), pytest.raises(fnad.errors.NonFiniteError, match="div"):
        fnad.grad(lambda x: np.sum(np.sqrt(x)))(fnad.to_device(np.array([4.0, 0.0])))


# ---- where they may not be -----------------------------------------------------------------------------------------


def test_an_array_of_the_device_where_programs_run_on_the_cpu(device: Simulated) -> None:
    w = {"a": X, "b": fnad.to_device(X)}
    for call in (fnad.grad(lambda w: np.sum(w["a"] + w["b"])), fnad.jit(lambda w: w["b"])):
        with fnad.device("cpu"), pytest.raises(PlacementError, match=r"^w\['b'\] is in the memory of a GPU"):
            call(w)
    with fnad.device("cpu"), pytest.raises(PlacementError, match="an array is in the memory of a GPU"):
        fnad.grad(lambda x: np.sum(x * w["b"]))(X)
    assert_array_equal(host(fnad.jit(lambda w: w["a"] + w["b"])(w)), 2 * X)


def test_an_array_of_another_device(device: Simulated) -> None:
    with pytest.raises(PlacementError, match=r"^x is in the memory of cuda:1, and programs run on cuda:0"):
        fnad.jit(lambda x: np.sin(x) + 1)(Distant(X, 1))


def test_dtypes_that_fnad_does_not_have(device: Simulated) -> None:
    with pytest.raises(DtypeError, match=r"^a has dtype float16"):
        fnad.grad(np.sum)(Distant(X.astype(np.float16)))
    with pytest.raises(ArgumentTypeError):
        fnad.grad(np.sum)(object())


def test_only_numbers_are_copied_in_the_order_of_bytes_of_the_machine(device: Simulated) -> None:
    assert fnad.to_device(np.arange(3, dtype=">i4")).dtype == np.dtype("i4")
    assert_array_equal(fnad.to_host(fnad.to_device({"x": np.arange(3, dtype=">f8")})["x"]), np.arange(3.0))
    for array in (np.array([None]), np.array(["a"]), np.zeros(2, "i4,f4"), np.zeros(2, np.longdouble)):
        with pytest.raises(DtypeError, match=r"cannot be in the memory of a GPU\n.*leave it out"):
            fnad.to_device([array])


def test_an_array_of_memory_that_has_no_number_is_no_leaf() -> None:
    class Meta:
        def __dlpack_device__(self) -> Any:
            raise ValueError("Unknown device type meta for Dlpack")

    with pytest.raises(ArgumentTypeError, match="Meta, not an array or a number"):
        fnad.grad(np.sum)(Meta())


def test_devices_there_are_not() -> None:
    for ask in (fnad.device, lambda name: fnad.jit(np.sin, device=name)):
        with pytest.raises(SettingError, match="device is 'tpu'"):
            ask("tpu")


@pytest.mark.skipif("cupy" in sys.modules, reason="there may be a GPU")
def test_without_its_packages_a_device_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    f = fnad.jit(np.sin, device="cuda")
    for _ in range(2):
        for ask in (fnad.to_device, f, lambda x: f.lower(x).compile()):
            with pytest.raises(DeviceError, match=r"CUDA needs CuPy.*\n.*pip install 'fnad\[cuda\]'"):
                ask(X)
    with fnad.device("cuda"), pytest.raises(DeviceError):
        fnad.grad(lambda x: np.sum(x))(X)
    assert_allclose(fnad.jit(np.sin)(X), np.sin(X))


def test_nothing_of_cuda_is_imported_before_it_is_asked_for() -> None:
    code = "import fnad, sys; fnad.jit(abs, device='cuda'); print([m for m in sys.modules if 'cu' in m.split('.')[-1]])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not any(name in found for name in ("cuda", "cupy"))


def test_settings_hold_in_a_block_or_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    @fnad.device("cuda")
    def settings(times: int) -> list[str]:
        return [fnad.config.current().device, *(settings(times - 1) if times else [])]

    with fnad.device("cuda") as first, fnad.config.override(executor="compiled") as inner:
        assert (inner.device, inner.executor) == ("cuda", "compiled")
        with fnad.device("cpu"):
            assert settings(2) == ["cuda"] * 3
            assert fnad.config.current().device == "cpu"
        assert fnad.config.current() is inner
    with fnad.device("cuda") as again:
        assert again is first
    monkeypatch.setattr(fnad.config, "_default", fnad.config.Settings(cache_entries=3))
    with fnad.device("cuda") as other:
        assert other.cache_entries == 3
