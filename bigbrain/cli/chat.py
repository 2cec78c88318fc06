"""`bigbrain chat`: talk with a brain, or any OpenAI-compatible model, in the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import click
from openai import APIConnectionError, APIError, OpenAI
from openai.types.chat import ChatCompletionMessageParam
from rich.console import Console

from bigbrain.errors import ModelBroke
from bigbrain.settings import Settings


@click.command()
@click.option("--url", default="http://127.0.0.1:8080", show_default=True, help="Where the brain is.")
@click.option("--model", help="Whom to talk with.  [default: the first model there]")
def chat(url: str, model: str | None) -> None:
    """Talk with a brain; an empty line or Ctrl-D ends it, Ctrl-C stops an answer."""
    key = next(iter(Settings.read().keys), "none")  # the SDK wants one even where nobody asks for it
    with OpenAI(base_url=with_version(url), api_key=key, max_retries=0) as client:
        name = model or _first_model(client, url)
        console = Console(highlight=False, soft_wrap=True)
        console.print(f"[dim]talking with[/] [bold]{name}[/] [dim]at {url}[/]")
        _talk(client, name, console)


def with_version(url: str) -> str:
    """Give the base URL that the SDK wants: with `/v1` where `url` has no path."""
    return url if urlsplit(url).path.strip("/") else f"{url.rstrip('/')}/v1"


def _first_model(client: OpenAI, url: str) -> str:
    try:
        models = client.models.list().data
    except APIConnectionError as error:
        raise ModelBroke(
            f"nobody answers at `{url}`; start a brain with `bigbrain up`, or name it with `--url`"
        ) from error
    except APIError as error:
        raise ModelBroke(f"`{url}` does not tell its models: {error.message}; name one with `--model`") from error
    if not models:
        raise ModelBroke(f"`{url}` has no model")
    return models[0].id


def _talk(client: OpenAI, model: str, console: Console) -> None:
    said: list[ChatCompletionMessageParam] = []
    while text := _ask(console):
        said.append({"role": "user", "content": text})
        answer = ""
        try:
            for piece in _answer(client, model, said):
                answer += piece
                console.print(piece, end="", markup=False)
        except KeyboardInterrupt:
            console.print(" [dim](stopped)[/]", end="")
        except APIError as error:
            console.print(f"[red]{error.message}[/]", end="")
        console.print()
        # A question without any answer is forgotten: two of the user's in a row confuse models.
        said = [*said, {"role": "assistant", "content": answer}] if answer else said[:-1]


def _ask(console: Console) -> str:
    try:
        return console.input("[bold cyan]you ›[/] ").strip()
    except (EOFError, KeyboardInterrupt):
        console.print()
        return ""


def _answer(client: OpenAI, model: str, said: list[ChatCompletionMessageParam]) -> Iterator[str]:
    with client.chat.completions.create(model=model, messages=said, stream=True) as chunks:
        for chunk in chunks:
            for choice in chunk.choices:
                yield choice.delta.content or ""
