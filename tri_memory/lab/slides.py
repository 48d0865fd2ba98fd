"""`make slides`: slides of the executed notebooks in build/slides, by one rule, with nbconvert and a local reveal.js.

A `#` or `##` heading begins a slide. Pictures and bullets stay, each in a place of its own below the heading; prose
becomes the speaker's notes (key S); code, tables and cards are left out.
"""

from __future__ import annotations

import argparse
import re
import shutil
from pathlib import Path
from typing import Any

import nbformat
from nbformat.v4 import new_markdown_cell, new_notebook

from tri_memory.lab.slides_page import html

ROOT = Path(__file__).parents[2]


def as_slides(notebook: Any) -> Any:
    """The notebook with slide metadata, by the rule above."""
    cells: list[Any] = []
    room = False  # whether the slide has only its heading so far

    def add(text: str, kind: str) -> None:
        cells.append(new_markdown_cell(text, id=f"slide-{len(cells)}", metadata={"slideshow": {"slide_type": kind}}))

    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for kind, text in _parts(cell.source):
                if kind == "slide":
                    room = True
                elif kind == "bullets":
                    kind, room = ("-" if room else "subslide"), False
                add(text, kind)
        for picture in _pictures(cell):
            add(f"![](data:image/png;base64,{picture})", "-" if room else "subslide")
            room = False
    return new_notebook(cells=cells, metadata=notebook.metadata)


def _parts(markdown: str) -> list[tuple[str, str]]:
    """The blocks of a cell in order: ("slide", a heading), ("bullets", a list) or ("notes", anything else)."""
    parts: list[tuple[str, str]] = []
    for block in re.split(r"\n\s*\n|(?<=\n)(?=- )|(?=\n#)", markdown.strip()):
        text = block.strip()
        kind = "slide" if re.match("##? ", text) else "bullets" if text.startswith("- ") else "notes"
        if kind == "bullets" and parts and parts[-1][0] == kind:
            text = f"{parts.pop()[1]}\n{text}"
        if text:
            parts.append((kind, text))
    return parts


def _pictures(cell: Any) -> list[str]:
    found = [output.get("data", {}).get("image/png", "") for output in cell.get("outputs", ())]
    return ["".join(picture.split()) for picture in found if picture]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("executed", type=Path, help="the folder of executed notebooks (run_notebooks --save)")
    parser.add_argument("reveal", type=Path, help="an unpacked reveal.js 4 (npm pack reveal.js@4)")
    options, folder = parser.parse_args(), ROOT / "build" / "slides"
    paths = sorted(options.executed.glob("[0-9][0-9]_*.ipynb"))
    if not paths or not (options.reveal / "dist" / "reveal.js").is_file():
        parser.error(f"needs notebooks in {options.executed} and dist/reveal.js in {options.reveal}")
    for part in ("dist", "plugin/notes"):
        shutil.copytree(options.reveal / part, folder / "reveal" / part, dirs_exist_ok=True)
    for path in paths:
        target = folder / f"{path.stem}.html"
        target.write_text(html(as_slides(nbformat.read(path, as_version=4)), path.stem), encoding="utf-8")
        print(target)


if __name__ == "__main__":
    main()
