"""The cache on disk: entries that are whole or not there, whatever happens to the directory and to other processes."""

from __future__ import annotations

import errno
import gc
import grp
import io
import os
import pickle
import pwd
import random
import socket
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from pickletools import genops
from time import process_time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.integrate

import fnad
from fnad import disk
from fnad.backends import keys, tiers
from fnad.backends.cpu import codegen, executor, loader, saved, symbols
from fnad.backends.surroundings import surroundings
from fnad.cli import cache as cli_cache
from fnad.cli import main
from fnad.cli.usage import UsageError
from fnad.disk import FOLDERS, DiskCache, digest
from fnad.errors import CacheWarning
from fnad.ir.parser import parse_program
from fnad.ir.primitive import PRIMITIVES, register
from tests.kernel_text import compile_source

KEY = digest(b"a key")
PAYLOAD = bytes(range(256)) * 4


@pytest.fixture
def cache(tmp_path: Path) -> DiskCache:
    return DiskCache(tmp_path / "cache")


def files(cache: DiskCache) -> list[str]:
    return sorted(entry.path.name for entry in cache.entries())


def compiled(directory: Path, number: float = 3.0) -> float:
    """The number that a compiled kernel gives, with the cache in this directory."""
    source = f"def program(out):\n    out[0] = f64({number})\n"
    with fnad.config.override(disk_cache=str(directory)):
        call = compile_source(source, "program", [np.dtype("f8")]).call
    out = np.zeros(1)
    call(out)
    return float(out[0])


# ---- later processes -------------------------------------------------------------------------------------------------

PROGRAM = """
import sys
import numpy as np, scipy.special
import fnad
from fnad.backends import tiers
from fnad.backends.cpu import codegen
if sys.argv[1] == "again":  # nothing is compiled any more, nor made ready for that
    tiers.simplify = tiers.rolled = codegen.optimized = None
    fnad.config.set_default(executor="auto")
else:
    fnad.config.set_default(executor="compiled")

def f(x, m, n, s):
    y = np.tanh(m @ x) + np.exp(-scipy.special.gamma(x) ** 2) + np.linalg.solve(m, x)
    y = y + scipy.special.gamma(s).astype("f8") + np.linalg.inv(n)[0, 0] + np.abs(np.sin(x + 1j * y))
    return np.sum(y * np.linalg.cholesky(m @ m.T + np.eye(30))[0])

m = np.random.default_rng(0).standard_normal((30, 30)) + 30 * np.eye(30)
n = np.random.default_rng(1).standard_normal((50, 50)) + 50 * np.eye(50)
double, slopes = fnad.jit(lambda x: 2 * x + 1), fnad.jit(fnad.value_and_grad(f))
print(double(3.0))  # which calls nothing but Python
value, slope = slopes(np.linspace(1.0, 2.0, 30), m, n, np.linspace(1, 2, 30, dtype="f4"))
print(*[name in sys.modules for name in ("numba", "fnad.lower.fuse")], fnad.cache_info().compiled)
print(value.hex(), slope.tobytes().hex())
"""


def test_a_later_process_compiles_nothing_and_computes_the_same(tmp_path: Path) -> None:
    def run(which: str) -> str:
        environment = os.environ | {"FNAD_CACHE_DIR": str(tmp_path / "cache")}
        command = [sys.executable, "-c", PROGRAM, which]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    first, again = run("first").split(), run("again").split()
    assert first[:4] == ["7.0", "False", "True", "2"]
    assert again == ["7.0", "False", "False", *first[3:]]
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700


def test_what_code_depends_on_is_part_of_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = disk.at(str(tmp_path / "c"))
    for version in (b"one", b"two", b"two"):
        monkeypatch.setattr(loader, "fingerprint", lambda version=version: version)
        assert compiled(cache.directory) == 3
    assert compiled(cache.directory, 4.0) == 4
    assert len(files(cache)) == 3


def test_sources_that_changed_since_they_were_loaded_are_not_those_that_run(monkeypatch: pytest.MonkeyPatch) -> None:
    uncached = surroundings.__wrapped__
    assert uncached() == uncached()
    monkeypatch.setattr(fnad.version, "LOADED", 0)
    assert uncached() != uncached()


def test_sources_that_are_no_files_are_nobodys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "__file__", "/archive.zip/fnad/disk.py")
    assert surroundings.__wrapped__() != surroundings.__wrapped__()


def test_a_library_that_is_no_file_is_nobodys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", type(sys)("scipy"))
    assert surroundings.__wrapped__() != surroundings.__wrapped__()


def test_code_without_one_of_its_functions_is_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert compiled(tmp_path / "c") == 3
    made: list[object] = []
    optimized = codegen.optimized
    monkeypatch.setattr(codegen, "optimized", lambda module: made.append(module) or optimized(module))
    assert compiled(tmp_path / "c") == 3
    assert not made
    monkeypatch.setattr(loader, "available", lambda symbol: False)
    assert compiled(tmp_path / "c") == 3
    assert made


@pytest.mark.parametrize(
    "symbol", ["fnad_dnosuch", "linalg_nosuch_dd_loop", "linalg_inv_xx_data", "linalg_inv", "scipy_special_nosuch_d",
               "scipy_special_gamma_x", "scipy_special_nosuch_dd_loop", "scipy_special_gamma_ll_loop", "nosuch"]
)  # fmt: skip
def test_a_function_that_is_not_there(symbol: str) -> None:
    assert not symbols.available(symbol)


def descend(x: Any) -> Any:
    """Loops and branches that Python runs, since NumPy's functions are called in them; a loop of unknown length."""

    def body(carry: Any) -> Any:
        y, n = carry
        y = fnad.cond(n % 2 == 0, lambda y: np.sort(y) * 0.5, lambda y: np.fft.fft(y).real * 0.1, y)
        return y, n + 1

    y, n = fnad.while_loop(lambda carry: np.sum(carry[0] ** 2) > 0.1, body, (x, 0))
    rows = fnad.scan(lambda c, row: (c + np.fft.fft(row).real, np.sum(c * row)), y, np.stack([x, y, x + y]))[1]
    return np.sum(rows**2) + n


FUNCTIONS = {
    "arithmetic": (lambda x: np.exp(x) * 2.0, (np.arange(3.0),)),
    "steps in python": (fnad.value_and_grad(descend), (np.array([3.0, 1.0, 2.0, 5.0]),)),
    "an index": (lambda x, i: np.take(x, i) + np.sort(x), (np.arange(5.0), np.array(2))),
    "f32": (fnad.grad(lambda x: np.sum(np.tanh(x) @ x)), (np.ones((3, 3), "f4"),)),
    "a region": (fnad.grad(lambda a: scipy.integrate.quad(lambda t: np.sin(a * t), 0.0, a)[0]), (1.5,)),
    "nothing": (lambda x: x, (np.arange(3.0),)),
    "a factorization": (lambda a: np.linalg.svd(np.linalg.inv(a))[1], (np.eye(3) + np.ones((3, 3)),)),
    "complex": (lambda z: np.fft.fft(z) ** 2.5, (np.array([1.0 + 2.0j, 3.0, 1j]),)),
    "parallel loops": (lambda x: np.exp(np.sin(x)) @ np.cos(x), (np.linspace(0.0, 1.0, 10**6),)),
    "branches": (lambda x: x * 2 if x[0] > 0 else np.sort(x), (np.array([1.0, 0.5]),)),
}


def results(f: Any, arguments: tuple[Any, ...]) -> list[bytes]:
    """What a new function gives, to the bit."""
    fnad.clear_cache()
    with fnad.config.override(executor="compiled"):
        found = fnad.jit(lambda *args: f(*args))(*arguments)
    return [np.asarray(leaf).tobytes() for leaf in fnad.tree.leaves(found)]


def test_programs_are_the_same_when_they_are_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fnad.clear_cache()
    gc.collect()  # code that programs of earlier tests left in memory would not be written here
    with fnad.config.override(disk_cache=str(tmp_path / "c")):
        first = {name: results(*given) for name, given in FUNCTIONS.items()}
        monkeypatch.setattr(tiers, "simplify", None)
        assert {name: results(*given) for name, given in FUNCTIONS.items()} == first


def test_code_that_sizes_share_is_loaded_with_their_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def values() -> list[float]:
        fnad.clear_cache()
        with fnad.config.override(executor="compiled", disk_cache=str(tmp_path / "c")):
            f = fnad.jit(lambda x: np.sum(np.sin(x) * x[::-1]))
            return [float(f(np.arange(n) * 0.1)) for n in range(5, 11)]

    taken: list[Any] = []
    recipe_of = saved.recipe_of
    monkeypatch.setattr(saved, "recipe_of", lambda plan, codes: taken.extend(codes.values()) or recipe_of(plan, codes))
    first = values()
    assert len({key for key, numbers in taken if numbers}) == 1
    monkeypatch.setattr(tiers, "simplify", None)
    assert values() == first


def elsewhere() -> Any:
    def pick(x: Any, i: Any) -> Any:
        return x[i]  # elsewhere

    return pick


def test_parallel_loops_of_a_loaded_program_have_threads() -> None:
    program = fnad.make_program(lambda x: np.exp(np.sin(x)) * np.cos(x))(np.zeros(10**6)).program
    kernels = executor.plan(program).kernels.values()
    assert [executor.is_parallel(saved.outline(kernel)) for kernel in kernels] == [True]


def test_an_error_of_a_loaded_program_has_the_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def pick(x: Any, i: Any) -> Any:
        return x[i]

    def message(f: Any) -> str:
        fnad.clear_cache()
        with fnad.config.override(executor="compiled", disk_cache=str(tmp_path / "c")):
            compiled = fnad.jit(f)
            assert compiled(np.arange(3.0), np.array(1)) == 1
            with pytest.raises(fnad.errors.OutOfRangeError) as given:
                compiled(np.arange(3.0), np.array(7))
        return str(given.value)

    first = message(pick)
    monkeypatch.setattr(tiers, "simplify", None)
    assert message(pick) == first
    assert "return x[i]  # elsewhere" in message(elsewhere())


def test_donated_memory_is_part_of_what_is_kept(tmp_path: Path) -> None:
    with fnad.config.override(executor="compiled", disk_cache=str(tmp_path / "c")):
        for _ in range(2):
            for donated in ((), (0,)):
                fnad.clear_cache()
                x = np.arange(1000.0)
                y = fnad.jit(lambda x: x + 1.0, donate_argnums=donated)(x)
                assert (y is x or np.shares_memory(x, y)) == bool(donated)
                np.testing.assert_array_equal(y, np.arange(1000.0) + 1.0)


def test_the_code_of_a_loaded_program_is_shown(tmp_path: Path) -> None:
    def text() -> str:
        fnad.clear_cache()
        with fnad.config.override(executor="compiled", disk_cache=str(tmp_path / "c")):
            f = fnad.jit(lambda x: np.sin(x) * 2.0)
            f(np.arange(3.0))
            return f.lower(np.arange(3.0)).as_text("llvm")

    assert "sin" in text()
    assert text() == text()


def test_a_function_of_the_host_is_not_kept(tmp_path: Path) -> None:
    """It goes by a number, under which the next process has another one."""
    with fnad.config.override(executor="compiled", disk_cache=str(tmp_path / "c")):
        for number in (1.0, 2.0):
            fnad.clear_cache()
            called = fnad.callback(lambda x, number=number: x + number, np.float64(0.0), 1.0)
            program = fnad.make_program(lambda x, n=number: fnad.callback(lambda x: x + n, np.float64(0.0), x))(1.0)
            assert not all(map(keys.is_told, program.program.equations)), called


def test_a_primitive_of_the_users_own_is_not_kept() -> None:
    register(replace(PRIMITIVES["sin"], name="my_sine"))
    try:
        program = parse_program("f(a: f64[3]) -> f64[3] {\n  b: f64[3] = my_sine(a)\n  return b\n}")
    finally:
        del PRIMITIVES["my_sine"]
    assert keys.key_of(program, ()) is None


@pytest.mark.slow
def test_all_primitives_of_fnads_are_known() -> None:
    program = """
import pkgutil, importlib, fnad.control, fnad.ops
from fnad.ir.primitive import OWN, PRIMITIVES
listed = set(PRIMITIVES)
for package in (fnad.ops, fnad.control):
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
assert listed == set(PRIMITIVES) == OWN
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_program_of_which_something_is_missing_is_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = disk.at(str(tmp_path / "c"))
    made: list[int] = []
    simplify = tiers.simplify
    monkeypatch.setattr(tiers, "simplify", lambda program: made.append(1) or simplify(program))
    with fnad.config.override(disk_cache=str(cache.directory)):
        first = results(*FUNCTIONS["arithmetic"])
        assert results(*FUNCTIONS["arithmetic"]) == first
        assert len(made) == 1
        for entry in cache.entries():  # the recipe, then the code
            entry.path.unlink()
            assert results(*FUNCTIONS["arithmetic"]) == first
        assert len(made) == 3
        monkeypatch.setattr(saved, "fingerprint", lambda: b"another machine")
        assert results(*FUNCTIONS["arithmetic"]) == first
        assert len(made) == 4


class Made:
    """A pickle that makes an object by a call, or by the identifier of one that is not in the pickle."""

    def __init__(self, *call: Any, persistent: object = None) -> None:
        self.call, self.persistent = call, persistent

    def __reduce__(self) -> Any:
        return self.call


class Pickler(pickle.Pickler):
    def persistent_id(self, obj: Any) -> object:
        return getattr(obj, "persistent", None)


def pickled(value: object) -> bytes:
    file = io.BytesIO()
    Pickler(file, protocol=5).dump(value)
    return file.getvalue()


RECIPES = {
    "a function of the system": pickled(os.getcwd),
    "nothing": b"",
    "no pickle": b"nonsense",
    "a cut": pickled([1] * 100)[:-1],
    "no recipe": pickled(3),
    "a record with other fields": pickled(Made(saved.Slot, (1,))),
    "a recipe with other parts": pickled(Made(saved.Recipe, (saved.fingerprint(), *"3" * 10))),
    "no program": pickled(Made(persistent=("program", "nonsense"))),
    "no primitive": pickled(Made(persistent=("primitive", "nonsense"))),
    "no error": pickled(Made(persistent=("error", "annotations"))),
    "no kind": pickled(Made(persistent=("kind", 3))),
    "no pair": pickled(Made(persistent=3)),
    "elements without a dtype": pickled(Made(persistent=("array", ("f64", b"123")))),
    "a far place": b"\x80\x05Nr\xff\xff\xff\x0f.",
    "a far place in text": b"\x80\x05Np268435455\n.",
    "many brackets": pickled(Made(persistent=("program", "f() -> { a: f64[] = sin(1.0:f64) {" * 9999))),
}


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_that_fnad_did_not_write_is_damage(tmp_path: Path, name: str) -> None:
    cache = disk.at(str(tmp_path / "c"))
    with fnad.config.override(disk_cache=str(cache.directory)):
        cache.write(KEY, RECIPES[name])
        start = process_time()
        with pytest.warns(CacheWarning, match="damaged, or of another format"):
            assert executor.kept(KEY) is None
        assert process_time() - start < 2
        assert files(cache) == []


LARGE = {
    "a place": b"r\xff\xff\xff\x0f",
    "an integer": b"J\xff\xff\xff\x7f",
    "bytes": b"\x8e\xff\xff\xff\xff\xff\x0f\0\0",
    "a text": b"\x8d\xff\xff\xff\xff\xff\x0f\0\0",
    "an array": b"\x96\xff\xff\xff\xff\xff\x0f\0\0",
    "a frame": b"\x95\xff\xff\xff\xff\xff\x0f\0\0",
    "digits": b"\x8b\xff\xff\xff\x7f",
    "many digits": b"L" + b"9" * 100_000 + b"L\n",
}
"""Operations of a pickle that have a large number."""


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.filterwarnings("ignore::fnad.errors.CacheWarning")
def test_a_recipe_with_a_large_number_is_read_in_little_time(tmp_path: Path, name: str) -> None:
    cache = disk.at(str(tmp_path / "c"))
    with fnad.config.override(disk_cache=str(cache.directory)):
        results(*FUNCTIONS["arithmetic"])
        contents = [entry.path.read_bytes().partition(b"\n")[2] for entry in cache.entries()]
        (recipe,) = [content for content in contents if content.startswith(b"\x80\x05")]
        for _, _, place in [*genops(recipe)][::9]:
            assert place is not None
            for rest in (recipe[place:], recipe[place + 1 :]):
                cache.write(KEY, recipe[:place] + LARGE[name] + rest)
                start = process_time()
                executor.kept(KEY)
                assert process_time() - start < 1


def test_object_code_whose_symbols_are_no_text_is_damage(tmp_path: Path) -> None:
    cache = disk.at(str(tmp_path / "c"))
    with fnad.config.override(disk_cache=str(cache.directory)):
        cache.write(KEY, b"\xff\n")
        with pytest.warns(CacheWarning, match="damaged, or of another format"):
            assert loader.kept(KEY) is None


# ---- damage ----------------------------------------------------------------------------------------------------------


def test_an_entry_is_found_again(cache: DiskCache) -> None:
    assert cache.read(KEY) is None
    assert not cache.directory.exists()
    cache.write(KEY, PAYLOAD)
    assert cache.read(KEY) == PAYLOAD
    assert cache.read(digest(b"another key")) is None


@pytest.mark.parametrize("place", [0, 20, 90, 200, -1])
def test_an_entry_with_a_changed_bit_is_removed(cache: DiskCache, place: int) -> None:
    cache.write(KEY, PAYLOAD)
    (entry,) = cache.entries()
    content = bytearray(entry.path.read_bytes())
    content[place] ^= 1
    entry.path.write_bytes(content)
    assert disk.is_damaged(entry)
    with pytest.warns(CacheWarning, match="is damaged, or of another format: it is removed, and made again") as given:
        assert cache.read(KEY) is None
    assert files(cache) == []
    assert [warning.filename for warning in given] == [__file__]


def test_entries_that_were_cut_short_are_removed_with_one_warning(cache: DiskCache) -> None:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for length in (0, 5, 100, 300, -1):
            cache.write(KEY, PAYLOAD)
            (entry,) = cache.entries()
            entry.path.write_bytes(entry.path.read_bytes()[:length])
            assert cache.read(KEY) is None
            assert files(cache) == []
    assert [warning.category for warning in warned] == [CacheWarning]


def test_an_entry_under_another_name_is_none(cache: DiskCache) -> None:
    cache.write(KEY, PAYLOAD)
    (entry,) = cache.entries()
    other = KEY[:2] + digest(b"another")[2:]
    entry.path.rename(entry.path.with_name(other[2:]))
    with pytest.warns(CacheWarning, match="of another format"):
        assert cache.read(other) is None
    assert files(cache) == []


def test_an_entry_of_another_format_is_none(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(disk, "MAGIC", b"fnad-cache-0")
        cache.write(KEY, PAYLOAD)
    with pytest.warns(CacheWarning, match="of another format"):
        assert cache.read(KEY) is None


# ---- directories that cannot be used ---------------------------------------------------------------------------------


def link(path: Path) -> None:
    (path.parent / "elsewhere").mkdir(mode=0o700)
    path.symlink_to(path.parent / "elsewhere")


def shared(path: Path) -> None:
    path.mkdir()
    path.chmod(0o770)


def foreign(path: Path) -> None:
    path.mkdir(mode=0o700)
    if os.geteuid() != 0:
        pytest.skip("only root can give a directory away")
    os.chown(path, 12345, 12345)


REFUSED = {
    "is a link, not a directory": link,
    "is a file, not a directory": Path.touch,
    "can be written to by other users": shared,
    "belongs to another user": foreign,
}


@pytest.mark.parametrize("why", REFUSED)
def test_a_directory_that_is_refused(tmp_path: Path, why: str) -> None:
    REFUSED[why](tmp_path / "c")
    with pytest.warns(CacheWarning) as given:
        assert [compiled(tmp_path / "c", number) for number in (3.0, 4.0, 3.0)] == [3, 4, 3]
    assert len(given) == 1
    assert str(given[0].message) == (
        f"native code is not kept on disk: {tmp_path / 'c'} {why}\n"
        "  name another one by FNAD_CACHE_DIR, or none: fnad.config.set_default(disk_cache=False)"
    )
    with fnad.config.override(disk_cache=str(tmp_path / "c")):
        assert main(["cache", "clear"]) == 2
    assert why == "is a file, not a directory" or not any((tmp_path / "c").iterdir())


def of_all(path: Path) -> None:
    path.chmod(0o777)


def of_another(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a directory away")
    os.chown(path, 12345, 12345)


@pytest.mark.parametrize(
    ("change", "why"), [(of_all, "can be written to by other users"), (of_another, "belongs to another user")]
)
@pytest.mark.parametrize("way", ["foreign/c", "foreign/a/b/c", "foreign/link/c", "own/link/c"])
def test_a_directory_that_others_could_exchange(
    tmp_path: Path, change: Callable[[Path], None], why: str, way: str
) -> None:
    """By writing to one above it, or to one on the way of a link to it."""
    foreign, own = tmp_path / "foreign", tmp_path / "own"
    foreign.mkdir()
    (own / "target").mkdir(parents=True)
    (foreign / "link").symlink_to(own / "target")
    (own / "link").symlink_to("../foreign/link")
    change(foreign)
    for is_there in (False, True):
        cache = DiskCache(tmp_path / way)
        cache.directory.mkdir(parents=True, exist_ok=True) if is_there else None
        with pytest.warns(CacheWarning, match=f"/foreign, above {cache.directory}, {why}"):
            cache.write(KEY, PAYLOAD)
        assert cache.read(KEY) is None
        assert not is_there or not any(cache.directory.iterdir())
        assert is_there or not any((tmp_path / place).exists() for place in ("foreign/a", "foreign/c", "own/target/c"))


def test_a_directory_that_others_cannot_exchange(tmp_path: Path) -> None:
    """One that all may write to has the sticky bit, as that of temporary files has; links go to one of the user's."""
    common = tmp_path / "common"
    common.mkdir()
    common.chmod(0o1777)
    (tmp_path / "link").symlink_to("common")
    cache = DiskCache(tmp_path / "link" / "a" / "b" / "c")
    cache.write(KEY, PAYLOAD)
    assert cache.read(KEY) == PAYLOAD
    assert [place.stat().st_mode & 0o777 for place in list(cache.directory.parents)[:2]] == [0o700, 0o700]


def test_a_group_of_the_users_alone_may_write_above(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some systems make such a group for each user, and new directories writable by it."""
    (tmp_path / "above").mkdir()
    (tmp_path / "above").chmod(0o770)
    cache = DiskCache(tmp_path / "above" / "c")
    group = SimpleNamespace(gr_gid=7, gr_name="me", gr_mem=["me"])
    monkeypatch.setattr(grp, "getgrgid", lambda number: group)
    monkeypatch.setattr(pwd, "getpwuid", lambda number: SimpleNamespace(pw_gid=7, pw_name="me"))
    cache.write(KEY, PAYLOAD)
    assert cache.read(KEY) == PAYLOAD
    for other in ({"gr_name": "staff"}, {"gr_gid": 8}, {"gr_mem": ["me", "you"]}):
        vars(group).update({"gr_gid": 7, "gr_name": "me", "gr_mem": ["me"]} | other)
        assert "above can be written to by other users" in (cache.refusal or "").replace(
            f", above {cache.directory},", ""
        )


def test_a_directory_that_is_exchanged_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was checked is what is read: the entries of a directory that anybody may write to are never."""
    ours, theirs = DiskCache(tmp_path / "c"), DiskCache(tmp_path / "theirs")
    ours.write(KEY, b"ours")
    theirs.write(KEY, b"theirs")
    theirs.directory.chmod(0o777)
    fstat, draw = os.fstat, random.Random(0)

    def exchanged(descriptor: int) -> os.stat_result:
        """Exchange the directories at some looks at one that is open."""
        status = fstat(descriptor)
        if draw.random() < 0.5:
            return status
        (tmp_path / "c").rename(tmp_path / "other")
        (tmp_path / "theirs").rename(tmp_path / "c")
        (tmp_path / "other").rename(tmp_path / "theirs")
        return status

    monkeypatch.setattr(os, "fstat", exchanged)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CacheWarning)
        found = [ours.read(KEY) for _ in range(20)]
    assert set(found) == {b"ours", None}


def replaced(entry: Path, make: Callable[[Path], object]) -> None:
    entry.unlink()
    make(entry)


def bound(entry: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(entry.name)  # a path may be too long


def of_others(entry: Path) -> None:
    entry.chmod(0o666)


NO_ENTRIES: dict[str, Callable[[Path], None]] = {
    "a pipe": lambda entry: replaced(entry, os.mkfifo),
    "a link to a device without an end": lambda entry: replaced(entry, lambda path: path.symlink_to("/dev/zero")),
    "a link to another entry": lambda entry: replaced(entry, lambda path: path.symlink_to(path.with_name("other"))),
    "a directory": lambda entry: replaced(entry, Path.mkdir),
    "a socket": lambda entry: replaced(entry, bound),
    "a file that others can write to": of_others,
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", NO_ENTRIES)
def test_what_is_no_file_of_the_users_is_damage(cache: DiskCache, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    cache.write(KEY, PAYLOAD)
    (entry,) = cache.entries()
    monkeypatch.chdir(entry.path.parent)
    entry.path.with_name("other").write_bytes(entry.path.read_bytes())
    NO_ENTRIES[kind](entry.path)
    assert disk.made(entry) is None or kind == "a file that others can write to"
    assert disk.is_damaged(entry)
    with pytest.warns(CacheWarning, match="damaged, or of another format"):
        assert cache.read(KEY) is None
    assert not entry.path.exists() or kind == "a directory"


def test_an_entry_larger_than_its_limit_is_not_read(cache: DiskCache) -> None:
    cache.write(KEY, PAYLOAD)
    (entry,) = cache.entries()
    os.truncate(entry.path, 2**40)
    assert cache.read(KEY) is None
    cache.write(KEY, PAYLOAD)
    assert cache.read(KEY) == PAYLOAD


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT])
@pytest.mark.parametrize("place", ["urandom", "replace", "mkdir"])
def test_a_directory_that_cannot_be_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, place: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    kept = disk.at(str(tmp_path / "c"))
    kept.write(KEY, PAYLOAD)
    monkeypatch.setattr(os, place, fail)
    with pytest.warns(CacheWarning, match=f"cannot be written to: {os.strerror(number)}") as given:
        assert [compiled(tmp_path / "c", value) for value in (3.0, 4.0)] == [3, 4]
    monkeypatch.undo()
    assert len(given) == 1
    assert kept.read(KEY) == PAYLOAD
    assert files(kept) == [KEY[2:]]


def test_a_folder_that_cannot_be_read(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "folder")

    cache.write(KEY, PAYLOAD)
    for owner, name in ((Path, "stat"), (os, "stat"), (Path, "iterdir"), (os, "listdir")):
        monkeypatch.setattr(owner, name, fail)
    assert not cache.has(KEY)
    assert cache.is_empty
    with (
        fnad.config.override(disk_cache=str(cache.directory)),
        pytest.raises(UsageError, match=f"{cache.directory} cannot be read"),
    ):
        cli_cache.check()


def test_an_entry_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    assert compiled(tmp_path / "c") == 3
    monkeypatch.setattr(os, "open", fail)
    with pytest.warns(CacheWarning, match="cannot be read: Permission denied"):
        assert compiled(tmp_path / "c") == 3


def test_without_a_home_the_cache_has_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FNAD_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    disk.at.cache_clear()
    found = disk.current()
    disk.at.cache_clear()
    assert found is not None
    with pytest.warns(CacheWarning, match="there is no home directory for ~/.cache/fnad"):
        found.write(KEY, PAYLOAD)
    assert found.read(KEY) is None
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"FNAD_CACHE_DIR": "/a/b"}, "/a/b"),
        ({"FNAD_CACHE_DIR": ""}, None),
        ({"XDG_CACHE_HOME": "/x"}, "/x/fnad"),
        ({"XDG_CACHE_HOME": "x", "HOME": "/h"}, "/h/.cache/fnad"),
        ({"HOME": "/h"}, "/h/.cache/fnad"),
    ],
)
def test_variables_of_the_environment_choose_the_directory(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: str | None
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("FNAD_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    disk.at.cache_clear()
    found = disk.current()
    assert (found and str(found.directory)) == expected
    with fnad.config.override(disk_cache=False):
        assert disk.current() is None


# ---- other processes -------------------------------------------------------------------------------------------------

CROWD = """
import os, sys
from pathlib import Path
from fnad import config, disk
cache = disk.DiskCache(Path(sys.argv[1]))
keys = ["00" + disk.digest(bytes([n]))[2:] for n in range(8)]
config.set_default(disk_cache_bytes=disk.FOLDERS * 40_000)  # room for some of the entries

def work(number):
    for turn in range(40):
        n = (number + turn) % 8
        found = cache.read(keys[n])
        assert found is None or found == bytes([n]) * 9_000, len(found)
        cache.write(keys[n], bytes([n]) * 9_000)

def child(number):
    try:
        work(number)
    except BaseException as error:
        print(repr(error), flush=True)
        os._exit(1)
    os._exit(0)

children = [os.fork() or child(number) for number in range(16)]
assert not any(os.waitpid(pid, 0)[1] for pid in children)
print(sum(entry.nbytes for entry in cache.entries()), [e.path.name for e in cache.entries() if not e.is_whole])
"""


@pytest.mark.slow
def test_sixteen_processes_at_once(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", CROWD, str(tmp_path / "c")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    size, unfinished = done.stdout.split(maxsplit=1)
    assert 0 < int(size) <= 40_000
    assert unfinished.strip() == "[]"


KILLED = """
import io, os, signal, sys
from pathlib import Path
from fnad import disk
os.replace = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
disk.DiskCache(Path(sys.argv[1])).write(sys.argv[2], bytes(5000))
"""


def test_a_process_that_is_killed_while_it_writes(cache: DiskCache) -> None:
    command = [sys.executable, "-c", KILLED, str(cache.directory), KEY]
    assert subprocess.run(command, capture_output=True, check=False).returncode == -9
    (left,) = cache.entries()
    assert not left.is_whole
    assert cache.read(KEY) is None
    cache.write(KEY, PAYLOAD)
    assert cache.read(KEY) == PAYLOAD
    assert len(files(cache)) == 2  # it could be about to be written by another process
    os.utime(left.path, (0, 0))
    cache.write(KEY, PAYLOAD)
    assert files(cache) == [KEY[2:]]


@pytest.mark.parametrize("place", ["replace", "mkdir"])
def test_an_interrupted_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, place, interrupt)
        with pytest.raises(KeyboardInterrupt):
            compiled(tmp_path / "c")
    assert files(disk.at(str(tmp_path / "c"))) == []
    assert compiled(tmp_path / "c") == 3
    assert len(files(disk.at(str(tmp_path / "c")))) == 1


def test_an_interrupted_compilation_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(module: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(codegen, "optimized", interrupt)
        with pytest.raises(KeyboardInterrupt):
            compiled(tmp_path / "c")
    assert files(disk.at(str(tmp_path / "c"))) == []
    assert compiled(tmp_path / "c") == 3


# ---- room ------------------------------------------------------------------------------------------------------------


def test_what_was_used_least_recently_makes_room(cache: DiskCache) -> None:
    keys = ["00" + digest(bytes([n]))[2:] for n in range(6)]
    with fnad.config.override(disk_cache_bytes=FOLDERS * 5_000):
        for n, key in enumerate(keys[:4]):
            cache.write(key, bytes(1_000))
            os.utime(cache.directory / key[:2] / key[2:], (n, n))
        assert cache.read(keys[0]) is not None
        cache.write(keys[4], bytes(1_000))
        cache.write(keys[5], bytes(10_000))
    assert [key for key in keys if cache.read(key) is not None] == [keys[0], *keys[2:5]]


def test_a_limit_of_nothing(cache: DiskCache) -> None:
    with fnad.config.override(disk_cache_bytes=0):
        cache.write(KEY, PAYLOAD)
    assert files(cache) == []


# ---- the command -----------------------------------------------------------------------------------------------------


def test_the_cache_command_lists_and_clears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*arguments: str, status: int = 0) -> str:
        assert main(["cache", *arguments]) == status
        return capsys.readouterr().out.strip()

    assert run() == "off: native code is kept in memory alone"
    assert main(["cache", "clear"]) == 2
    assert capsys.readouterr().err == "fnad: there is no cache: FNAD_CACHE_DIR is empty\n"
    monkeypatch.setenv("FNAD_CACHE_DIR", str(tmp_path / "c"))
    assert run("clear") == "0 entries removed, 0.0 MB"
    cache = disk.at(str(tmp_path / "c"))
    for n in range(5):
        monkeypatch.setattr(disk, "__version__", f"1.{n % 2}")
        cache.write(digest(bytes([n])), bytes(100_000))
    first, second, *_ = cache.entries()
    os.utime(first.path, (2**31, 2**31))
    assert dict(line.split(maxsplit=1) for line in run("show").splitlines()[:3]) == {
        "directory": str(tmp_path / "c"),
        "entries": "5, 1 of them used again later",
        "size": "0.5 MB of at most 536.9 MB",
    }
    assert [line.split(maxsplit=2)[2] for line in run("show").splitlines()[3:]] == ["fnad 1.0: 3", "fnad 1.1: 2"]
    assert run("check") == "5 entries are right, 0 were damaged and are removed"
    second.path.write_bytes(b"nonsense")
    assert "damaged: 1" in run("show")
    assert run("check", status=1) == "4 entries are right, 1 were damaged and are removed"
    assert run("check") == "4 entries are right, 0 were damaged and are removed"
    assert run("clear") == "4 entries removed, 0.4 MB"
    assert files(cache) == []


def test_nothing_is_written_without_a_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compile_source("def program(out):\n    out[0] = f64(1.0)\n", "program", [np.dtype("f8")])
    assert list(tmp_path.iterdir()) == []
