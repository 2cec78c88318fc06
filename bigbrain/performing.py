"""How work is done inside one step: an agent's turn, several turns at once, a group with all that its members are.

A group's members are sequences of their own, played here and not sent as steps,
because they wait for each other: a queue in between could deadlock. None of them
may give to the client live; what they made is delivered by the next stage around them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import assert_never

from bigbrain.answers import Answer
from bigbrain.budgets import Purse, Spent
from bigbrain.compiling import Binding, Deferral, Member, Members, Solo, Team, Work
from bigbrain.conversations import Conversation
from bigbrain.engine.plan import Item, Plan, UnknownChoice, Way
from bigbrain.engine.records import END, Deferred
from bigbrain.errors import BrainError, HandlerFailed, SelectError
from bigbrain.messages import Message
from bigbrain.notices import Notice
from bigbrain.progress import Piece
from bigbrain.racing import all_of, first_of
from bigbrain.run import Run
from bigbrain.savepoints import Bill, Savepoints
from bigbrain.scope import Scope
from bigbrain.trace import Trail, code_of
from bigbrain.triggers.deferring import put_off
from bigbrain.turns import Turn


@dataclass(frozen=True)
class Played:
    """What a piece of work came to: the messages that it made and the id that it selected, if any.

    heard: the messages stand in the shared conversation already. deferred: what it puts off, once it counts.
    responded: it came to a `respond` inside a group.
    """

    made: tuple[Message, ...] = ()
    selected: str | None = None
    heard: bool = False
    deferred: tuple[Deferred, ...] = ()
    responded: bool = False


@dataclass(frozen=True)
class Stand:
    """Where a piece of work stands: the conversation it sees, the client's answer if it may give to it live,
    whether nothing comes after it, and what was selected before it.

    shared: its messages are added to the conversation as it makes them, for others to see.
    """

    conversation: Conversation
    answer: Answer | None = None
    last: bool = False
    selected: str | None = None
    shared: bool = False


class Performer:
    """Plays the work of one plan within one step; keeps what is spent under each budget."""

    def __init__(
        self,
        bindings: Mapping[str, Binding],
        purse: Purse,
        spent: Mapping[str, Spent],
        savepoints: Savepoints,
        *,
        bill: Callable[[dict[str, Spent]], Bill],
        inside: list[Piece],
    ) -> None:
        """purse: this step's. spent: what earlier steps spent, by the paths of the flows with budgets.

        savepoints: what earlier attempts of this step have put by. bill: sums up what was spent so far, given the same
        under each budget. inside: gets what was played inside this step.
        """
        self._bill = bill
        self._inside = inside
        self._began = perf_counter()
        self._savepoints = savepoints
        self._bindings = bindings
        self._purse = purse
        self._before = spent
        self._purses: dict[str, Purse] = {}

    @property
    def spent(self) -> dict[str, Spent]:
        """What was spent so far under each budget."""
        return {**self._before, **{key: purse.account for key, purse in dict(self._purses).items()}}

    def _spent(self) -> None:
        self._savepoints.spent(lambda: self._bill(self.spent))

    def play(self, path: str, run: Run, stand: Stand) -> Played:
        """Does the work of one path. Raises `BrainError`: `HandlerFailed` for whatever else a handler raises."""
        binding = self._bindings[path]
        place = run.inside(path=path, flow=binding.flow, purse=self._own_purse(binding))
        try:
            with flow_told(place.trail, place.purse), self._piece(path, run, binding.flow, place.purse):
                return self._work(binding.work, place, stand)
        except BrainError:
            raise
        # a cancelled task of an `async def` handler is no `Exception`
        except (Exception, SystemExit, asyncio.CancelledError) as exc:
            raise HandlerFailed(f"{_who(binding.work)} of flow `{binding.flow}`, step {path}") from exc

    @contextmanager
    def _piece(self, path: str, run: Run, flow: str, purse: Purse) -> Iterator[None]:
        """Notes what is played inside this step, with its times and its cost."""
        begun, error = perf_counter(), ""
        try:
            yield
        except BaseException as exc:
            error = code_of(exc)
            raise
        finally:
            if path != run.path:
                took = self._since(begun)
                self._inside.append(Piece(path, flow, self._since(self._began) - took, took, purse.spent, error))

    @staticmethod
    def _since(moment: float) -> int:
        return round((perf_counter() - moment) * 1000)

    def _own_purse(self, binding: Binding) -> Purse:
        """A purse for one piece of work, inside those of the budgets around it."""
        purse = self._purse
        for key, budget in binding.budgets:
            if key not in self._purses:
                self._purses.setdefault(key, Purse(budget, around=purse, before=self._before.get(key)))
            purse = self._purses[key]
        return Purse(around=purse, told=self._spent)

    def _work(self, work: Work, run: Run, stand: Stand) -> Played:
        match work:
            case Solo():
                return self._solo(work, run, stand)
            case Team(solos):
                return self._team(solos, run, stand)
            case Members():
                return self._members(work, run, stand)
            case Notice():
                self._notify(work, run, stand.conversation)
                return Played()
            case Deferral():
                return Played(deferred=put_off(work, run, stand.conversation))
            case _:
                assert_never(work)

    def _solo(self, solo: Solo, run: Run, stand: Stand, number: int = 0) -> Played:
        run = replace(run, rounds=self._savepoints.rounds(f"{run.path}#{number}"))
        turn = Turn(
            stand.conversation if stand.shared else tuple(stand.conversation),
            run=run,
            answer=stand.answer,
            last=stand.last,
            heard=stand.conversation.add if stand.shared else _nobody,
        )
        chat = solo.agent.chat(solo.model, turn, run)
        try:
            solo.agent.act(turn, chat)
            turn.close()
        finally:
            chat.close()
        run.scope.check()
        return Played(turn.made, turn.selected, heard=stand.shared)

    def _team(self, solos: Sequence[Solo], run: Run, stand: Stand) -> Played:
        """All turns at once, each on the conversation as it was; their messages in the order of the agents."""

        def turn(number: int, scope: Scope) -> Played:
            own = Stand(Conversation(tuple(stand.conversation)), selected=stand.selected)
            return self._solo(solos[number], run.inside(path=run.path, scope=scope), own, number)

        turns = [(solo.agent.name, partial(turn, number)) for number, solo in enumerate(solos)]
        return merged(all_of(run.scope, turns))

    def _members(self, group: Members, run: Run, stand: Stand) -> Played:
        before = tuple(stand.conversation)
        # a group inside a group talks to all that are in the outer one
        common = stand.conversation if stand.shared else Conversation(before)
        if group.how == "group":
            self._recall(run.path, common)

        def member(member: Member, scope: Scope) -> Played:
            shared = group.how == "group"
            own = Stand(common if shared else Conversation(before), selected=stand.selected, shared=shared)
            return self.sequence(member.items, run.inside(path=run.path, scope=scope), own)

        members = [(one.name, partial(member, one)) for one in group.members]
        match group.how:
            case "all":
                return merged(all_of(run.scope, members))
            case "one":
                return first_of(run.scope, members)
            case "group":
                all_made = merged(all_of(run.scope, members))
                made = all_made.made if stand.shared else common.added
                return replace(all_made, made=made, heard=stand.shared)
            case _:
                assert_never(group.how)

    def sequence(self, items: Sequence[Item], run: Run, stand: Stand) -> Played:
        """Plays a member's own sequence to its end."""
        plan = Plan(tuple(items))
        made: list[Message] = []
        deferred: list[Deferred] = []
        selected = stand.selected
        way = _after(partial(plan.first, selected))
        responded = False
        while True:
            responded = responded or way.marks > 0
            if way.used:
                selected = None
            if way.path == END:
                chosen = selected if selected != stand.selected else None
                return Played(tuple(made), chosen, deferred=tuple(deferred), responded=responded)
            run.scope.check()
            played = self._played_before(way.path, run, shared=stand.shared)
            if played is None:
                played = self.play(way.path, run, Stand(stand.conversation, selected=selected, shared=stand.shared))
                self._savepoints.flow_ended(
                    way.path, played.made, played.selected, played.deferred, responded=played.responded
                )
            made += played.made
            deferred += played.deferred
            responded = responded or played.responded
            if not played.heard:
                for message in played.made:
                    stand.conversation.add(message)
            selected = played.selected or selected
            way = _after(partial(plan.after, way.path, selected))

    def _played_before(self, path: str, run: Run, *, shared: bool) -> Played | None:
        """What a member's flow came to in an earlier attempt of this step, if it ended there."""
        saved = self._savepoints.flows.get(path)
        if saved is None:
            return None
        flow = self._bindings[path].flow
        run.trail.at(flow=flow, path=path).tell("cached")
        self._inside.append(Piece(path, flow, self._since(self._began), 0, kept=True))
        return Played(saved.messages, saved.selected, shared, saved.deferred, saved.responded)

    def _recall(self, path: str, conversation: Conversation) -> None:
        """Adds what the members of a group said in an earlier attempt, in the order in which they did."""
        for saved in self._savepoints.flows.values():
            if saved.place.startswith(f"{path}/"):
                for message in saved.messages:
                    conversation.add(message)

    @staticmethod
    def _notify(notice: Notice, run: Run, conversation: Sequence[Message]) -> None:
        text = next((message.text for message in reversed(conversation) if message.role == "assistant"), "")
        if not text:
            return
        try:
            # Standard Webhooks parts an id from what follows it by a dot; the run of a group's member has some
            notice.tell(text, f"{run.id}-{run.path}".replace(".", "~"), run.scope)
        except Exception as exc:
            run.scope.check()
            # whoever is told is not part of the answer: a failure is on record and that is all
            # its words may hold an address with a key in it
            run.trail.tell("notify", to=notice.name, ok=False, error=code_of(exc))
        else:
            run.trail.tell("notify", to=notice.name, ok=True)


def _who(work: Work) -> str:
    match work:
        case Solo(agent=agent):
            return f"agent `{agent.name}`"
        case Deferral(id=id):
            return f"the time of trigger `{id}`"
        case _:
            return "a group"


def _nobody(_: Message) -> None:
    """Nobody hears what a turn on its own makes before the turn is over."""


def _after(go: Callable[[], Way]) -> Way:
    try:
        return go()
    except UnknownChoice as exc:
        raise SelectError(str(exc)) from None


def merged(played: Sequence[Played]) -> Played:
    """All that was made, in order. Raises `SelectError` when different ids were selected."""
    chosen = {one.selected for one in played if one.selected is not None}
    if len(chosen) > 1:
        ids = ", ".join(f"`{id}`" for id in sorted(chosen))
        raise SelectError(f"agents that take their turns at once selected different flows: {ids}")
    return Played(
        tuple(message for one in played for message in one.made),
        next(iter(chosen), None),
        deferred=tuple(deferred for one in played for deferred in one.deferred),
        responded=any(one.responded for one in played),
    )


@contextmanager
def flow_told(trail: Trail, purse: Purse) -> Iterator[None]:
    """Tells of the beginning and the end of a piece of work, and what it spent itself."""
    trail.tell("flow.start")
    with trail.timed("flow.end") as detail:
        try:
            yield
        finally:
            detail["usage"] = purse.spent
