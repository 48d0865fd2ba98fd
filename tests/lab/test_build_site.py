"""The site of the notebooks: every link leads somewhere, and nothing on a page asks another machine."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tri_memory.lab.build_site import WIDGET, build

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("[0-9][0-9]_*.ipynb"))


def test_the_site_of_all_notebooks_is_built_without_a_warning(tmp_path):
    read = [nbformat.read(path, as_version=4) for path in NOTEBOOKS]
    assert build(read, [path.name for path in NOTEBOOKS], tmp_path) == 0
    pages = sorted((tmp_path / "html" / "notebooks").glob("*.html"))
    assert [page.stem for page in pages] == [path.stem for path in NOTEBOOKS]
    for page in pages:
        asked = re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=\"(https?:[^\"]+)", page.read_text(encoding="utf-8"))
        assert not asked, f"{page.name} loads from another machine"


def test_a_panel_is_a_picture_on_the_page(tmp_path):
    dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGD4DwABBAEAX+XDSwAAAABJRU5ErkJggg=="
    data = {WIDGET: {"model_id": "x", "version_major": 2, "version_minor": 0}, "image/png": dot, "text/plain": "panel"}
    cell = new_code_cell("panel()", outputs=[new_output("display_data", data)])
    metadata = {"widgets": {}, "language_info": {"name": "python"}}
    notebook = new_notebook(cells=[new_markdown_cell("# Title"), cell], metadata=metadata)
    assert build([notebook], ["00_a.ipynb"], tmp_path) == 0
    page = (tmp_path / "html" / "notebooks" / "00_a.html").read_text(encoding="utf-8")
    assert '.png"' in page
    assert "embed-amd" not in page


def test_links_that_lead_nowhere_are_named_and_an_error(tmp_path, capfd):
    text = "# Title\n\n[away](99_gone.ipynb) ![picture](gone.png) [part](#no-such-part)"
    assert build([new_notebook(cells=[new_markdown_cell(text)])], ["00_a.ipynb"], tmp_path) != 0
    said = capfd.readouterr().err
    assert all(target in said for target in ("99_gone.ipynb", "gone.png", "no-such-part"))
