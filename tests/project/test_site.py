"""The site that `make docs` builds: what it names, without building it.

* Every page of docs/ is in the navigation of mkdocs.yml, and nothing else.
* Every public name is on a page of the API, and has a docstring there.
* Every option of the command line, every setting of the environment is on its page.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import pscdsl as psc
from docs._site.gallery import PICTURES
from docs._site.links import linked
from pscdsl._src.cli import main

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
API = DOCS / "reference" / "api"
SITE = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
DIRECTIVE = re.compile(r"^::: (pscdsl[\w.]*)$", re.MULTILINE)
ON_PAGES = {
    found[1]: path
    for path in sorted(API.rglob("*.md"))
    for found in DIRECTIVE.finditer(path.read_text(encoding="utf-8"))
}
"""What the pages of the API describe, each with its page."""
PUBLIC_MODULES = ("random", "special", "tree")


def test_the_navigation_has_every_page_once_and_nothing_else() -> None:
    named = re.findall(r"(?:: |- )([\w/-]+\.md)$", SITE[SITE.index("\nnav:") :], re.MULTILINE)
    pages = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")]
    assert sorted(named) == sorted(pages)


def test_nothing_is_described_twice() -> None:
    texts = [path.read_text(encoding="utf-8") for path in API.rglob("*.md")]
    assert len(ON_PAGES) == sum(len(DIRECTIVE.findall(text)) for text in texts)


@pytest.mark.parametrize("name", psc.__all__)
def test_a_public_name_is_on_a_page(name: str) -> None:
    if name == "numpy":
        assert "`psc.numpy`" in (API / "arrays.md").read_text(encoding="utf-8")
    else:
        assert f"pscdsl.{name}" in ON_PAGES


def test_only_public_names_are_on_pages() -> None:
    library = {name for name in ON_PAGES if name.startswith("pscdsl.stdlib.")}
    inside = {
        f"{module.__name__}.{name}"
        for module in (psc.debug, psc.distributed)
        for name in vars(module)
        if not name.startswith("__")
    }
    assert inside <= ON_PAGES.keys()
    assert ON_PAGES.keys() - library - inside == {f"pscdsl.{name}" for name in psc.__all__} - {
        "pscdsl.numpy"
    }


def library_modules() -> list[str]:
    """The names of the modules of the standard library."""
    return sorted(path.stem for path in (ROOT / "pscdsl" / "stdlib").glob("*.py"))


@pytest.mark.parametrize("name", library_modules())
def test_a_module_of_the_library_is_on_a_page_and_in_the_overview(name: str) -> None:
    page = ON_PAGES[f"pscdsl.stdlib.{name}"].relative_to(API).as_posix()
    overview = (API / "stdlib.md").read_text(encoding="utf-8")
    assert f"| [`{name}`]({page}#pscdsl.stdlib.{name}) |" in overview


def undocumented(owner: object, name: str) -> Iterator[str]:
    """Functions and classes of a module, and what a page names of a class, without docstrings."""
    for key, value in vars(owner).items():
        here = getattr(value, "__module__", None) == name
        if key[0] != "_" and here and (inspect.isfunction(value) or inspect.isclass(value)):
            if not inspect.getdoc(value):
                yield f"{name}.{key}"


@pytest.mark.parametrize("name", PUBLIC_MODULES)
def test_functions_of_public_modules_have_docstrings(name: str) -> None:
    module: ModuleType = getattr(psc, name)
    assert not list(undocumented(module, module.__name__))


def members(name: str) -> list[str]:
    """The members of a class that its page names."""
    text = ON_PAGES[name].read_text(encoding="utf-8")
    options = text.partition(f"\n::: {name}\n")[2].partition("\n:::")[0]
    return re.findall(r"^        - (\w+)$", options, re.MULTILINE)


@pytest.mark.parametrize("name", [name for name in ON_PAGES if members(name)])
def test_members_that_a_page_names_exist_and_have_docstrings(name: str) -> None:
    owner: Any = getattr(psc, name.removeprefix("pscdsl."))
    assert [each for each in members(name) if not inspect.getdoc(getattr(owner, each))] == []


def test_the_page_of_the_command_line_has_every_option(
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")
    main(["--help"])
    commands = re.findall(r"^  (\w+) {2,}", capsys.readouterr().out.partition("commands:")[2], re.M)
    assert len(commands) >= 9
    for command in commands:
        assert f"`pscdsl {command} " in page
        main([command, "--help"])
        options = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
        known = {each for each in options if not each.startswith("--no-") or each in page}
        missing = {each for each in known - {"--help"} if each not in page}
        assert not missing, command


def test_every_variable_of_the_environment_is_on_its_page() -> None:
    page = (DOCS / "reference" / "environment.md").read_text(encoding="utf-8")
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "pscdsl").rglob("*.py"))
    named = {name for text in sources for name in re.findall(r"\"(PSCDSL_[A-Z_]+)\"", text)}
    assert named == set(re.findall(r"^\| `(PSCDSL_\w+)`", page, re.MULTILINE))


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 180


def highlighted(code: str) -> str:
    """A block as the site has it, each name and each dot in a span."""
    spans = re.sub(r"\w+|\.", lambda found: f'<span class="n">{found[0]}</span>', code)
    return "<pre>" + spans.replace('"n">.<', '"o">.<') + "</pre>"


def test_names_in_code_are_linked_to_their_entries() -> None:
    heading = '<h3 id="pscdsl.stdlib.layers.dense"></h3>'
    block = highlighted("dense(x.dense, psc.tree.map, other)")
    found = re.findall(r'<autoref identifier="([\w.]+)"', linked(heading + block))
    assert found == ["pscdsl.stdlib.layers.dense", "pscdsl.tree.map"]


def test_imported_names_are_linked() -> None:
    blocks = "<pre>from pscdsl.stdlib.losses import huber\n</pre>" + highlighted("huber(x)")
    assert 'identifier="pscdsl.stdlib.losses.huber"' in linked(blocks)


def test_the_gallery_draws_examples_and_tables() -> None:
    examples = {path.stem for path in (ROOT / "examples").glob("*.py")}
    assert {"programs", "plain_numpy"} == PICTURES.keys() - examples
    assert examples - PICTURES.keys() == {"deployment", "deployment_server", "many_devices"}
