"""A pinned position beside the one on the board, and what is taken away, in a real browser."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from dojo_core.sharing import open_link
from tests.browser.playing import MOVE, expect, play

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = [ROOT / "pages" / "difference" / f"{name}.js" for name in ("align", "keys")]


def difference(page: Any, kind: str, before: str, after: str) -> list[list[Any]]:
    """Two texts as rows, each with its words; of those that only one line has, ``*`` stands around."""
    script = "\n".join(script.read_text(encoding="utf-8") for script in SCRIPTS)
    return list(
        page.evaluate(
            f"""([kind, before, after]) => {{
              {script}
              const {{ key }} = TEXTS[kind];
              const marked = ([text, differs]) => (differs ? `*${{text}}*` : text);
              const told = (pieces) => pieces.map(marked).join("");
              return alignedLines(before, after, key).map(([kind, i, j]) => kind === "changed"
                ? [kind, ...alignedWords(before[i], after[j], key).map(told)]
                : [kind, i === null ? after[j] : before[i]]);
            }}""",
            [kind, before.splitlines(), after.splitlines()],
        )
    )


def test_lines_that_are_much_alike_are_one_line_changed(start_screen: Any) -> None:
    before = "in x\n64 t[{0}] = x[{0}]*2\n64 y[{0}] = t[{0}] + 1"
    after = "in x\n8 8:v t[{0}] = x[{0}]*2\n8 s[{0}] = 0\n64 y[{0}] = t[{0}] + 1"
    assert difference(start_screen, "program", before, after) == [
        ["same", "in x"],
        ["changed", "*64* t[{0}] = x[{0}]*2", "*8 8:v* t[{0}] = x[{0}]*2"],
        ["added", "8 s[{0}] = 0"],
        ["same", "64 y[{0}] = t[{0}] + 1"],
    ]


def test_indentation_of_c_and_labels_and_frames_of_assembly_are_no_differences(start_screen: Any) -> None:
    before = "for (int i = 0; i < 8; ++i) {\n  y[i] = 0;\n}"
    after = "for (int j = 0; j < 8; ++j) {\nfor (int i = 0; i < 8; ++i) {\n    y[i] = 0;\n}\n}"
    kinds = [kind for kind, *_ in difference(start_screen, "c", before, after)]
    assert kinds.count("same") == 3 and kinds.count("added") == 2 and len(kinds) == 5

    before = ".L3:\n  mov rax, -8[rsp]\n  vmovss xmm1, DWORD PTR .LC2[rip]\n  jne .L3\n  ret"
    after = ".L7:\n  mov rax, 16[rsp]\n  vmovss xmm5, DWORD PTR .LC4[rip]\n  jne .L7\n  ret"
    assert [row for row in difference(start_screen, "asm", before, after) if row[0] != "same"] == [
        ["changed", "  vmovss *xmm1*, DWORD PTR .LC2[rip]", "  vmovss *xmm5*, DWORD PTR .LC4[rip]"]
    ]


def test_two_texts_are_given_back_whole_whatever_they_share(start_screen: Any) -> None:
    letters = "abacabadabacaba" * 20
    before, after = "\n".join(letters), "\n".join(letters[7:] + "eabc" + letters[40:90])
    rows = difference(start_screen, "program", before, after)
    assert [row[1] for row in rows if row[0] in ("same", "removed")] == before.splitlines()
    assert [row[-1] for row in rows if row[0] in ("same", "added")] == after.splitlines()
    assert sum(kind == "same" for kind, _ in rows) > 280  # as most of it can be


def test_what_differs_from_the_pinned_position_is_shown_and_read_out(small_board: Any) -> None:
    page = small_board
    page.keyboard.press("p")
    page.wait_for_selector(".pinned:visible")
    play(page)
    changed = page.get_by_role("table", name=f"Program: from Start to 1. {MOVE}")
    for sign in (r"^\s*−\s*removed", r"^\s*\+\s*added"):
        expect(changed.get_by_role("row").filter(has_text=re.compile(sign)).first).to_be_visible()
    expect(changed.locator("ins").first).to_be_visible()
    # what is chosen there is chosen everywhere
    changed.locator(".line.op").last.click()
    expect(page.locator(".code .difference .line.selected")).not_to_have_count(0)
    page.click("[data-layout=side]")
    expect(changed.get_by_role("columnheader")).to_have_text(["", "Start", "", f"1. {MOVE}"])
    page.keyboard.press("Escape")
    page.click("text=Unpin")
    page.wait_for_selector(".pinned", state="hidden")
    expect(page.locator(".program [role=listbox]")).to_be_visible()
    expect(changed).to_be_hidden()


def test_a_position_is_taken_away_as_c_as_a_link_and_as_a_library(small_board: Any) -> None:
    page = small_board
    play(page)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])

    def copied(what: str) -> str:
        page.click(f"[aria-label='Copy: {what}']")
        page.wait_for_selector("text=Copied.")
        return str(page.evaluate("navigator.clipboard.readText()"))

    page.click("text=Take away")
    c = copied("C of this position")
    assert f"1: {MOVE}" in c and "void kernel_reducemean" in c
    address, link = copied("Link").split("?g=")
    expect(page.get_by_text("Open it")).to_have_attribute("href", f"{address}?g={link}")
    assert str(open_link(link).game.current.move) == MOVE
    with page.expect_download() as download:
        page.click("[aria-label='Download: Library']")
    assert Path(download.value.path()).read_bytes().startswith(b"PK")
    page.keyboard.press("Escape")
    page.context.clear_permissions()


@pytest.mark.thorough  # C, a link, a library: above
def test_the_chart_is_taken_away_as_pictures_that_need_no_style_sheet(small_board: Any) -> None:
    page = small_board
    page.keyboard.press("m")
    page.wait_for_selector(".chart .dot")
    page.keyboard.press("m")
    page.click("text=Take away")

    def saved(form: str) -> bytes:
        with page.expect_download() as download:
            page.click(f"[aria-label='{form}: Picture of the chart']")
        return Path(download.value.path()).read_bytes()

    assert saved("PNG").startswith(b"\x89PNG")
    drawing = saved("SVG").decode()
    assert "<circle" in drawing and "reducemean 8x16: speed-up over moves" in drawing
    assert "class=" not in drawing and "var(" not in drawing
    page.keyboard.press("Escape")
