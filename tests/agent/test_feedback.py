import pytest
from hypothesis import given
from hypothesis import strategies as st

from tri_memory.agent.feedback import LEAST, MOST, REWARDS, Weights, implicit
from tri_memory.agent.feedback_simulation import Setting, simulate

KEYS = st.sampled_from("abcdef")
SIGNALS = st.sampled_from(sorted(REWARDS))
SMALL = {"users": 40, "turns": 200}


@pytest.mark.parametrize(
    ("asked", "then", "signal"),
    [
        ("Which size do I wear?", "And is size 42 in stock?", "relevant"),
        ("Which size do I wear?", "Can you order it for me?", "relevant"),
        ("Which size do I wear?", "Will it rain in Leeds tomorrow?", "relevant"),  # "it": a rule can't tell
        ("Which size do I wear?", "Who won the cup final?", "irrelevant"),
        ("Which size do I wear?", "No, that's my old size.", "wrong"),
        ("Which size do I wear?", "That is wrong.", "wrong"),
        ("Which size do I wear?", "I no longer wear those.", "wrong"),
        ("Which size do I wear?", "No thanks.", None),
        ("Which size do I wear?", "Thanks!", None),
        ("Which size do I wear?", "I bought a lamp.", None),
        ("我穿几码？", "42码还有货吗？", "relevant"),
        ("我穿几码？", "那多少钱？", "relevant"),
        ("我穿几码？", "谁赢了决赛？", "irrelevant"),
        ("我穿几码？", "不对，我穿43码", "wrong"),
        ("我穿几码？", "你记错了", "wrong"),
        ("我穿几码？", "谢谢", None),
        ("我穿几码？", "对吗？不对吗？", "irrelevant"),
        ("", "", None),
    ],
)
def test_the_next_message_says_what_the_last_prompt_was_worth(asked, then, signal):
    assert implicit(asked, then, ["size: 42"]) == signal


def test_who_asks_about_what_memory_said_asks_on():
    assert implicit("What do you know?", "Which gloves were green?", ["Ann asked for green gloves."]) == "relevant"
    assert implicit("What do you know?", "Which gloves were green?") == "irrelevant"


@given(st.text(), st.text(), st.lists(st.text(), max_size=3))
def test_no_message_is_an_error(asked, then, memories):
    assert implicit(asked, then, memories) in {*REWARDS, None}


def test_explicit_feedback_moves_a_weight_by_a_fifth():
    weights = Weights()
    weights.learn(["a"], "helpful")
    assert weights.of("a") == pytest.approx(1.2)
    weights.learn(["a", "b"], "unhelpful")
    assert (weights.of("a"), weights.of("b"), weights.of("c")) == (pytest.approx(1.0), pytest.approx(0.8), 1.0)


def test_a_key_named_twice_is_rewarded_once():
    weights = Weights()
    weights.learn(["a", "a"], "helpful")

    assert weights.of("a") == pytest.approx(1.2)


@given(st.lists(st.tuples(st.lists(KEYS), SIGNALS), max_size=60))
def test_weights_stay_within_their_limits_whatever_is_said(told):
    weights = Weights()
    for keys, signal in told:
        weights.learn(keys, signal)

    assert all(LEAST <= weights.of(key) <= MOST for key in "abcdef")


@given(st.dictionaries(KEYS, st.floats(0, 1), min_size=1), st.integers(1, 8), st.floats(0, 1), st.integers(0, 9))
def test_a_choice_is_of_k_different_keys_and_the_same_for_the_same_seed(scores, k, explore, seed):
    chosen = Weights(explore=explore, seed=seed).choose(scores, k)

    assert len(set(chosen)) == len(chosen) == min(k, len(scores))
    assert set(chosen) <= set(scores)
    assert chosen == Weights(explore=explore, seed=seed).choose(scores, k)


def test_what_was_praised_overtakes_a_higher_score_and_can_be_unlearned():
    weights = Weights()
    scores = {"a": 0.6, "b": 0.5}
    assert weights.choose(scores, 1) == ["a"]
    for _ in range(2):
        weights.learn(["b"], "helpful")
    assert weights.choose(scores, 1) == ["b"]
    weights.forget(["b"])
    assert weights.choose(scores, 1) == ["a"]
    weights.learn(["b"], "helpful")
    weights.forget()
    assert weights.of("b") == 1.0


def test_without_exploring_the_choice_is_the_best_and_with_it_the_last_place_varies():
    scores = {key: 1 - i / 10 for i, key in enumerate("abcdef")}
    assert {tuple(Weights().choose(scores, 2)) for _ in range(20)} == {("a", "b")}
    curious = Weights(explore=1.0)
    tried = {tuple(curious.choose(scores, 2)) for _ in range(60)}
    assert tried == {("a", other) for other in "cdef"}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Weights(explore=1.5), "explore must be between 0 and 1; got 1.5"),
        (lambda: Weights(explore=float("nan")), "explore"),
        (lambda: Weights().learn(["a"], "great"), "helpful, unhelpful.*'great'"),
        (lambda: Weights().learn("abc", "helpful"), r"write \[key\]"),
        (lambda: Weights().choose({"a": -0.1}, 1), "'a' must be a number of at least 0"),
        (lambda: Weights().choose({"a": float("nan")}, 1), "'a'"),
        (lambda: Weights().choose({"a": 1.0}, 0), "k must be"),
    ],
)
def test_what_makes_no_sense_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_right_reactions_teach_and_pure_noise_does_harm():
    right, noise = simulate(Setting(noise=0.0, **SMALL)), simulate(Setting(noise=0.5, **SMALL))

    before, after = right.before_and_after()
    assert after - before > 0.15
    assert right.worse() < 0.1
    before, after = noise.before_and_after()
    assert after < before
    assert noise.worse() > 0.5
    assert noise.turns_until() is None


def test_who_always_says_the_opposite_is_served_worse_than_without_learning():
    hostile = simulate(Setting(hostile=1.0, noise=0.0, **SMALL))

    assert hostile.worse() > 0.9


def test_learning_does_not_change_the_questions_and_no_reaction_changes_nothing():
    quiet = simulate(Setting(silence=1.0, explore=0.0, **SMALL))
    loud = simulate(Setting(silence=0.0, **SMALL))

    assert (quiet.learned == quiet.unlearned).all()
    assert quiet.worse() == 0.0
    assert (quiet.unlearned == loud.unlearned).all()
    assert (loud.learned <= loud.best + 1e-12).all()
    assert (loud.learned != loud.unlearned).any()


def test_a_simulation_is_repeatable_and_its_seed_counts():
    first, again, other = (simulate(Setting(users=5, turns=40, seed=seed)) for seed in (1, 1, 2))

    assert (first.learned == again.learned).all()
    assert (first.unlearned != other.unlearned).any()


def test_without_learning_relevance_starts_where_the_claim_does():
    start = simulate(Setting(users=300, turns=30)).unlearned.mean()

    assert start == pytest.approx(0.68, abs=0.02)


def test_turns_until_counts_from_the_first_turn():
    runs = simulate(Setting(noise=0.0, **SMALL))

    assert runs.turns_until(share=0.01) == 20
    assert runs.turns_until(share=0.01, over=1) == 1
    assert runs.turns_until(share=1.01) is None
