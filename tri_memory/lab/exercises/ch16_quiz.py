"""The self-test of chapter 16."""

from __future__ import annotations

from tri_memory.lab.exercises.kit import Option, Question

QUESTIONS = (
    Question(
        "16-q1",
        "A fault shows in 1 of 20 runs. The suite is run once, and is green. What do you know?",
        (
            Option("The fault is not there.", "In 19 of 20 runs such a suite is green with the fault in it."),
            Option(
                "Little: the one run would have been green in 19 of 20 cases.",
                "Make the moment happen: hold one task at the bad place, and let the other pass.",
                right=True,
            ),
            Option("It is there with 5 %.", "That is how often it shows, not how likely it is there."),
        ),
    ),
    Question(
        "16-q2",
        "Of 20 inputs none went wrong. Which rate can't be excluded?",
        (
            Option("None but 0 %.", "20 inputs are few. A fault of 1 in 20 stays hidden in a third of such runs."),
            Option("Up to about 16 %.", "Wilson's interval for 0 of 20 ends there.", right=True),
            Option("Up to 50 %.", "Then 20 of 20 right ones would be one chance in a million."),
        ),
    ),
    Question(
        "16-q3",
        "A test passes the right version. What else does it need?",
        (
            Option("Nothing.", "A test that asserts nothing passes it as well."),
            Option("It fails a version that has the fault.", "A test that can't fail has never tested.", right=True),
            Option("It has many asserts.", "Ten asserts on one harmless input are one input."),
        ),
    ),
    Question(
        "16-q4",
        "Which of these can't be found by calling a function once, whatever the input?",
        (
            Option("A distance that is read as a score.", "One call with a row that is the query shows it."),
            Option("Characters counted as tokens.", "One Chinese text shows it."),
            Option("SELECT first, then INSERT.", "It takes a second call between the two statements.", right=True),
        ),
    ),
    Question(
        "16-q5",
        "You find one of these faults in a library that you use. What do you write into the report?",
        model_answer="The smallest input that shows it, what came out, what should have, and how often of how many "
        "runs; versions of library, server and Python; and, if you can, a test that fails now. No guess at blame.",
    ),
)
