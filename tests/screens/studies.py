"""The states of a study: while it is written, and as the page that is built of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

JOB = 240_000  # until a study's page is built, milliseconds


def begun(page: Any) -> None:
    """A study of the game on Play, just begun."""
    page.click(".begin button >> nth=0")
    page.wait_for_selector(".stops .stop")
    page.wait_for_selector(".row[data-move]")


def told(page: Any) -> None:
    """Words at a move, as readers see them."""
    begun(page)
    page.click(".stop >> nth=2")
    page.wait_for_selector("text=/^After move/")
    page.fill("input[placeholder='One pass']", "Blocks of sixteen")
    page.fill(
        "textarea.note", "`split_scope` makes **blocks**:\n\n- the inner loop has 16 rounds,\n- a vector."
    )
    page.locator("textarea.note").press("Tab")
    page.wait_for_selector(".shown li")


def questioned(page: Any) -> None:
    """The form of a question, with an answer that is not as it says."""
    begun(page)
    page.click("text=Ask a question here")
    page.get_by_label("Answer 1", exact=True).fill("vectorize q@0")
    page.get_by_label("Answer 2", exact=True).fill("vectorize c#1@0")
    page.get_by_label("Why, of answer 1", exact=True).fill("The rows are independent of each other.")
    page.click("text=Save the question")
    page.wait_for_selector("[role=alert] >> text=is to be right")


def refusal_asked(page: Any) -> None:
    """A question about a move that is refused, saved."""
    begun(page)
    page.click("text=Ask a question here")
    page.locator(".question select").select_option("refused")
    move = page.locator("#blocked-moves option").first
    move.wait_for(state="attached")
    page.fill(".question [placeholder='vectorize y@0']", str(move.get_attribute("value")))
    page.get_by_label("Answer 1", exact=True).fill("It would change a sum's order.")
    page.get_by_label("Answer 2", exact=True).fill("The machine cannot do it.")
    page.click("text=Save the question")
    page.wait_for_selector("text=Change the question")


def whole(page: Any) -> None:
    begun(page)
    page.click("[data-tab=whole]")


def timing(page: Any) -> None:
    whole(page)
    page.click("text=All anew")
    page.wait_for_selector("progress")


def built(page: Any) -> None:
    whole(page)
    page.click("text=Build the page")
    page.wait_for_selector("text=Download the page", timeout=JOB)


def as_text(page: Any) -> Any:
    begun(page)
    page.click("[data-tab=source]")
    return page.locator("textarea.source")


def wrong(page: Any) -> None:
    """A text that is no study, with what is wrong in it."""
    field = as_text(page)
    field.fill(field.input_value().replace("vectorize c#1@3", "vectorise q@3"))
    page.wait_for_selector("#source-told.refused")


def unreadable(page: Any) -> None:
    """The same after a reload, when there is no position to show."""
    wrong(page)
    page.click("[data-tab=here]")
    page.wait_for_selector("text=cannot be read: correct it first")


def written_twice(page: Any) -> None:
    """Another program has written the file meanwhile."""
    whole(page)
    file = Path(page.locator("p.mono").inner_text())
    page.click("[data-tab=source]")
    field = page.locator("textarea.source")
    text = field.input_value()
    file.write_text(f"{text}\nTheirs.\n", encoding="utf-8")
    field.fill(f"{text}\nMine.\n")
    page.wait_for_selector("text=was changed in another window")


# ---------------------------------------------------------------------- the page that is built


def asked(page: Any) -> None:
    """A question, answered wrongly."""
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("text=A question stands here")
    page.click(".answer:has-text('vectorize')")
    page.wait_for_selector(".why:has-text('Later.')")


def played_on(page: Any) -> None:
    """At its end."""
    page.keyboard.press("ArrowRight")
    page.click(".answer:has-text('join_scopes')")
    page.keyboard.press("End")
    page.wait_for_timeout(500)
