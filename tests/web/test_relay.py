"""One run's events as the frames of one stream."""

from __future__ import annotations

from bigbrain.engine.channels import Hub
from bigbrain.engine.records import LogId, NewRun
from bigbrain.engine.store import RunStore
from bigbrain.events import Closed, Delta, Event, Finished, Opened, Started, write_events
from bigbrain.messages import Request, Text
from bigbrain.wire import openai_chat
from web.departures import Client
from web.relay import Frames, Relay, Stream

STARTED = Started("r", "b", 1)


class Leaving:
    """Counts how often a stream leaves its run."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> None:
        self.times += 1


def test_events_that_come_together_are_one_chunk_and_the_run_is_left_before_the_last(store: RunStore) -> None:
    hub, leaving = Hub(store), Leaving()
    with hub.follow("r", 1) as follower:
        lines: list[list[Event]] = [
            [Opened(0, Text()), Delta(0, "a")],
            [Delta(0, "b"), Delta(0, "c")],
            [Closed(0), Finished("end")],
        ]
        for seq, events in enumerate(lines, 2):
            follower.post((LogId(seq), write_events(events)))
        frames = Frames(openai_chat, Request(stream=True))
        stream = Stream(Relay(follower, Client()), frames, frames.write([STARTED]), leaving)
        chunks = [(next(stream), leaving.times) for _ in range(4)]
        rest = list(stream)
        stream.close()
    hub.close()

    assert [(chunk.count(b"data: "), times) for chunk, times in chunks] == [(1, 0), (1, 0), (2, 0), (2, 1)]
    assert rest == []
    assert leaving.times == 1


def test_a_client_that_has_left_is_told_nothing_more(store: RunStore) -> None:
    hub, leaving, client = Hub(store), Leaving(), Client()
    with hub.follow("r", 1) as follower:
        frames = Frames(openai_chat, Request(stream=True))
        stream = Stream(Relay(follower, client), frames, b"first", leaving)
        first = next(stream)
        client.leave()
        rest = list(stream)
    hub.close()

    assert (first, rest, leaving.times) == (b"first", [], 1)


def test_a_client_that_left_before_it_was_served_is_not_waited_for(store: RunStore) -> None:
    hub, client = Hub(store), Client()
    client.leave()
    with hub.follow("r", 1) as follower:
        relay = Relay(follower, client, silence=60.0)
        events = relay.read()
    hub.close()

    assert (events, relay.left) == ([], True)


def test_a_line_that_cannot_be_written_ends_the_stream_with_an_error_frame(store: RunStore) -> None:
    hub, leaving = Hub(store), Leaving()
    with hub.follow("r", 1) as follower:
        follower.post((LogId(2), write_events([Delta(0, "a part that was never opened")])))
        frames = Frames(openai_chat, Request(stream=True))
        stream = Stream(Relay(follower, Client()), frames, frames.write([STARTED]), leaving)
        _, *rest = list(stream)
    hub.close()

    assert len(rest) == 1
    assert b"The brain failed to answer." in rest[0]
    assert leaving.times == 1


def test_a_follower_that_missed_something_gets_it_from_the_log(store: RunStore) -> None:
    store.start(NewRun("r", "b", "p", "1", STARTED, b"{}", b"{}"), "")
    claim = store.claim("r", "1", 1, "me")
    assert claim is not None
    hub = Hub(store)
    with hub.follow("r", 1) as follower:
        store.append([("r", claim.fence, 2, write_events([Opened(0, Text()), Delta(0, "a")]))])
        store.append([("r", claim.fence, 3, write_events([Delta(0, "b")]))])
        follower.post((LogId(3), write_events([Delta(0, "b")])))
        relay = Relay(follower, Client())
        events = relay.read()
    hub.close()

    assert [event.text for event in events if isinstance(event, Delta)] == ["a", "b"]
