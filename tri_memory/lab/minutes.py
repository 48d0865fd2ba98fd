"""How long a notebook takes a learner, reckoned from what is in it, so that no author has to guess.

Reading prose, 200 words a minute (Brysbaert 2019 found 238 for plain English; these texts are denser). Reading code,
twelve lines a minute. The exercises' own minutes, and two for each question of the self-test. Rounded to five.
"""

from __future__ import annotations

from pathlib import Path

from tri_memory.lab.exercises.kit import exercises_of, questions_of
from tri_memory.lab.sources import cells_of, source_files

WORDS_A_MINUTE = 200
LINES_A_MINUTE = 12
MINUTES_A_QUESTION = 2


def minutes(source: Path) -> int:
    """The minutes of the notebook that `source` becomes."""
    words = lines = 0
    for cell in cells_of(source):
        if cell.cell_type == "markdown":
            words += len(cell.source.split())
        elif "solution" not in cell.metadata.get("tags", []):
            lines += len([line for line in cell.source.splitlines() if line.strip()])
    chapter = source.name[:2]
    tasks = sum(task.minutes for task in exercises_of(chapter))
    quiz = MINUTES_A_QUESTION * len(questions_of(chapter))
    return round((words / WORDS_A_MINUTE + lines / LINES_A_MINUTE + tasks + quiz) / 5) * 5


def main() -> None:
    for source in source_files():
        print(f"{source.stem:28} {minutes(source):3} minutes")


if __name__ == "__main__":
    main()
