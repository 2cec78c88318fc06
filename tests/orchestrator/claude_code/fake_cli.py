"""A program that behaves as the Claude Code CLI does (version 2.1.332), its model's replies taken from a script.

It is copied into a folder and made executable (see `cli.py`); it runs with `python -I -S`, so it imports little.
In `$HOME/script.json` stands a list of replies, used one for each call that takes up a session:

    pieces      texts of the reply, streamed
    again       lists of pieces: drafts that broke off before, each streamed and given up
    continued   lists of pieces: messages before, each cut by the token limit
    wait        a file, awaited before the reply
    hang        after the pieces: never an end
    after       after the result: `hang`
    stubborn    ignores TERM
    child       starts a process that sleeps, in the background, its outputs open
    raw         lines written as they are, instead of an answer
    flood       bytes written as one line, instead of an answer; with `lines`, that often
    stderr      written to the error output
    result      fields of the result, such as `is_error`
    status      exit status

Each call leaves a folder in its temporary folder, as the real one does. What it was called with goes to `$HOME/calls.jsonl`, a line each; what a session holds, to `$HOME/sessions/ID.json`.
"""

# What `pathlib` needs takes longer to import than all the rest.
# ruff: noqa: PTH102, PTH105, PTH109, PTH110, PTH118, PTH123, PTH208

from __future__ import annotations

import json
import os
import signal
import sys
import time

HOME = os.environ["HOME"]

HELP = """Usage: claude [options] [command] [prompt]

Options:
  --bare                                Minimal mode: set --system-prompt[-file]
  --disable-slash-commands              Disable all skills and commands
  --include-partial-messages            Include partial message chunks
  --model <model>                       Model for the current session
  --output-format <format>              "text", "json" or "stream-json"
  -p, --print                           Print response and exit
  --restricted                          Restricted mode
  -r, --resume [value]                  Resume a conversation by session ID
  --session-id <uuid>                   Use a specific session ID
  --setting-sources <sources>           Setting sources to load
  --strict-mcp-config                   Only use MCP servers from --mcp-config
  --system-prompt <prompt>              System prompt to use
  --system-prompt-snapshot <on|off>     Record the system prompt once
  --tools <tools...>                    Built-in tools, "" for none
  --verbose                             Override the verbose setting
"""


def read(name, otherwise):
    try:
        with open(f"{HOME}/{name}") as file:
            return json.load(file)
    except FileNotFoundError:
        return otherwise


def write(name, value):
    with open(f"{HOME}/{name}.new", "w") as file:
        json.dump(value, file)
    os.replace(f"{HOME}/{name}.new", f"{HOME}/{name}")


def say(value):
    print(json.dumps(value), flush=True)


def note(call):
    with open(f"{HOME}/calls.jsonl", "a") as file:
        file.write(json.dumps(call) + "\n")


def options(argv):
    found, name = {}, ""
    for word in argv:
        if word.startswith("--"):
            name = word
            found[name] = None
        else:
            found[name] = word
    return found


class Answer:
    def __init__(self, session, partial):
        self.session, self.partial, self.number = session, partial, 0

    def frame(self, kind, **fields):
        if self.partial:
            event = {"type": kind, **fields}
            say({"type": "stream_event", "event": event, "session_id": self.session, "parent_tool_use_id": None})

    def message(self, pieces, stop):
        """One message of the model; one that broke off (`stop` is None) has no `assistant` of its own."""
        self.number += 1
        name = f"msg_{os.getpid()}_{self.number}"
        head = {"id": name, "type": "message", "role": "assistant", "model": "fake", "stop_reason": None}
        usage = {"input_tokens": 7, "output_tokens": 1}
        self.frame("message_start", message={**head, "content": [], "usage": usage})
        self.frame("content_block_start", index=0, content_block={"type": "text", "text": ""})
        for piece in pieces:
            self.frame("content_block_delta", index=0, delta={"type": "text_delta", "text": piece})
        if stop:
            content = [{"type": "text", "text": "".join(pieces)}]
            message = {**head, "content": content, "usage": usage}
            say({"type": "assistant", "message": message, "parent_tool_use_id": None, "session_id": self.session})
        self.frame("content_block_stop", index=0)
        if stop:
            self.frame("message_delta", delta={"stop_reason": stop}, usage={"output_tokens": len(pieces)})
        self.frame("message_stop")

    def result(self, text, **fields):
        usage = {"input_tokens": 7, "output_tokens": 2, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 5}
        say(
            {
                "type": "result",
                "subtype": "success",
                "is_error": False,
                "api_error_status": None,
                "result": text,
                "stop_reason": "end_turn",
                "session_id": self.session,
                "usage": usage,
                **fields,
            }
        )


def hang():
    while True:
        time.sleep(1)


def play(reply, answer):
    if reply.get("stubborn"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if reply.get("child") and os.fork() == 0:
        with open(f"{HOME}/child", "w") as file:
            file.write(str(os.getpid()))
        hang()
    while reply.get("wait") and not os.path.exists(f"{HOME}/{reply['wait']}"):
        time.sleep(0.005)
    print(reply.get("stderr", '[claude-code:unrecognized_model] {"model":"fake"}'), file=sys.stderr, flush=True)
    for pieces in reply.get("again", []):
        answer.message(pieces, None)
    for pieces in reply.get("continued", []):
        answer.message(pieces, "max_tokens")
    if "raw" in reply or "flood" in reply:
        for line in reply.get("raw", []):
            print(line, flush=True)
        for _ in range(reply.get("lines", 1)):
            sys.stdout.write("x" * reply.get("flood", 0))
        sys.exit(reply.get("status", 0))
    pieces = reply["pieces"]
    if reply.get("hang"):
        answer.message(pieces, None)
        hang()
    answer.message(pieces, "end_turn")
    answer.result("".join(pieces), **reply.get("result", {}))
    if reply.get("after") == "hang":
        hang()
    sys.exit(reply.get("status", 0))


def main():
    if sys.argv[1:] == ["--help"]:
        print(read("help.json", HELP))
        return
    given = options(sys.argv[1:])
    prompt = sys.stdin.read()
    with open(given["--system-prompt-file"]) as file:
        instructions = file.read()
    call = {"argv": sys.argv[1:], "prompt": prompt, "instructions": instructions, "env": dict(os.environ)}
    call |= {"cwd": os.getcwd(), "found": os.listdir("."), "pid": os.getpid(), "group": os.getpgid(0)}
    session = given.get("--resume") or given["--session-id"]
    known = read(f"sessions/{session}.json", None)
    if "--session-id" in given and known is not None:
        note(call)
        sys.exit(f"Error: Session ID {session} is already in use.")
    answer = Answer(session, "--include-partial-messages" in given)
    if "--resume" in given and known is None:
        errors = [f"No conversation found with session ID: {session}"]
        note(call)
        answer.result(None, subtype="error_during_execution", is_error=True, errors=errors, usage={})
        sys.exit(errors[0])
    heard = [*(known or []), prompt]
    write(f"sessions/{session}.json", heard)
    say({"type": "system", "subtype": "init", "session_id": session, "tools": []})
    script = read("script.json", [])
    reply = script.pop(0) if script else {"pieces": ["heard: ", " | ".join(heard)]}
    write("script.json", script)
    os.mkdir(os.path.join(os.environ["TMPDIR"], f"probe-{os.getpid()}"))
    # Last of all: whoever sees it may stop us, and the next call is to find all this.
    note(call)
    play(reply, answer)


main()
