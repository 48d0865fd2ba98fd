"""The exercise kit, and one module a chapter with its checkers, hints and self-test."""

from tri_memory.lab.exercises.kit import about, answer, check, hint, quiz, reveal
from tri_memory.lab.progress import progress

__all__ = ["about", "answer", "check", "hint", "progress", "quiz", "reveal"]
