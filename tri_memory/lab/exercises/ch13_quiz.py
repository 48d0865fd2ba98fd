"""The self-test of chapter 13."""

from __future__ import annotations

from tri_memory.lab.exercises.kit import Option, Question

QUESTIONS = (
    Question(
        "13-q1",
        "A table holds sha256(phone number). Who can read the numbers?",
        (
            Option("Nobody: SHA-256 can't be inverted.", "It needn't be. All numbers can be tried, and were."),
            Option(
                "Whoever has the table and some minutes for each beginning, such as 138.",
                "That is the rate that was measured above. There are few phone numbers for a computer.",
                right=True,
            ),
            Option(
                "Nobody, once a salt stands beside each hash.", "The salt is read with the hash, and then it counts."
            ),
        ),
    ),
    Question(
        "13-q2",
        "“Shall I use the details of your case?” — “可以吧，应该。” (Fine, I suppose.) What now?",
        (
            Option("Use them: it begins with a yes.", "What follows takes it back."),
            Option("Ask again until it is clear.", "Asking until somebody gives in is no consent."),
            Option(
                "Don't, and don't ask again in this session.",
                "A yes that was missed costs this session the details. What was told without one can't be untold.",
                right=True,
            ),
        ),
    ),
    Question(
        "13-q3",
        "The receipt was verified, and a minute later the episode is back. What was missing?",
        (
            Option("A second search.", "It would have come a second too early as well."),
            Option(
                "A registry that refuses what began before the forgetting.",
                "The writer had read everything beforehand. Only its write can be stopped.",
                right=True,
            ),
            Option("A lock around the search.", "The summary takes no lock while the model thinks."),
        ),
    ),
    Question(
        "13-q4",
        "After `forget` the text stands more often in Postgres's files than before. Why?",
        (
            Option(
                "Hiding writes a new version of the row. And the first change to a page after a checkpoint logs the "
                "whole page, old rows included.",
                "That is why even the purge adds to the log. `scrub` rewrites.",
                right=True,
            ),
            Option("The deletion failed.", "No call of a store finds the rows, and the receipt is right."),
            Option("Postgres makes a backup first.", "It makes none. Yours, if there is one, is a place of its own."),
        ),
    ),
    Question(
        "13-q5",
        "A user asks: is everything gone? Everything here was forgotten, purged and scrubbed. What do you answer?",
        model_answer="Which stores were searched and when, by the receipt. Then what it can't say: backups until they "
        "are overwritten, the model provider's logs for as long as its contract says, what others said about this "
        "person in their own memories, and whatever a model was trained on. With a date for each that has one.",
    ),
)
