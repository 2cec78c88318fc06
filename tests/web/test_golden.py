"""What is sent is what was recorded; `python -m tests.web.golden` records it anew."""

from __future__ import annotations

from tests.web.golden import FOLDER, recordings


def test_what_is_sent_for_a_fixed_run_and_clock_has_not_changed() -> None:
    sent = dict(recordings())
    changed = [str(file.relative_to(FOLDER)) for file in sent if not file.is_file() or file.read_bytes() != sent[file]]
    forgotten = {file for file in FOLDER.rglob("*.*") if file.suffix in (".sse", ".json")} - set(sent)

    assert changed == []
    assert forgotten == set()
