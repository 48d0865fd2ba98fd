"""The self-test of chapter 14."""

from __future__ import annotations

from tri_memory.lab.exercises.kit import Option, Question

QUESTIONS = (
    Question(
        "14-q1",
        "A prompt is filled from the top until the limit is reached. Which questions fail first?",
        (
            Option("Those about preferences.", "Preferences stand near the top; they are the last to go."),
            Option(
                "Those about what was said a minute ago.",
                "The conversation stands last, and gets what memory left: often nothing.",
                right=True,
            ),
            Option("Those about ids.", "An id is short, and records stand before the conversation."),
        ),
    ),
    Question(
        "14-q2",
        "The episodes have a share of 0.2 and there is one short episode. Where does the rest of the share go?",
        (
            Option("It stays empty, so that the next prompt is alike.", "A share is a pace and no reserved room."),
            Option("To the window, which comes first.", "Not to one layer: all others go on at their pace."),
            Option(
                "To the other layers, in proportion to their shares.",
                "Each layer pays for its items at its pace. Who has nothing left doesn't hold the others up.",
                right=True,
            ),
        ),
    ),
    Question(
        "14-q3",
        "Why does the second best memory stand last and not second?",
        (
            Option(
                "Models overlook the middle of a long text most.",
                "The two ends are read best, so the two best stand there.",
                right=True,
            ),
            Option("It is newer than the others.", "Rank decides here, and not age."),
            Option("So that a cut from the end removes it first.", "That is the price of it, and no reason."),
        ),
    ),
    Question(
        "14-q4",
        "A user answers each good reply with “Thanks” and each bad one with another question. What do weights learn "
        "that count a follow-up question as praise?",
        (
            Option("Nothing, since thanks count 0.", "Thanks do. The questions after bad replies are rewarded."),
            Option(
                "The opposite of what this user wants.",
                "What served badly is praised, comes again, and is praised again. Nothing in the log shows it.",
                right=True,
            ),
            Option("The right thing, only more slowly.", "Silence slows learning. A reversed sign turns it round."),
        ),
    ),
    Question(
        "14-q5",
        "A dashboard says: memory used in 92 % of all turns, P95 40 ms. Is memory doing well? What else do you ask?",
        model_answer="Being used is no merit: recall always brings something (notebook 10). Ask in how many of these "
        "turns it helped, against the same chat without memory (15), and in how many the next message said that it was "
        "wrong. Ask what was left out and why. And whose P95 it is: with how many memories, and with failed turns or "
        "without.",
    ),
)
