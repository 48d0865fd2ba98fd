"""One page of slides that asks no other machine: nbconvert's, with a reveal.js that lies beside it."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat

WIDTH, HEIGHT = 1280, 720
_STYLE = """<style>
.reveal .slides section {text-align: left} .reveal h1, .reveal h2 {text-transform: none}
.reveal .slides h1 {font-size: 48px} .reveal .slides h2 {font-size: 38px}
.reveal .slides img {max-height: 560px; max-width: 1200px; margin: 0 auto; display: block}
.reveal .slides li {font-size: 26px; line-height: 1.35; margin: 10px 0} .jp-InputPrompt {display: none}
</style>"""
_START = """<script src="reveal/dist/reveal.js"></script><script src="reveal/plugin/notes/notes.js"></script>
<script>Reveal.initialize({width: %d, height: %d, hash: true, slideNumber: true, plugins: [RevealNotes]})</script>"""


def html(slides: Any, name: str) -> str:
    """The page of a notebook with slide metadata; nbconvert's own scripts, which come from elsewhere, are left out."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.ipynb"
        nbformat.write(slides, path)
        prefix, theme = "--SlidesExporter.reveal_url_prefix=reveal", "--SlidesExporter.reveal_theme=white"  # own fonts
        command = [
            sys.executable,
            "-m",
            "nbconvert",
            "--to",
            "slides",
            "--no-prompt",
            prefix,
            theme,
            "--stdout",
            str(path),
        ]
        page = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode()
    page = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    return page.replace("</head>", f"{_STYLE}</head>").replace("</body>", f"{_START % (WIDTH, HEIGHT)}</body>")
