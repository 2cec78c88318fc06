"""Whatever a brain is and whatever its model answers: every protocol, streamed or not, tells the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from bigbrain import Brain, Flow
from bigbrain.events import checked, collect
from bigbrain.messages import Response, Text, Thinking, ToolCall, Usage
from bigbrain.wire import sse
from tests.contracts.values import arguments, names, words
from tests.scripted import Script
from tests.test_random_brains import Node, Reference, brains, conflicts, flow_of
from tests.web.site import ALL, DIALECTS, Site, asking_by, serving

EVERYWHERE = [(path, stream) for path in ALL for stream in (False, True)]
quick = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def read(site: Site, path: str, stream: bool) -> Response:
    """The answer as the protocol's client has it, read by the other half of the dialect, in legal order."""
    response = site.client.post(path, json=asking_by(path, "go", stream=stream))
    dialect = DIALECTS[path]
    assert response.status_code == 200, response.get_data()
    if not stream:
        return dialect.read_response(response.json)
    return collect(checked(dialect.read_events(sse.read([response.get_data()]))))


def told(site: Site) -> Iterator[Response]:
    for path, stream in EVERYWHERE:
        yield read(site, path, stream)


@quick
@given(brains.filter(lambda nodes: not any(conflicts(nodes))))
def test_a_random_brain_says_the_same_everywhere(nodes: list[Node]) -> None:
    flow = flow_of(nodes)
    assert flow is not None
    assume(not Brain("b", flow).faults())
    reference = Reference()
    reference.play(nodes)
    with serving(Brain("b", flow)) as site:
        answers = list(told(site))

    assert {answer.text for answer in answers} == {reference.answer}
    assert {answer.stop for answer in answers} == {"end"}
    assert len({answer.usage for answer in answers}) == 1


texts = st.builds(Text, words)
thoughts = st.builds(Thinking, words)
calls = st.lists(st.builds(ToolCall, names, names, arguments), max_size=3, unique_by=lambda call: call.id)
counts = st.integers(0, 9999)
answers = st.builds(
    Response,
    parts=st.builds(lambda before, after: (*before, *after), st.lists(texts | thoughts, max_size=4), calls),
    stop=st.sampled_from(["end", "length", "calls"]),
    usage=st.builds(Usage, counts, counts, counts, counts),
)


@quick
@given(answers)
def test_a_random_answer_passes_everywhere_with_its_calls_its_end_and_its_cost(answer: Response) -> None:
    with serving(Brain("b", Flow(model=Script(answer)))) as site:
        everywhere = list(told(site))

    stop = "length" if answer.stop == "length" else "calls" if answer.calls else "end"
    assert {one.text for one in everywhere} == {answer.text}
    assert {"".join(part.text for part in one.parts if isinstance(part, Thinking)) for one in everywhere} == {
        "".join(part.text for part in answer.parts if isinstance(part, Thinking))
    }
    for one in everywhere:
        assert [(call.id, call.name, call.input) for call in one.calls] == [
            (call.id, call.name, call.input) for call in answer.calls
        ]
    assert {one.stop for one in everywhere} == {stop}
    assert {one.usage for one in everywhere} == {answer.usage}


pytestmark = pytest.mark.filterwarnings("error")
