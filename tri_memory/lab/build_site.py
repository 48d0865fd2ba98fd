"""`make site`: the executed notebooks as a web site in build/site, made by Sphinx and MyST-NB.

A warning, such as a link that leads nowhere, is an error.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
from tqdm import tqdm

from tri_memory.lab.run_notebooks import execute

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "site"
WIDGET = "application/vnd.jupyter.widget-view+json"


def still(notebook: Any) -> Any:
    """The notebook with pictures where widgets were: a page that asks no other server for scripts."""
    notebook.metadata.pop("widgets", None)
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            output.get("data", {}).pop(WIDGET, None)
    return notebook


def build(notebooks: list[Any], names: list[str], folder: Path) -> int:
    """Write the site of these notebooks into `folder`/html; Sphinx' exit code."""
    source = folder / "source"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(PAGES, source)
    (source / "notebooks").mkdir()
    for notebook, name in zip(notebooks, names, strict=True):
        nbformat.write(still(notebook), source / "notebooks" / name)
    strict = ["-q", "-W", "--keep-going", "-n", "-d", str(folder / "cache")]
    places = [str(source), str(folder / "html")]
    return subprocess.run([sys.executable, "-m", "sphinx", *strict, *places], check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--executed", type=Path, metavar="FOLDER", help="take the executed notebooks that lie there")
    options = parser.parse_args()
    folder = options.executed or ROOT / "notebooks"
    paths = sorted(folder.glob("[0-9][0-9]_*.ipynb"))
    if not paths:
        parser.error(f"no notebook such as 00_start_here.ipynb lies in {folder}")
    if options.executed:
        notebooks = [nbformat.read(path, as_version=4) for path in paths]
    else:
        runs = [execute(path) for path in tqdm(paths, desc="running", unit="notebook")]
        for run in runs:
            if run.error:
                print(f"{run.path.name}\n{run.error[-2_000:]}", file=sys.stderr)
                return 1
        notebooks = [run.notebook for run in runs]
    target = ROOT / "build" / "site"
    code = build(notebooks, [path.name for path in paths], target)
    if not code:
        print(f"open {target / 'html' / 'index.html'}")
    return code


if __name__ == "__main__":
    sys.exit(main())
