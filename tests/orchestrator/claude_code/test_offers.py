"""An installed CLI is asked once what it offers, and called in these words."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from bigbrain.errors import ModelBroke, ModelTimeout
from bigbrain.orchestrator.cancellation import limited
from bigbrain.orchestrator.claude_code.offers import CLOSING, NEEDED, offers
from bigbrain.scope import Scope

ENV = {"PATH": os.defpath}


def program(folder: Path, script: str) -> Path:
    path = folder / "claude"
    path.write_text(f"#!/bin/sh\n{script}")
    path.chmod(0o755)
    return path


def helpful(folder: Path, *options: str) -> Path:
    return program(
        folder, "echo asked >> asked\ncat <<'END'\nOptions:\n" + "\n".join(f"  {o}" for o in options) + "\nEND\n"
    )


def test_it_is_asked_once(tmp_path: Path) -> None:
    path = helpful(tmp_path, *NEEDED, *CLOSING)

    first = offers(str(path), ENV, tmp_path, Scope())
    second = offers(str(path), ENV, tmp_path, Scope())

    assert first.options == second.options == {*NEEDED, *CLOSING}
    assert (tmp_path / "asked").read_text() == "asked\n"


def test_one_that_was_replaced_is_asked_again(tmp_path: Path) -> None:
    offers(str(helpful(tmp_path, *NEEDED, *CLOSING)), ENV, tmp_path, Scope())
    newer = helpful(tmp_path, *NEEDED, *CLOSING, "--newer")

    assert "--newer" in offers(str(newer), ENV, tmp_path, Scope()).options


def test_it_is_found_on_the_path_of_the_environment_it_runs_in(tmp_path: Path) -> None:
    path = helpful(tmp_path, *NEEDED, *CLOSING)

    assert offers("claude", {"PATH": f"/nowhere:{tmp_path}:{os.defpath}"}, tmp_path, Scope()).path == str(path)


def test_options_are_read_however_they_are_written(tmp_path: Path) -> None:
    path = helpful(
        tmp_path, *NEEDED[2:], "-p, --print  Print", "--output-format <f>  see --mentioned", "--restricted  Off"
    )

    found = offers(str(path), ENV, tmp_path, Scope()).options

    assert {"--print", "--output-format", "--restricted"} <= found
    assert "--mentioned" not in found


def test_one_that_lacks_what_is_needed_says_which(tmp_path: Path) -> None:
    path = helpful(tmp_path, *NEEDED[:-1], *CLOSING)

    with pytest.raises(ModelBroke, match="is too old, it does not offer `--tools`; update it"):
        offers(str(path), ENV, tmp_path, Scope())


def test_one_that_fails_is_an_error(tmp_path: Path) -> None:
    path = program(tmp_path, "echo broken >&2; exit 4")

    with pytest.raises(ModelBroke, match="--help` ended with status 4: broken"):
        offers(str(path), ENV, tmp_path, Scope())


def test_a_folder_is_no_program(tmp_path: Path) -> None:
    with pytest.raises(ModelBroke, match="there is no Claude Code CLI"):
        offers(str(tmp_path), ENV, tmp_path, Scope())


def test_one_that_does_not_answer_is_stopped_in_time(tmp_path: Path) -> None:
    path = program(tmp_path, "sleep 100")

    with pytest.raises(ModelTimeout), limited(Scope(), time.monotonic() + 0.1) as own:
        offers(str(path), ENV, tmp_path, own)


def test_the_command_line_leaves_out_what_is_not_offered(tmp_path: Path) -> None:
    path = helpful(tmp_path, *NEEDED, "--setting-sources")
    arguments = offers(str(path), ENV, tmp_path, Scope()).arguments(
        session=("--resume", "an-id"), instructions=Path("/x/i.txt"), model=None
    )

    assert arguments == (
        str(path),
        *("--print", "--output-format", "stream-json", "--verbose"),
        *("--resume", "an-id"),
        *("--system-prompt-file", "/x/i.txt"),
        *("--tools", ""),
        *("--setting-sources", ""),
    )
