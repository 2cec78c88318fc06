"""What a tool is, what it takes, and what is wrong about one before it ever runs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bigbrain.errors import ToolError, WiringError
from bigbrain.orchestrator import Field, Tool


def tool(given: Any = "The user's name", **options: Any) -> Tool:
    return Tool("user-retriever", "Retrieve a user.", given, "JSON", options.pop("call", str), **options)


FIELDS = [Field("path", "File path"), Field("mode", "How", required=False)]


def test_a_model_is_told_all_that_it_chooses_and_calls_a_tool_by() -> None:
    assert tool().write() == {
        "tag": "user-retriever",
        "description": "Retrieve a user.",
        "input": "The user's name",
        "output": "JSON",
    }
    assert tool(FIELDS).write()["input"] == [
        {"name": "path", "description": "File path", "required": True},
        {"name": "mode", "description": "How", "required": False},
    ]


def test_fields_may_be_given_as_plain_mappings() -> None:
    given = [{"name": "path", "description": "File path", "required": True}, {"name": "mode", "required": False}]

    assert tool(given).fields == (Field("path", "File path"), Field("mode", required=False))


def test_a_tool_does_not_change_with_the_list_it_was_made_of() -> None:
    given = list(FIELDS)
    made = tool(given)
    given.clear()

    assert len(made.fields or ()) == 2


def test_a_text_arrives_as_a_text_and_fields_as_an_object() -> None:
    assert tool().read("User 1") == "User 1"
    assert tool().read("") == ""
    assert tool(FIELDS).read({"path": "/tmp/x", "mode": "w"}) == {"path": "/tmp/x", "mode": "w"}
    assert tool(FIELDS).read({"path": "/tmp/x"}) == {"path": "/tmp/x"}
    assert tool(FIELDS).read({"path": "/tmp/x", "why": "because"}) == {"path": "/tmp/x"}
    assert tool(FIELDS).read({"path": "/tmp/x", "mode": None}) == {"path": "/tmp/x"}
    assert tool(FIELDS).read({"path": "", "mode": False}) == {"path": "", "mode": False}


@pytest.mark.parametrize("nothing", [None, "", "   ", "null", {}, "{}"])
def test_nothing_is_an_object_without_fields(nothing: Any) -> None:
    assert tool(()).read(nothing) == {}
    with pytest.raises(ToolError, match=r"lacks `path`; it takes `path`, `mode` \(may be left out\)"):
        tool(FIELDS).read(nothing)


def test_an_object_that_comes_as_its_json_is_unwrapped_once() -> None:
    assert tool(FIELDS).read(json.dumps({"path": "/tmp/x"})) == {"path": "/tmp/x"}


@pytest.mark.parametrize("wrong", ["[]", '{"path": "/tm', "{'path': '/tmp'}", "/tmp/x", [], 3, True, ["path"]])
def test_what_is_no_object_is_told(wrong: Any) -> None:
    with pytest.raises(ToolError, match=r"object|JSON"):
        tool(FIELDS).read(wrong)


@pytest.mark.parametrize("wrong", [None, 3, {"name": "User 1"}, ["User 1"]])
def test_what_is_no_text_is_told(wrong: Any) -> None:
    with pytest.raises(ToolError, match="one text"):
        tool().read(wrong)


def test_a_field_that_is_null_counts_as_missing_where_it_is_required() -> None:
    with pytest.raises(ToolError, match="lacks `path`"):
        tool(FIELDS).read({"path": None})


@pytest.mark.parametrize(
    ("made", "fault"),
    [
        (lambda: Tool("no tag", "d", "i", "o", str), "a tag is 1 to 64"),
        (lambda: Tool("", "d", "i", "o", str), "a tag is 1 to 64"),
        (lambda: Tool("t", None, "i", "o", str), "`description` is no text"),  # type: ignore[arg-type]
        (lambda: Tool("t", "d", [Field("a"), Field("a")], "o", str), "two fields `a`"),
        (lambda: Tool("t", "d", [Field("")], "o", str), "has no name"),
        (lambda: Tool("t", "d", ["a"], "o", str), "is no field"),  # type: ignore[list-item]
        (lambda: Tool("t", "d", [{"name": "a", "optional": True}], "o", str), "is no field"),
        (lambda: Tool("t", "d", "i", "o", "not a function"), "give a function"),  # type: ignore[arg-type]
        (lambda: Tool("t", "d", "i", "o", str, timeout=0), "above 0"),
    ],
)
def test_a_fault_is_found_when_the_tool_is_made(made: Any, fault: str) -> None:
    with pytest.raises(WiringError, match=fault):
        made()


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(WiringError) as caught:
        Tool("no tag", "d", [Field("a"), Field("a")], "o", 3)  # type: ignore[arg-type]

    assert len(caught.value.faults) == 3
