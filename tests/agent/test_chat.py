import asyncio
from datetime import UTC, datetime

import pytest

from tri_memory.agent.chat import Chat
from tri_memory.agent.forget_request import KEPT, SURE
from tri_memory.agent.models import ModelError
from tri_memory.agent.notice_rules import Rule
from tri_memory.agent.replies import NOT_FOUND
from tri_memory.clock import ManualClock
from tri_memory.contracts import ChatTurn
from tri_memory.embedding import HashingEmbedder
from tri_memory.episodic.archive import ArchiveError
from tri_memory.episodic.memory import InMemoryEpisodicStore
from tri_memory.preference.memory import InMemoryPreferenceStore
from tri_memory.session.memory import InMemorySessionStore


def what_was_said(turns) -> str:
    return " ".join(turn.content for turn in turns if turn.role == "user")


class Layers:
    """Three stores that several chats share."""

    def __init__(self):
        self.clock = ManualClock(datetime(2026, 3, 1, tzinfo=UTC))
        self.sessions = InMemorySessionStore(clock=self.clock)
        self.preferences = InMemoryPreferenceStore()
        self.episodes = InMemoryEpisodicStore()

    def chat(self, user="ann", session=None, **options) -> Chat:
        given = {
            "sessions": self.sessions,
            "preferences": self.preferences,
            "episodes": self.episodes,
            "embedder": HashingEmbedder(),
            "summarizer": what_was_said,
            "clock": self.clock,
        }
        return Chat(user, session, **(given | options))

    async def hold(self, text: str) -> bool:
        """Whether anything in any layer contains `text`."""
        for row in await self.sessions.list_sessions():
            if text in row.session_id or any(
                text in t.content for t in await self.sessions.get_history(row.session_id)
            ):
                return True
        return text in repr(vars(self.preferences)) + repr(vars(self.episodes)) + repr(self.episodes._episodes)


@pytest.fixture
def layers() -> Layers:
    return Layers()


class Model:
    """Says what it is told to say, and keeps the prompts."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.prompts = []

    async def __call__(self, messages):
        self.prompts.append(messages)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


async def test_both_turns_are_in_the_session_and_the_prompt_ends_with_the_question(layers):
    model = Model("hello Ann", "fine")
    chat = layers.chat(model=model)

    assert await chat.say("I'm Ann") == "hello Ann"
    await chat.say("how are you?")

    assert await chat.history() == [
        ChatTurn("user", "I'm Ann"),
        ChatTurn("assistant", "hello Ann"),
        ChatTurn("user", "how are you?"),
        ChatTurn("assistant", "fine"),
    ]
    assert [message["content"] for message in model.prompts[1][1:]] == ["I'm Ann", "hello Ann", "how are you?"]
    assert chat.last_prompt == model.prompts[1]


async def test_all_three_layers_reach_the_prompt(layers):
    chat = layers.chat()
    await chat.say("I wear size 42. My boots are BX-2207.")
    await chat.new()
    await chat.say("Where are my boots?")

    first = chat.last_prompt[0]["content"]
    assert "- size: 42" in first
    assert "[2026-03-01] I wear size 42. My boots are BX-2207." in first
    assert [section.name for section in chat.last_sections] == ["system", "preferences", "episodes", "window"]


async def test_a_chat_remembers_across_sessions_only_what_its_layers_keep(layers):
    for wanted, options in (
        ("BX-2207", {}),
        (NOT_FOUND["en"], {"episodes": None}),
        (NOT_FOUND["en"], {"sessions": None}),
    ):
        chat = layers.chat(f"user with {sorted(options)}", **options)
        await chat.say("My boots have the number BX-2207.")
        await chat.new()
        assert wanted in await chat.say("Which number have my boots?")


async def test_without_any_layer_each_message_stands_alone():
    chat = Chat("ann")
    await chat.say("My name is Ann.")

    assert await chat.say("What is my name?") == NOT_FOUND["en"]
    assert await chat.history() == []
    assert await chat.list_sessions() == []
    assert await chat.end() is None
    assert await chat.forget() == {"sessions": 0, "preferences": 0, "episodes": 0}


async def test_a_window_of_one_forgets_what_was_said_before_it(layers):
    chat = layers.chat(window=1, preferences=None, episodes=None)
    await chat.say("My name is Ann.")

    assert await chat.say("What is my name?") == NOT_FOUND["en"]


async def test_a_window_of_none_still_asks_the_question(layers):
    chat = layers.chat(window=0, model=Model("yes"))
    await chat.say("Anybody there?")

    assert chat.last_prompt[-1] == {"role": "user", "content": "Anybody there?"}


@pytest.mark.parametrize("user", [None, "", " ", "\n", 7, "a\0b", "\ud83d"])
def test_no_user_id_no_memory(user):
    with pytest.raises(ValueError, match="user_id"):
        Chat(user)


async def test_a_session_id_is_never_a_user_id(layers):
    with pytest.raises(ValueError, match="'ann' is the user id"):
        layers.chat("ann", "ann")
    with pytest.raises(ValueError, match="'ann' is the user id"):
        await layers.chat("ann").new("ann")


def test_episodes_without_an_embedder_are_refused_with_the_way_out(layers):
    with pytest.raises(ValueError, match="default_embedder"):
        layers.chat(embedder=None)


@pytest.mark.parametrize("text", ["", "  \n", "\u200b", None, 7, ["hi"], "half \ud83d", "a\0b"])
async def test_text_that_cant_be_kept_is_refused_and_nothing_is_written(layers, text):
    chat = layers.chat()

    with pytest.raises(ValueError, match="text"):
        await chat.say(text)

    assert await layers.sessions.list_sessions() == []


async def test_five_megabytes_are_a_turn_like_any_other(layers):
    text = "I like tea. " + "长" * 1_700_000
    chat = layers.chat(model=Model("that was long", "still here"))

    await chat.say(text)
    await chat.say("and now?")

    assert [turn.content for turn in await chat.history()] == [text, "that was long", "and now?", "still here"]
    assert await layers.preferences.all("ann") == {"tea": "likes"}


@pytest.mark.parametrize("failure", [ModelError("no answer"), RuntimeError("boom"), "", "  ", None, 7])
async def test_a_model_that_fails_leaves_the_users_turn_and_no_answer(layers, failure):
    chat = layers.chat(model=Model(failure, "here I am"))

    with pytest.raises(RuntimeError):
        await chat.say("I like tea.")

    assert await chat.history() == [ChatTurn("user", "I like tea.")]
    assert await layers.preferences.all("ann") == {"tea": "likes"}
    assert await chat.say("hello?") == "here I am"


async def test_a_cancelled_turn_is_kept_and_the_chat_goes_on(layers):
    started = asyncio.Event()

    async def hangs(messages):
        started.set()
        await asyncio.Event().wait()

    chat = layers.chat(model=hangs)
    turn = asyncio.create_task(chat.say("first"))
    await started.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    chat.model = Model("second answer")

    assert await chat.say("second") == "second answer"
    assert [t.content for t in await chat.history()] == ["first", "second", "second answer"]


async def test_an_answer_that_no_server_stores_is_cleaned(layers):
    chat = layers.chat(model=Model("half \ud83d and \0 done"))

    assert await chat.say("hi") == "half  and  done"


async def test_two_turns_at_once_are_answered_one_after_the_other(layers):
    async def echo(messages):
        await asyncio.sleep(0)
        return f"re: {messages[-1]['content']}"

    chat = layers.chat(model=echo)
    await asyncio.gather(*(chat.say(f"turn {i}") for i in range(5)))

    contents = [turn.content for turn in await chat.history()]
    assert contents == [text for i in range(5) for text in (f"turn {i}", f"re: turn {i}")]


async def test_two_users_with_the_same_session_id_never_meet(layers):
    ann, bob = layers.chat("ann", "s1"), layers.chat("bob", "s1")
    await ann.say("My name is Ann and my code is BX-2207.")
    await ann.end()

    assert await bob.say("What is my code?") == NOT_FOUND["en"]
    assert "BX-2207" not in repr(bob.last_prompt)
    assert [turn.content for turn in await bob.history()] == ["What is my code?", NOT_FOUND["en"]]
    assert [row.session_id for row in await bob.list_sessions()] == ["s1"]
    assert (await bob.remembered("code")).episodes == []


@pytest.mark.parametrize(("one", "other"), [("a", "a/b"), ("a/", "a"), ("a%2F", "a/"), ("A", "a"), ("李", "%E6%9D%8E")])
async def test_user_ids_that_look_alike_never_share_a_session(layers, one, other):
    first, second = layers.chat(one, "b/s"), layers.chat(other, "s")
    assert first.key != second.key

    await first.say("canary")

    assert await second.list_sessions() == []
    await second.forget()
    assert len(await first.history()) == 2


async def test_forget_leaves_nothing_of_this_user_in_any_layer_and_everything_of_the_others(layers):
    ann, bob = layers.chat("ann"), layers.chat("bob")
    for chat in (ann, bob):
        await chat.say(f"I like canary{chat.user_id} seeds.")
        await chat.new()
        await chat.say("Where was I?")

    assert await ann.forget() == {"sessions": 2, "preferences": 1, "episodes": 1}

    assert not await layers.hold("canaryann")
    assert await layers.hold("canarybob")
    assert ann.last_prompt == []
    assert ann.last_sections == []
    assert (await ann.remembered()).episodes == []
    assert await ann.end() is None
    assert await ann.say("Which seeds do I like?") == NOT_FOUND["en"]


@pytest.mark.parametrize(("asked", "sure"), [("forget me", "yes"), ("请忘记我。", "确定")])
async def test_forget_me_is_asked_once_and_forgets_after_a_clear_yes(layers, asked, sure):
    chat, bob = layers.chat("ann"), layers.chat("bob")
    for one in (chat, bob):
        await one.say(f"I like canary{one.user_id} seeds.")
    prompt = chat.last_prompt

    assert await chat.say(asked) == SURE
    assert await chat.say("no, keep it") == KEPT
    assert await layers.hold("canaryann")
    assert chat.last_prompt == prompt
    assert await chat.say(sure) not in (SURE, KEPT)  # nobody asked
    assert await chat.say(asked) == SURE
    assert await chat.say(sure) == "Forgotten: 1 sessions, 1 preferences, 0 episodes. 已忘记。"

    assert not await layers.hold("canaryann")
    assert await layers.hold("canarybob")
    assert await chat.history() == []


async def test_a_new_session_answers_nothing_that_the_last_one_asked(layers):
    chat = layers.chat("ann")
    await chat.say("I like canary seeds.")
    assert await chat.say("forget me") == SURE
    await chat.new()

    await chat.say("yes")

    assert await layers.hold("canary")


async def test_a_yes_whose_forgetting_fails_has_to_be_asked_for_again(layers, monkeypatch):
    async def fails(user_id):
        raise ConnectionError("gone")

    chat = layers.chat("ann")
    await chat.say("I like canary seeds.")
    await chat.say("forget me")
    monkeypatch.setattr(layers.preferences, "forget", fails)
    with pytest.raises(ConnectionError, match="gone"):
        await chat.say("yes")
    monkeypatch.undo()

    assert await chat.say("yes") not in (SURE, KEPT)
    assert await chat.say("forget me") == SURE
    await chat.say("yes")
    assert not await layers.hold("canary")


async def test_ending_archives_once_and_again_only_when_more_was_said(layers):
    chat = layers.chat()
    assert await chat.end() is None
    await chat.say("My boots are BX-2207.")

    first = await chat.end()
    assert first is not None
    assert (first.user_id, first.session_id) == ("ann", chat.key)
    assert await chat.end() is None
    await chat.say("They are green.")
    assert (await chat.end()).summary == "My boots are BX-2207. They are green."
    assert len((await layers.chat().remembered()).episodes) == 1


async def test_what_the_built_in_model_quoted_from_memory_is_not_remembered_again(layers):
    read = []

    async def summarise(turns):
        read.extend(turns)
        return what_was_said(turns)

    chat = layers.chat(summarizer=summarise)
    await chat.say("My boots are BX-2207.")
    await chat.new()
    assert "BX-2207" in await chat.say("Which number are my boots?")
    await chat.say("What is my name?")
    await chat.end()

    assert [turn.role for turn in read] == ["user"] * 3
    assert "BX-2207" not in read[1].content + read[2].content


@pytest.mark.parametrize("blank", [lambda turns: "", lambda turns: " \n"])
async def test_a_session_of_which_nothing_is_worth_keeping_is_archived_in_the_users_own_words(layers, blank):
    chat = layers.chat(summarizer=blank)
    await chat.say("hello")
    await chat.say("What is my order?")

    assert (await chat.end()).summary == "hello / What is my order?"


async def test_what_a_real_model_says_is_summarised_with_the_rest(layers):
    read = []
    chat = layers.chat(model=Model("Your boots ship on Monday."), summarizer=lambda turns: read.extend(turns) or "x")
    await chat.say("My boots are BX-2207.")
    await chat.end()

    assert read[1] == ChatTurn("assistant", "Your boots ship on Monday.")


async def test_a_session_is_not_recalled_into_itself(layers):
    chat = layers.chat()
    await chat.say("My boots are BX-2207.")
    await chat.end()
    await chat.say("Where are my boots?")

    assert '<memory name="episodes">' not in chat.last_prompt[0]["content"]


async def test_a_new_session_is_open_even_where_the_old_one_cant_be_archived(layers):
    def broken(turns):
        raise RuntimeError("no summary")

    chat = layers.chat(summarizer=broken)
    await chat.say("hello")
    before = chat.session_id

    with pytest.raises(ArchiveError, match="no summary"):
        await chat.new("next")

    assert chat.session_id == "next"
    assert [row.session_id for row in await chat.list_sessions()] == [before]
    assert await chat.history() == []


async def test_a_session_can_be_taken_up_again_by_its_id(layers):
    await layers.chat("ann", "monday").say("My name is Ann.")

    assert "Ann" in await layers.chat("ann", "monday", preferences=None).say("What is my name?")


async def test_what_memory_put_into_the_prompt_is_not_noticed_again_when_it_comes_back(layers):
    chat = layers.chat()
    await chat.say("I like tea.")
    await chat.say(chat.last_prompt[0]["content"])

    assert await layers.preferences.all("ann") == {"tea": "likes"}


async def test_the_newer_of_two_statements_is_kept(layers):
    chat = layers.chat()
    await chat.say("I love Chinese food.")
    await chat.say("I hate Chinese food.")

    assert await layers.preferences.all("ann") == {"Chinese food": "dislikes"}


async def test_a_teachers_own_rules_take_the_place_of_the_table(layers):
    chat = layers.chat(rules=[Rule(r"my cat is called (?P<what>\w+)", "cat", "{what}")])
    await chat.say("My cat is called Tom. I like tea.")

    assert await layers.preferences.all("ann") == {"cat": "Tom"}


async def test_an_embedder_that_fails_surfaces_and_the_users_turn_stays(layers):
    class Broken(HashingEmbedder):
        def encode(self, texts):
            raise RuntimeError("no vectors")

    chat = layers.chat(embedder=Broken())

    with pytest.raises(RuntimeError, match="no vectors"):
        await chat.say("hello")

    assert await chat.history() == [ChatTurn("user", "hello")]
