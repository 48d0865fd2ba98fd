"""Slides by one rule: headings begin them, pictures and bullets stay, and a page asks no other machine."""

from __future__ import annotations

import re

from nbformat import from_dict
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tri_memory.lab.slides import as_slides
from tri_memory.lab.slides_page import html

DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGD4DwABBAEAX+XDSwAAAABJRU5ErkJggg=="
TEXT = "# A title\n\nSome prose.\n\n**You will**\n\n- first\n- second, on\n  two lines\n\n- third"


def example():
    plot = new_code_cell("secret_code()", outputs=[new_output("display_data", {"image/png": DOT, "text/html": "<b>x"})])
    said = new_code_cell("1", outputs=[new_output("stream", text="printed")])
    cells = [new_markdown_cell(TEXT), plot, said, new_markdown_cell("- fourth\n\n## Next"), plot, plot]
    for number, cell in enumerate(cells):
        cells[number] = from_dict({**cell, "id": f"cell-{number}"})
    return new_notebook(cells=cells, metadata={"language_info": {"name": "python"}})


def test_headings_begin_slides_pictures_and_bullets_stay_and_prose_is_for_the_speaker():
    found = [
        (cell.metadata.slideshow.slide_type, cell.source.split("\n")[0][:8]) for cell in as_slides(example()).cells
    ]
    assert found == [
        ("slide", "# A titl"),
        ("notes", "Some pro"),
        ("notes", "**You wi"),
        ("-", "- first"),
        ("subslide", "![](data"),
        ("subslide", "- fourth"),
        ("slide", "## Next"),
        ("-", "![](data"),
        ("subslide", "![](data"),
    ]
    assert "two lines\n- third" in as_slides(example()).cells[3].source


def test_a_page_has_the_pictures_no_code_and_asks_no_other_machine():
    page = html(as_slides(example()), "00_a")
    assert "reveal/dist/theme/white.css" in page, "most other themes of reveal.js load their fonts from elsewhere"
    assert page.count(f"data:image/png;base64,{DOT}") == 3
    assert "secret_code" not in page
    assert "printed" not in page
    asked = re.findall(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=[\"']?(?!data:)([^\"'> ]+)", page)
    assert asked
    assert not [address for address in asked if not address.startswith("reveal/")]
    assert not re.findall(r"url\([\"']?https?:|@import|https?://[^\"' ]+\.js", page)
