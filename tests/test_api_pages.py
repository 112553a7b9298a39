"""The pages of the API name every public thing, and nothing that has gone."""

from __future__ import annotations

import inspect
import operator
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import artreplay as ar

PAGES = Path(__file__).parent.parent / "docs/api"
DIRECTIVE = re.compile(r"^\.\. auto(class|function|exception|data|module):: (\S+)$", re.MULTILINE)
MODULES = ("adapters", "bonus", "drift", "environments", "environments.logs", "errors", "plots", "psi", "testing")


def named() -> list[str]:
    """Every name that some page documents."""
    return [name for page in sorted(PAGES.glob("*.md")) for _, name in DIRECTIVE.findall(page.read_text("utf-8"))]


def public() -> Iterator[str]:
    """The names that users may rely on."""
    yield from (f"artreplay.{name}" for name in ar.__all__ if not isinstance(getattr(ar, name), ModuleType))
    for name in MODULES:
        module = operator.attrgetter(name)(ar)
        errors = [key for key, thing in vars(module).items() if inspect.isclass(thing) and issubclass(thing, Exception)]
        keys = [key for key in getattr(module, "__all__", errors) if not isinstance(getattr(module, key), ModuleType)]
        yield from (f"artreplay.{name}.{key}" for key in keys)


def test_every_public_name_is_on_a_page_once() -> None:
    names = named()
    assert sorted(set(public()) - set(names)) == []
    assert [name for name in set(names) if names.count(name) > 1] == []


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.md")), ids=lambda page: page.stem)
def test_a_page_names_what_is_there(page: Path) -> None:
    for _, name in DIRECTIVE.findall(page.read_text("utf-8")):
        thing = ar
        for part in name.split(".")[1:]:
            thing = getattr(thing, part)
        assert inspect.getdoc(thing), name


def test_the_modules_are_all_public_modules() -> None:
    modules = {name for name in ar.__all__ if isinstance(getattr(ar, name), ModuleType)}
    assert modules - {"compiling"} <= set(MODULES)  # of `compiling`, users need `using` and `compiled`
