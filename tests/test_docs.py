"""The documentation as people go through it: nothing dead is linked, and the index leads to every page."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HIDDEN = {"build", "dist", "node_modules"}  # and what begins with a dot
FOLDERS = [
    folder for folder in ROOT.iterdir() if folder.name not in HIDDEN and not folder.name.startswith(".")
]
PAGES = sorted(page for folder in FOLDERS for page in (folder, *folder.rglob("*.md")) if page.suffix == ".md")
DOCS = [page for page in PAGES if page.is_relative_to(ROOT / "docs")]
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(([^()\s]+)\)")
FENCE = re.compile(r"^ *(`{3,}|~{3,}).*?^ *\1", re.MULTILINE | re.DOTALL)


def prose(page: Path) -> str:
    """A page without its blocks and spans of code."""
    return re.sub(r"`[^`\n]*`", "", FENCE.sub("", page.read_text(encoding="utf-8")))


def links(page: Path) -> list[str]:
    """Where a page's links lead, those to the web aside."""
    found = LINK.findall(prose(page))
    return [link for link in found if not re.match(r"[a-z]+:", link)]


def anchors(page: Path) -> set[str]:
    """The names that headings get on GitHub."""
    names: set[str] = set()
    for heading in re.findall(
        r"^#+ +(.+?)\s*$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE
    ):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        names.add(next(n for n in (name, *(f"{name}-{k}" for k in range(1, 99))) if n not in names))
    return names


def dead(page: Path) -> list[str]:
    """Links of a page that lead nowhere."""
    wrong = []
    for link in links(page):
        path, _, anchor = link.partition("#")
        to = (page.parent / path).resolve() if path else page
        if not to.exists() or (anchor and to.suffix == ".md" and anchor not in anchors(to)):
            wrong.append(link)
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_no_link_is_dead(page: Path) -> None:
    assert dead(page) == []


def test_pages_that_code_and_messages_name_are_there() -> None:
    named = {
        (str(file.relative_to(ROOT)), page)
        for folder in ("agents", "benchmarks", "dojo_core", "native", "pages", "tests")
        for file in sorted((ROOT / folder).rglob("*"))
        if file.suffix in (".py", ".js", ".c", ".cpp", ".hpp", ".in", ".toml", ".txt", ".pyi")
        for page in re.findall(r"\bdocs/[\w/]+\.md\b", file.read_text(encoding="utf-8"))
    }
    assert len(named) > 10
    assert [each for each in sorted(named) if not (ROOT / each[1]).exists()] == []


def test_every_page_is_reached_from_the_index() -> None:
    index = ROOT / "docs" / "index.md"
    reached = {(index.parent / link.partition("#")[0]).resolve() for link in links(index)}
    assert sorted(str(p.relative_to(ROOT)) for p in {*DOCS} - {index} - reached) == []
    assert index.resolve() in {(ROOT / link).resolve() for link in links(ROOT / "README.md")}


def test_a_dead_link_and_a_dead_anchor_are_noticed(tmp_path: Path) -> None:
    page = tmp_path / "a.md"
    page.write_text(
        "# One `two`, three\n[x](#one-two-three) [y](b.md) [z](#four)\n```\n[code](c.md)\n```\n`[i](d.md)`\n"
    )
    assert dead(page) == ["b.md", "#four"]
