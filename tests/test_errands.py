"""What chat interfaces ask behind their user's back is answered without the brain."""

from __future__ import annotations

import pytest

from bigbrain import Brain, Chat, FixedModel, Flow, Turn, agent
from bigbrain.errands import ERRAND, is_errand
from bigbrain.messages import JSON, Message, Request, Text, ToolSpec, assistant, system, user
from tests.web.site import BOTH, CHAT, asking, serving

HISTORY = "### Chat History:\n<chat_history>\nUSER: hi\nASSISTANT: hello\n</chat_history>"
ERRANDS = [
    f"### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat history.\n{HISTORY}",
    f"### Task:\nGenerate 1-3 broad tags categorizing the main themes of the chat history.\n{HISTORY}",
    f"### Task:\nSuggest 3-5 relevant follow-up questions or prompts.\n{HISTORY}",
    "### Task:\nYou are an autocompletion system. Continue the text in `<text>`.\n<text>How do I</text>",
    "Provide a concise, 5-word-or-less title for the conversation, using title case conventions.\nUser: hi",
]
TURNS = [
    "Generate a concise, 3-5 word title for my essay",
    "### Task:\nwrite a poem about titles",
    f"Summarize this for me:\n{ERRANDS[0]}",
    "What does <chat_history> mean?",
    "",
]


@pytest.mark.parametrize("text", ERRANDS)
def test_an_errand_is_known_by_its_beginning(text: str) -> None:
    assert is_errand(Request(messages=(system("be brief"), user(text))))
    assert is_errand(Request(messages=(user("hi"), assistant("hello"), user(text))))
    assert not is_errand(Request(messages=(user(text),), tools=(ToolSpec("w"),)))
    assert not is_errand(Request(messages=(user(text), assistant("{"))))


@pytest.mark.parametrize("text", TURNS)
def test_what_people_say_is_no_errand(text: str) -> None:
    assert not is_errand(Request(messages=(user(text),)))


def test_a_conversation_without_an_end_is_no_errand() -> None:
    assert not is_errand(Request())
    assert not is_errand(Request(messages=(Message("user", (Text("x"),)), Message("user"))))


def brain(turns: list[str], **options: JSON) -> Brain:
    @agent
    def talk(turn: Turn, chat: Chat) -> None:
        turns.append(turn.last.text)
        turn.reply("of the brain")

    made = Brain("b", Flow(talk), **options)
    made.add_model(FixedModel("of the first model"))
    return made


@pytest.mark.parametrize("path", BOTH)
@pytest.mark.parametrize("stream", [False, True])
def test_an_errand_is_answered_by_the_cheap_model_and_no_turn_of_the_brain(path: str, stream: bool) -> None:
    turns: list[str] = []
    made = brain(turns)
    made.add_model(FixedModel("of the cheap model"), tags=("cheap",))
    with serving(made) as site:
        response = site.client.post(path, json=asking(ERRANDS[0], stream=stream))
        body = response.get_data(as_text=True)
        record = site.record(response.headers["X-Run-Id"])

    assert "of the cheap model" in body
    assert '"model":"b"' in body
    assert record.flow == ERRAND
    assert turns == []


def test_without_a_cheap_model_the_first_one_answers() -> None:
    turns: list[str] = []
    with serving(brain(turns)) as site:
        answer = site.client.post(CHAT, json=asking(ERRANDS[1])).json

    assert answer["choices"][0]["message"]["content"] == "of the first model"
    assert turns == []


def test_a_brain_without_a_model_and_one_that_wants_to_answer_itself() -> None:
    turns: list[str] = []

    @agent
    def talk(turn: Turn, chat: Chat) -> None:
        turns.append("taken")
        turn.reply("of the brain")

    for made in (Brain("b", Flow(talk)), brain(turns, errands=None)):
        with serving(made) as site:
            assert "of the brain" in site.client.post(CHAT, json=asking(ERRANDS[2])).get_data(as_text=True)
    assert len(turns) == 2


def test_a_rule_of_the_authors_own() -> None:
    turns: list[str] = []
    made = brain(turns, errands=lambda request: request.messages[-1].text == "title, please")
    with serving(made) as site:
        for text in ("title, please", ERRANDS[0]):
            site.client.post(CHAT, json=asking(text))

    assert turns == [ERRANDS[0]]


def test_nobody_can_ask_for_the_flow_of_errands_by_name() -> None:
    turns: list[str] = []
    with serving(brain(turns)) as site:
        served = site.client.get("/v1/models").json["data"]
        answer = site.client.post(CHAT, json={**asking("hi"), "model": ERRAND}).json

    assert [one["id"] for one in served] == ["b"]
    assert answer["choices"][0]["message"]["content"] == "of the brain"
