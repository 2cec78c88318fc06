"""`bigbrain new`: a small brain to start from, which runs as it is."""

from __future__ import annotations

import re
from pathlib import Path

import click

from bigbrain.errors import WiringError

BRAIN = '''\
"""{name}: a brain that says back what it hears, until you teach it more."""

from __future__ import annotations

from bigbrain import Brain, Chat, Flow, Turn, agent


@agent
def echo(turn: Turn, chat: Chat) -> None:
    """Answer without any model; `chat.ask` is the way to one."""
    turn.reply(f"You said: {{turn.last.text}}")


brain = Brain("{name}", Flow(echo))

if __name__ == "__main__":
    brain.serve()
'''

README = """\
# {name}

    bigbrain check brain        # the tree, and every fault of the wiring
    python brain.py             # serve it from one process, at http://127.0.0.1:8080
    bigbrain up brain           # serve it with web servers, workers and Redis
    bigbrain chat               # talk with it, from another terminal

Any client of the OpenAI or Anthropic APIs can use it: base URL `http://127.0.0.1:8080/v1`
(Anthropic: without `/v1`), model `{name}`, any key.

To let it ask a model, set `BIG_BRAIN_API_KEY`, and `BIG_BRAIN_BASE_URL` unless the model is OpenAI's.
"""


@click.command()
@click.argument("name")
def new(name: str) -> None:
    """Write a small brain project into a new folder NAME."""
    if not re.fullmatch(r"[a-z][a-z0-9_-]{0,62}", name):
        raise WiringError(f"`{name}` cannot name a brain; use small letters, digits, `-` and `_`, a letter first")
    folder = Path(name)
    try:
        folder.mkdir()
    except FileExistsError as error:
        raise WiringError(f"`{name}` is here already; choose another name") from error
    (folder / "brain.py").write_text(BRAIN.format(name=name), encoding="utf-8")
    (folder / "README.md").write_text(README.format(name=name), encoding="utf-8")
    click.echo(f"wrote {name}/brain.py and {name}/README.md; next:\n  cd {name} && python brain.py")
