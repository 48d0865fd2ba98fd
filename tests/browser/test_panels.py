"""Panels in a real JupyterLab: a knob moved by keyboard changes number and picture, and nothing piles up."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.browser.conftest import Lab, Watched
from tri_memory.lab.sources import source_files

NOTEBOOKS = [source.stem for source in source_files()]
PANEL = ".jp-OutputArea-output:has(.widget-vbox)"
MINUTE = 60_000
# What Chromium says of all that it is loading while a container of another test comes or goes on this machine.
NETWORK_CHANGED = "ERR_NETWORK_CHANGED"
SLIDES = ["ArrowRight", "ArrowLeft", "ArrowLeft", *["ArrowRight"] * 5]
# What to type into a panel without a slider: one more case at the end of its text.
TYPED = ["Space", "Backspace", "Space", *"BX-9999", "Space"]


def open_and_run(watched: Watched, lab: Lab, notebook: str) -> None:
    """Open the notebook and run it to the end, as a learner does from the menu."""
    page = watched.page
    for _ in range(5):
        watched.errors.clear()
        page.goto(f"{lab.url}lab/tree/{notebook}.ipynb?token={lab.token}&reset", timeout=MINUTE)
        page.wait_for_selector(".jp-NotebookPanel .jp-Cell", timeout=MINUTE)
        if not any(NETWORK_CHANGED in text for text in watched.errors):
            break
    lab.wait_for_idle_kernel(notebook, cells_run=False)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    lab.wait_for_idle_kernel(notebook, cells_run=True)


def scroll_to(page: Any, panel: Any) -> None:
    """Bring the panel into view; JupyterLab draws only the cells near the view."""
    page.locator(".jp-Notebook").first.hover()
    for _ in range(100):
        if panel.count():
            break
        page.mouse.wheel(0, 600)
        page.wait_for_timeout(100)
    panel.scroll_into_view_if_needed(timeout=MINUTE)


def shown(page: Any) -> tuple[str, str]:
    """The panel's sentence and its picture."""
    panel = page.locator(PANEL).first
    return panel.locator("p[aria-live]").inner_text(), panel.locator("img").get_attribute("src")


def has_changed(page: Any, text: str, picture: str) -> bool:
    """Whether both are others within 20 s: a busy kernel draws late."""
    for _ in range(40):
        page.wait_for_timeout(500)
        now = shown(page)
        if now[0] != text and now[1] != picture:
            return True
    return False


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_a_knob_moved_by_keyboard_changes_number_and_picture_and_twenty_moves_leave_one_picture(
    lab: Lab, watched: Watched, notebook: str
):
    page = watched.page
    open_and_run(watched, lab, notebook)
    panel = page.locator(PANEL).first
    scroll_to(page, panel)
    text, picture = shown(page)
    sliders = panel.get_by_role("slider")
    knobs, moves = (sliders, SLIDES) if sliders.count() else (panel.get_by_role("textbox"), TYPED)
    changed = False
    for i in range(knobs.count()):
        knobs.nth(i).focus()
        for key in moves:
            page.keyboard.press(key)
        changed = changed or has_changed(page, text, picture)
    assert changed, "no knob changed both the sentence and the picture"
    knobs.first.focus()
    for i in range(20):
        page.keyboard.press(moves[1] if i % 3 else moves[0])
    page.wait_for_timeout(1_500)
    assert panel.locator("img").count() == 1
    assert panel.locator("p[role=alert]").count() == 0
    assert not watched.strangers, watched.strangers
    complaints = [
        text for text in watched.errors if not re.search(rf"favicon|404|ResizeObserver|{NETWORK_CHANGED}", text)
    ]
    assert not complaints, complaints


def test_a_wide_panel_fits_at_150_percent_zoom(lab: Lab, watched: Watched):
    page = watched.page
    page.set_viewport_size({"width": 933, "height": 667})  # 1400 x 1000 at 150 %
    open_and_run(watched, lab, NOTEBOOKS[min(2, len(NOTEBOOKS) - 1)])
    panel = page.locator(PANEL).first
    scroll_to(page, panel)
    box, picture = panel.bounding_box(), panel.locator("img").bounding_box()
    assert picture["x"] + picture["width"] <= box["x"] + box["width"] + 1
