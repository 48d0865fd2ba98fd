"""The exercise kit, and one module a chapter with its checkers, hints and self-test."""

from tri_memory.lab.exercises.kit import about, answer, check, hint, quiz, reveal

__all__ = ["about", "answer", "check", "hint", "quiz", "reveal"]
