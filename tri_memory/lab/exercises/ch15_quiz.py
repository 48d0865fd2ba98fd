"""The self-test of chapter 15."""

from __future__ import annotations

from tri_memory.lab.exercises.kit import Option, Question

QUESTIONS = (
    Question(
        "15-q1",
        "Somebody reports: our memory finds the right session among the first three in 70 % of cases. People have five "
        "sessions each. What do you ask first?",
        (
            Option("Which model it uses.", "That comes later. First: is 70 % more than doing nothing clever gives?"),
            Option(
                "What the three newest sessions get on the same questions.",
                "Three of five, whatever was asked, already get about that much.",
                right=True,
            ),
            Option("Whether it could be made 80 %.", "From what? Without a baseline nobody knows what was achieved."),
        ),
    ),
    Question(
        "15-q2",
        "A is ahead of B by 4 points, interval of the paired difference -1 to 9. What may be said?",
        (
            Option("A is better: the mean decides.", "The same two might as well come out the other way round."),
            Option("Both are equally good.", "Not seen is not the same as not there. Nine points are possible, too."),
            Option(
                "On these people it can't be told apart; it takes more of them.",
                "The interval has 0 in it. More questions of the same people help less than more people.",
                right=True,
            ),
        ),
    ),
    Question(
        "15-q3",
        "Of sixty settings tried on 20 questions, the best answers 80 % of them. And on new questions?",
        (
            Option("About 80 %.", "The best of sixty was also the luckiest of sixty, and luck doesn't come again."),
            Option(
                "Less.",
                "The maximum of noisy numbers is too high. Choose on some people, report on others.",
                right=True,
            ),
            Option(
                "More, since 20 questions are few.", "Few questions make the number noisy, and the best was picked."
            ),
        ),
    ),
    Question(
        "15-q4",
        "Recall goes up from 0.75 to 0.95 when k goes from 10 to 40. What belongs beside that number?",
        (
            Option(
                "The tokens, and recall of everything in the prompt.",
                "Forty of fifty turns are nearly everything, and everything has 1.0 without any search.",
                right=True,
            ),
            Option("The latency of the search.", "It hardly changes with k. The prompt does."),
            Option("Nothing: more recall is better.", "At which price, and who reads forty memories?"),
        ),
    ),
    Question(
        "15-q5",
        "Simulated questions are made of the rarest words of a turn. What can they tell you about your data, and what "
        "not?",
        model_answer="Whether the file is read rightly, whether an id or a name is found again, how fast it is, how "
        "many tokens it costs, and whether a change broke something. Not how your users ask: they use other words, "
        "join two visits, ask about what was never said. BM25 looks splendid on simulated questions, made of its own "
        "currency. Twenty real questions with quotes say more.",
    ),
)
