"""`make notebooks`: sources -> student notebooks and solution notebooks. With `--check` it writes nothing and tells."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tri_memory.lab.sources import NOTEBOOKS, notebook_text, source_files


def built() -> dict[Path, str]:
    """Every notebook's path and text, as the sources have it now."""
    texts = {}
    for source in source_files():
        texts[NOTEBOOKS / f"{source.stem}.ipynb"] = notebook_text(source, solutions=False)
        texts[NOTEBOOKS / "solutions" / f"{source.stem}.ipynb"] = notebook_text(source, solutions=True)
    return texts


def drift() -> list[str]:
    """Which notebook on disk is not what its source gives, or has no source."""
    wanted = built()
    on_disk = {*NOTEBOOKS.glob("*.ipynb"), *(NOTEBOOKS / "solutions").glob("*.ipynb")}
    changed = [path for path, text in wanted.items() if path not in on_disk or path.read_bytes() != text.encode()]
    return [f"{path.relative_to(NOTEBOOKS)} differs from its source" for path in sorted(changed)] + [
        f"{path.relative_to(NOTEBOOKS)} has no source" for path in sorted(on_disk - wanted.keys())
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only tell whether a notebook differs from its source")
    if parser.parse_args().check:
        found = drift()
        print("\n".join(found) or "all notebooks are as their sources have them")
        return 1 if found else 0
    for path, text in built().items():
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode())
        print(path.relative_to(NOTEBOOKS.parent))
    return 0


if __name__ == "__main__":
    sys.exit(main())
