"""Names of other libraries get an error with fnad's word, wherever they are looked for."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import fnad
from fnad import errors
from fnad.words import WORDS
from tests.together import together

ROOT = Path(__file__).parents[1]
X = np.ones((2, 3))
NAMES = [key for key in WORDS if key.startswith("fnad.")]
ATTRIBUTES = [key.removeprefix("x.") for key in WORDS if key.startswith("x.")]
KEYWORDS = [key for key in WORDS if key.endswith("=")]
CALLS = [key.removesuffix("()") for key in WORDS if key.endswith("()")]


def resolved(name: str) -> Any:
    """What a dotted name stands for."""
    found: Any = {"fnad": fnad, "np": np}[name.partition(".")[0]]
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    return found


def test_the_table_has_names_attributes_and_keywords() -> None:
    assert len(NAMES) + len(ATTRIBUTES) + len(KEYWORDS) + len(CALLS) == len(WORDS)


def test_each_word_is_there() -> None:
    with together() as check:
        for key, word in WORDS.items():
            for name in re.findall(r"\b(?:fnad|np)(?:\.[A-Za-z]\w*)+", word):
                with check(f"{key}: {name}"):
                    resolved(name)
            for page in re.findall(r"(?:docs/)?\w+\.md", word):
                with check(f"{key}: {page}"):
                    assert (ROOT / page).exists()


def test_each_keyword_of_fnads_that_a_word_names_is_there() -> None:
    with together() as check:
        for key, word in WORDS.items():
            for call, keyword in re.findall(r"(fnad(?:\.\w+)+)\([^)]*?\b(\w+)=[^=]", word):
                with check(f"{key}: {call}({keyword}=)"):
                    settings = fnad.config.Settings.__slots__ if call.startswith("fnad.config.") else ()
                    assert keyword in (*inspect.signature(resolved(call)).parameters, *settings)


def test_names_of_modules() -> None:
    with together() as check:
        for key in NAMES:
            module, _, name = key.rpartition(".")
            with check(key):
                with pytest.raises(
                    errors.MissingAttributeError, match=f"^module {module!r} has no attribute {name!r}\n"
                ):
                    getattr(resolved(module), name)
                assert not hasattr(resolved(module), name)


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("einsum", "write np.einsum"),
        ("ndarray", "write np.ndarray"),
        ("float32", "write np.float32"),
        ("tree_flatten", "write fnad.tree.flatten"),
    ],
)
def test_names_of_numpy_and_of_trees_are_where_they_are(name: str, word: str) -> None:
    with pytest.raises(errors.MissingAttributeError, match=f"no attribute '{name}'\n.*\n  {re.escape(word)}$"):
        getattr(fnad, name)


@pytest.mark.parametrize("module", [fnad, fnad.config, fnad.nn, fnad.optim, fnad.random, fnad.tree])
def test_a_name_that_nobody_has(module: Any) -> None:
    with pytest.raises(AttributeError, match=f"^module '{module.__name__}' has no attribute 'nonsense'$"):
        module.nonsense  # noqa: B018


MISSPELT = {
    "fnad.gard": "fnad.grad",
    "fnad.jti": "fnad.jit",
    "fnad.value_and_gard": "fnad.value_and_grad",
    "fnad.hesian": "fnad.hessian",
    "fnad.optim.adamm": "fnad.optim.adam",
    "fnad.optim.apply_update": "fnad.optim.apply_updates",
    "fnad.nn.max_pooling": "fnad.nn.max_pool",
    "fnad.random.normale": "fnad.random.normal",
    "fnad.tree.flaten": "fnad.tree.flatten",
    "fnad.config.overide": "fnad.config.override",
    "x.summ": "x.sum",
    "x.reshap": "x.reshape",
    "x.trnspose": "x.transpose",
}


@pytest.mark.parametrize("name", MISSPELT)
def test_misspelt_names_get_the_right_one_offered(name: str) -> None:
    with pytest.raises(errors.MissingAttributeError, match=f"\n  did you mean {re.escape(MISSPELT[name])}\\?$"):
        fnad.grad(lambda x: np.sum(eval(f"{name}", {"fnad": fnad, "x": x})))(X)
    parent, _, last = name.rpartition(".")
    if parent != "x":
        assert not hasattr(resolved(parent), last)


def test_misspelt_keywords_get_the_right_one_offered() -> None:
    for call, meant in (
        (lambda: fnad.grad(np.sum, argnum_s=0), "argnums="),
        (lambda: fnad.optim.adam(0.1, b_1=0.9), "b1="),
        (lambda: fnad.jit(np.sum, donate_argnum=0), "donate_argnums="),
    ):
        with pytest.raises(errors.UnknownKeywordError, match=f"\n  did you mean {meant}\\?$"):
            cast("Any", call)()


CALLED = {
    "size": lambda x: np.sum(x.size()),
    "shape": lambda x: np.sum(x.shape()),
    "ndim": lambda x: np.sum(x.ndim()),
    "T": lambda x: np.sum(x.T()),
}


@pytest.mark.parametrize("name", CALLS)
def test_attributes_that_are_called(name: str) -> None:
    with pytest.raises(errors.ArgumentTypeError, match=rf"not callable\n.*\n  {re.escape(WORDS[f'{name}()'])}$"):
        fnad.grad(CALLED[name])(X)


def test_attributes_of_traced_values() -> None:
    asked: list[str] = []

    def ask(x: Any) -> Any:
        for name in ATTRIBUTES:
            word = re.escape(WORDS[f"x.{name}"])
            with pytest.raises(errors.MissingAttributeError, match=f"a traced value has no '{name}'\n.*\n  {word}$"):
                getattr(x, name)
            assert not hasattr(x, name)
            assert not hasattr(X, name)
            asked.append(name)
        return np.sum(x)

    fnad.grad(ask)(X)
    assert asked == ATTRIBUTES


@pytest.mark.parametrize(("name", "word"), [("requires_grad", WORDS["x.requires_grad"]), ("mine", "keep it in a var")])
def test_attributes_that_are_set(name: str, word: str) -> None:
    with pytest.raises(errors.MissingAttributeError, match=f"takes no attribute '{name}'\n.*\n  {re.escape(word)}"):
        fnad.grad(lambda x: setattr(x, name, True) or np.sum(x))(X)


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda x: np.sum(x, dim=0), "write axis="),
        (lambda x: x.sum(dim=0), "write axis="),
        (lambda x: x.max(0, keepdim=True), "write keepdims="),
        (lambda x: np.std(x, unbiased=True), "write ddof=1 for unbiased=True"),
        (lambda x: np.concatenate([x, x], dim=0), "write axis="),
        (lambda x: np.zeros(3, requires_grad=True) + x, "leave it out: fnad.grad"),
        (lambda x: np.add(x, x, dim=0), "write axis="),
        (lambda x: fnad.nn.softmax(x, dim=0), "write axis="),
    ],
)
def test_keywords_of_functions_of_traced_values(call: Callable[[Any], Any], word: str) -> None:
    with pytest.raises(TypeError, match=rf"\n  at test_words.py.*\n  {word}"):
        fnad.jit(call)(X)


def test_a_keyword_of_a_function_of_the_users_stays_pythons_affair() -> None:
    def mine(x: Any, *, axis: int) -> Any:
        return x * axis

    with pytest.raises(TypeError, match="unexpected keyword argument 'dim'") as caught:
        fnad.grad(lambda x: mine(x, dim=0))(1.0)
    assert not isinstance(caught.value, errors.FnadError)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fnad.optim.sgd(lr=0.1), "sgd takes no lr=\n.*\n  write learning_rate="),
        (lambda: fnad.optim.adam(1e-3, betas=(0.9, 0.99)), "adam takes no betas=\n.*\n  write b1= and b2="),
        (lambda: fnad.optim.adam(0.1, weight_decay=0.1), r"\n  write fnad.optim.adamw\("),
        (lambda: fnad.nn.softmax(X, dim=0), "softmax takes no dim=\n.*\n  write axis="),
    ],
)
def test_keywords_of_fnads_own_functions(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(errors.UnknownKeywordError, match=message):
        call()


@pytest.mark.parametrize("name", ["grad", "value_and_grad", "jacobian", "jacfwd", "jacrev", "hessian"])
@pytest.mark.parametrize("values", [(X,), ((X, X),), ({"w": X},), (1.0,), (0, X)], ids=str)
def test_the_arguments_of_a_function_given_to_a_transform(name: str, values: tuple[Any, ...]) -> None:
    with pytest.raises(errors.FnadError, match=rf"{name} returns a function, .*: fnad.{name}\(f\)\(x\)$"):
        getattr(fnad, name)(np.sum, *values)


def test_arguments_given_to_jit() -> None:
    with pytest.raises(errors.StaticArgumentError, match=r"jit returns a function, .*: fnad.jit\(f\)\(x\)$"):
        fnad.jit(np.sum, X)


def test_rows_given_to_vmap() -> None:
    with pytest.raises(errors.BatchAxisError, match=r"vmap returns a function, .*: fnad.vmap\(f\)\(x\)$"):
        fnad.vmap(np.sum, X)(X)


def test_the_names_of_the_page_for_users_of_jax_are_there() -> None:
    text = (ROOT / "docs" / "from_jax.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert len(rows) > 25
    with together() as check:
        for name in re.findall(r"`(fnad(?:\.\w+)+)", "\n".join(rows)):
            with check(name):
                resolved(name)


def test_a_word_that_the_function_does_not_take_either_is_not_given() -> None:
    with pytest.raises(errors.UnknownKeywordError, match=r"softmax takes no keepdim=\n.*\n  it takes x, axis"):
        fnad.nn.softmax(X, keepdim=True)  # type: ignore[call-arg]
    with pytest.raises(errors.UnknownKeywordError, match=r"logsumexp takes no keepdim=\n.*\n  write keepdims="):
        fnad.nn.logsumexp(X, keepdim=True)  # type: ignore[call-arg]
