from datetime import UTC, datetime

import pytest

from tri_memory.agent.chat import Chat
from tri_memory.agent.forget_request import KEPT
from tri_memory.agent.repl import Repl, printable, tidy
from tri_memory.agent.replies import NOT_FOUND
from tri_memory.clock import ManualClock
from tri_memory.embedding import HashingEmbedder
from tri_memory.entity.memory import InMemoryUserMemoryStore
from tri_memory.episodic.memory import InMemoryEpisodicStore
from tri_memory.preference.memory import InMemoryPreferenceStore
from tri_memory.session.memory import InMemorySessionStore


def what_was_said(turns) -> str:
    return " ".join(turn.content for turn in turns if turn.role == "user")[:1_000]


def a_chat(**options) -> Chat:
    clock = ManualClock(datetime(2026, 3, 1, tzinfo=UTC))
    given = {
        "sessions": InMemorySessionStore(clock=clock),
        "preferences": InMemoryPreferenceStore(),
        "episodes": InMemoryEpisodicStore(),
        "embedder": HashingEmbedder(),
        "summarizer": what_was_said,
        "clock": clock,
    }
    return Chat("ann", "first", **(given | options))


def typed(*lines, chat: Chat | None = None, forget=None) -> tuple[list[str], int]:
    """What the REPL writes when somebody types these lines, and its exit code. An exception is raised in its place."""
    waiting = iter(lines)
    written: list[str] = []

    def read() -> str:
        line = next(waiting, EOFError())
        if isinstance(line, BaseException):
            raise line
        return line

    code = Repl(chat or a_chat(), read, written.append, forget).run()
    return written, code


def test_a_line_is_said_and_the_answer_is_written():
    written, code = typed("My name is Ann.\n", "What is my name?\n", "/exit\n")

    assert written[0] == "All right."
    assert "Ann" in written[1]
    assert written[-1] == "session first archived"
    assert code == 0


@pytest.mark.parametrize("end", ["/exit", "  /EXIT  now", EOFError(), KeyboardInterrupt()])
def test_however_it_ends_the_session_is_archived_and_the_exit_code_is_0(end):
    chat = a_chat()
    written, code = typed("My boots are BX-2207.", end, chat=chat)

    assert (written[-1], code) == ("session first archived", 0)


def test_nothing_said_is_nothing_archived():
    assert typed("/exit") == ([], 0)
    assert typed("", "   ", "/exit") == ([], 0)


def test_ctrl_c_while_the_model_thinks_keeps_the_turn_and_archives():
    async def interrupted(messages):
        raise KeyboardInterrupt

    chat = a_chat(model=interrupted)
    written, code = typed("My boots are BX-2207.", chat=chat)

    assert (written[-1], code) == ("session first archived", 0)


def test_the_commands_show_what_each_layer_holds():
    written, _ = typed(
        "My name is Ann and my boots are BX-2207.", "/history", "/sessions", "/prefs", "/memory", "/new", "/memory"
    )

    assert "user: My name is Ann and my boots are BX-2207." in written
    assert "assistant: All right." in written
    assert "first  2 turns  2026-03-01 00:00 UTC" in written
    assert "name: Ann" in written
    assert written.count("preference  name: Ann") == 2
    assert written.count("episode  [2026-03-01] My name is Ann and my boots are BX-2207.") == 1


def test_an_empty_memory_says_so():
    written, _ = typed("/history", "/sessions", "/prefs", "/memory")

    assert written[:3] == ["nothing was said yet", "no sessions", "no preferences"]
    assert written[3].startswith("nothing is remembered about you yet")


def test_new_begins_a_session_that_knows_the_old_one_only_by_memory():
    written, _ = typed("My boots are BX-2207.", "/new", "/history", "Where are my boots BX-2207?")

    assert written[1].startswith("new session 2026-03-01-000000-")
    assert written[2] == "nothing was said yet"
    assert written[3].startswith("An earlier conversation (2026-03-01) says: “My boots are BX-2207.")


@pytest.mark.parametrize("asked", ["/forget", "forget me", "Please forget me.", "请忘记我。"])
def test_forget_asks_empties_every_layer_and_says_how_much_went(asked):
    chat = a_chat(user_memory=InMemoryUserMemoryStore())
    lines = ("I like canary seeds.", "My order is BX-2207.", "/new", "hello", asked, "yes", "/memory", "Which seeds?")
    written, _ = typed(*lines, "/exit", chat=chat)

    assert "can't be undone" in written[4]
    assert "Forgotten: 2 sessions, 1 preferences, 1 episodes, 1 records. 已忘记。" in written
    assert written[6].startswith("nothing is remembered")
    assert written[7] == NOT_FOUND["en"]


@pytest.mark.parametrize("answer", ["no", "", "maybe", "yes, but later", "forget me", None])
def test_only_a_clear_yes_forgets(answer):
    called = []

    async def forget():
        called.append(True)
        return "a receipt"

    lines = ("I like canary seeds.", "forget me", *([] if answer is None else [answer, "/prefs"]))
    written, code = typed(*lines, forget=forget)

    assert (called, code) == ([], 0)
    assert KEPT in written
    assert answer is None or "canary seeds: likes" in written


def test_who_says_more_than_forget_me_is_answered():
    written, _ = typed("Don't forget me.", "I forget my order.", "You forgot me.")
    assert not any("undone" in line for line in written)


def test_what_forgets_everywhere_gives_the_receipt_and_the_conversation_keeps_nothing():
    async def forget():
        await chat.preferences.forget("ann")
        return "Forgotten: a receipt"

    chat = a_chat(sessions=None, episodes=None, embedder=None)
    written, _ = typed("I like canary seeds.", "/forget", "yes", "/prefs", chat=chat, forget=forget)

    assert written[2:] == ["Forgotten: a receipt", "no preferences", ""]
    assert chat.last_known.preferences == {}


@pytest.mark.parametrize("command", ["/frobnicate", "/", "/nwe please", "/home/ann"])
def test_an_unknown_command_names_the_known_ones_and_is_not_said(command):
    chat = a_chat()
    written, code = typed(command, "/history", chat=chat)

    assert written[0].startswith(f"unknown command {command.split()[0]}; there are /new /history")
    assert written[0].endswith("/exit")
    assert written[1] == "nothing was said yet"
    assert code == 0


def test_help_explains_every_command():
    written, _ = typed("/help")

    listed = {line.split()[0] for line in written if line}
    assert listed == {"/new", "/history", "/sessions", "/prefs", "/memory", "/forget", "/help", "/exit"}


def test_a_model_that_fails_is_an_error_line_and_the_conversation_goes_on():
    class Fails:
        calls = 0

        async def __call__(self, messages):
            self.calls += 1
            if self.calls == 1:
                raise RuntimeError("no answer today")
            return "here I am"

    written, code = typed("hello", "hello?", chat=a_chat(model=Fails()))

    assert written[:2] == ["error: no answer today", "here I am"]
    assert code == 0


def test_a_session_that_cant_be_archived_is_an_error_line_and_exit_code_1():
    def broken(turns):
        raise RuntimeError("no summary")

    written, code = typed("hello", "/exit", chat=a_chat(summarizer=broken))

    assert "no summary" in written[-1]
    assert code == 1


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("\ufeffhello\r\n", "hello"),
        ("half \ud83d done", "half \ufffd done"),
        ("\ud83d\ude00", "😀"),
        ("bad byte \udcff", "bad byte \ufffd"),
        ("  ", ""),
    ],
)
def test_a_line_is_taken_as_it_was_meant(line, text):
    assert tidy(line) == text


def test_surrogates_are_replaced_and_nul_is_refused_in_one_line():
    written, code = typed("I have half an emoji \ud83d.", "nul \0 here", "/history")

    assert written[1].startswith("error: text must not contain NUL")
    assert written[2] == "user: I have half an emoji \ufffd."
    assert code == 0


def test_five_megabytes_in_a_line_are_answered():
    written, code = typed("My boots are BX-2207. " + "长" * 1_700_000, "What number are my boots?")

    assert "BX-2207" in written[1]
    assert code == 0


def test_nothing_that_is_written_can_move_the_cursor_or_colour_the_terminal():
    async def hostile(messages):
        return "red \x1b[31m and \x9b31m\ttab\nline"

    written, _ = typed("hi", chat=a_chat(model=hostile))

    assert written[0] == "red \ufffd[31m and \ufffd31m\ttab\nline"
    assert printable("好 é 😀") == "好 é 😀"
