"""Every sample runs in one process and as a deployment, and says what its docstring says."""

from __future__ import annotations

from pathlib import Path

import openai
import pytest

from tests.bench.targets import free_port
from tests.stack.deployment import deployed
from tests.upstream import Upstream

pytestmark = pytest.mark.slow

WAYS = [("serve",), ("up", "--web", "1")]


def said(url: str, model: str = "any") -> str:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="k") as client:
        chunks = client.chat.completions.create(model=model, messages=[{"role": "user", "content": "go"}], stream=True)
        return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("sample", "answer"),
    [("hello", "At your service."), ("streaming", "one two three\n\n4 5 6 \n\nSEVEN EIGHT")],
)
def test_a_sample_says_what_it_says_it_says(way: tuple[str, ...], sample: str, answer: str, tmp_path: Path) -> None:
    with deployed(*way, f"samples.{sample}", "--port", str(free_port()), data=tmp_path) as deployment:
        assert said(deployment.url) == answer


@pytest.mark.parametrize("way", WAYS)
def test_own_models_answer_from_their_own_servers(way: tuple[str, ...], tmp_path: Path) -> None:
    with Upstream() as upstream:
        env = {
            "OPENAI_URL": upstream.openai,
            "OPENAI_MODEL": "text:from the first",
            "ANTHROPIC_URL": upstream.anthropic,
            "ANTHROPIC_MODEL": "text:from the second",
        }
        with deployed(*way, "samples.own_model", "--port", str(free_port()), data=tmp_path, **env) as deployment:
            answers = said(deployment.url, "own"), said(deployment.url, "second")
        paths = [request.path for request in upstream.requests]

    assert answers == ("from the first", "from the second")
    assert paths == ["/v1/chat/completions", "/v1/messages"]


def test_every_sample_is_short_and_listed() -> None:
    folder = Path(__file__).resolve().parents[2] / "samples"
    guide = (folder / "README.md").read_text()
    for sample in folder.glob("*.py"):
        assert len(sample.read_text().splitlines()) < 60, sample
        assert f"({sample.name})" in guide, sample
