"""Misuse that the types refuse: mypy checks this file, and an ignore that ignores nothing is an error."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import assert_type

from bigbrain.agents import Agent, agent
from bigbrain.chat import Chat
from bigbrain.flows import Flow
from bigbrain.messages import ToolCall
from bigbrain.models import Model
from bigbrain.orchestrator import Agent as Theme
from bigbrain.orchestrator import Orchestrator
from bigbrain.tools import Tool, tool
from bigbrain.triggers.chains import Every, Once
from bigbrain.turns import Turn


@dataclass
class Intent:
    id: str


@tool
def double(x: int) -> int:
    """Doubles a number."""
    return 2 * x


@agent(schema=Intent)
def router(turn: Turn, chat: Chat) -> None:
    turn.with_model(Model("m"))  # type: ignore[attr-defined]
    turn.asking(Model("m"))  # type: ignore[attr-defined]
    turn.ask("hi")  # type: ignore[attr-defined]
    chat.reply("hi")  # type: ignore[attr-defined]
    chat.select("a")  # type: ignore[attr-defined]
    turn.run_id = "another"  # type: ignore[misc]
    assert_type(chat.ask("hi").extract(Intent), Intent)
    assert_type(turn.payload(Intent), Intent | None)


@agent  # type: ignore[arg-type]
def forgets_the_chat(turn: Turn) -> None:
    turn.reply("hi")


def misuse(one: Agent, call: ToolCall, bare: Tool[..., object]) -> None:
    one.ask("hi")  # type: ignore[attr-defined]
    one.model = Model("m")  # type: ignore[misc]
    router.ask("hi")  # type: ignore[attr-defined]
    Flow(router).durable()  # type: ignore[attr-defined]
    assert_type(double(2), int)
    double("2")  # type: ignore[arg-type]
    assert_type(call.extract(Intent), Intent)
    assert_type(bare.bind(lambda: 1)(), int)


def misuse_of_orchestrators(theme: Theme) -> None:
    Orchestrator([theme]).execute_task("go", [], [], print)  # type: ignore[call-arg]
    Orchestrator([theme], maxSteps=5)  # type: ignore[call-arg]
    Flow(theme)  # type: ignore[arg-type]
    Flow(Orchestrator([theme]))


def misuse_of_triggers(turn: Turn) -> None:
    Every("@daily").durable()  # type: ignore[attr-defined]
    Every("@daily", catch_up="each")  # type: ignore[arg-type]
    Every("@daily", overlap="wait")  # type: ignore[arg-type]
    Once(lambda turn: object())  # type: ignore[arg-type]
    Every("@daily") >> router  # type: ignore[operator]
    assert_type(Once(minutes=1) >> Flow(router), Flow)
    assert_type(turn.due, datetime | None)
