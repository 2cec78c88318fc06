"""Replies of models as they come, most of them broken somehow, and what each has to come to."""

from __future__ import annotations

from bigbrain.orchestrator.actions import Abort, Action, Call, Describe, Finish

FENCE = "```"
ADD = Call("math/basic", "add", {"a": 1, "b": 2})
NAME = Call("user-agent", "user-retriever", "User 1")

ADD_TEXT = '{"action": "call", "agent": "math/basic", "tool": "add", "input": {"a": 1, "b": 2}}'
NAME_TEXT = '{"action": "call", "agent": "user-agent", "tool": "user-retriever", "input": "User 1"}'
OK_TEXT = '{"action": "finish", "answer": "ok"}'
OK = Finish("ok")
SHELL = "Run:\n```sh\nls\n```\nDone"
SHELL_TEXT = r'{"action":"finish","answer":"Run:\n```sh\nls\n```\nDone"}'

Outcome = tuple[Action, ...]

GOOD: dict[str, tuple[str, Outcome]] = {
    # as they should be
    "describe": ('{"action": "describe", "agent": "user-agent"}', (Describe("user-agent"),)),
    "describe below": ('{"action": "describe", "agent": "math/basic"}', (Describe("math/basic"),)),
    "call with a text": (NAME_TEXT, (NAME,)),
    "call with fields": (ADD_TEXT, (ADD,)),
    "call without input": ('{"action": "call", "agent": "a", "tool": "t"}', (Call("a", "t", None),)),
    "finish": ('{"action": "finish", "answer": "It is 3."}', (Finish("It is 3."),)),
    "finish with nothing to say": ('{"action": "finish", "answer": ""}', (Finish(""),)),
    "abort": ('{"action": "abort", "reason": "no such tool"}', (Abort("no such tool"),)),
    "answer first": ('{"answer": "ok", "action": "finish"}', (OK,)),
    "more keys than needed": (
        '{"thought": "easy", "sure": true, "n": -1.5e3, "action": "finish", "answer": "ok"}',
        (OK,),
    ),
    "action in capitals": ('{"action": " FINISH ", "answer": "ok"}', (OK,)),
    "spread over lines": ('{\n\t"action" : "finish" ,\r\n\t"answer" : "ok"\n}\n', (OK,)),
    "escaped keys": (r'{"\u0061ction": "finish", "answe\u0072": "ok"}', (OK,)),
    "arguments that are a text": (
        '{"action": "call", "agent": "a", "tool": "t", "input": "{}"}',
        (Call("a", "t", "{}"),),
    ),
    # older forms
    "older finish": ('{"tool": "finished", "input": "ok"}', (OK,)),
    "older abort": ('{"tool": "none", "input": "cannot"}', (Abort("cannot"),)),
    "older call": ('{"agent": "a", "tool": "t", "input": {"x": 1}}', (Call("a", "t", {"x": 1}),)),
    "older finish with an empty agent": ('{"agent": "", "tool": "finished", "input": "ok"}', (OK,)),
    "a tool that is named as the older finish": (
        '{"agent": "a", "tool": "finished", "input": "x"}',
        (Call("a", "finished", "x"),),
    ),
    # wrapped up
    "fence": (f"{FENCE}json\n{OK_TEXT}\n{FENCE}", (OK,)),
    "fence without a label": (f"{FENCE}\n{OK_TEXT}\n{FENCE}", (OK,)),
    "fence of tildes": (f"~~~\n{OK_TEXT}\n~~~", (OK,)),
    "fence labelled JSON5": (f"{FENCE}JSON5\n{OK_TEXT}\n{FENCE}", (OK,)),
    "fence that is never closed": (f"{FENCE}json\n{OK_TEXT}", (OK,)),
    "fence of four with a fence inside the answer": (f"{FENCE}`json\n{SHELL_TEXT}\n{FENCE}`", (Finish(SHELL),)),
    "fence with a fence inside the answer": (f"{FENCE}json\n{SHELL_TEXT}\n{FENCE}", (Finish(SHELL),)),
    "bare with a fence inside the answer": (SHELL_TEXT, (Finish(SHELL),)),
    "tildes with a fence inside the answer": (f"~~~\n{SHELL_TEXT}\n~~~", (Finish(SHELL),)),
    "never closed with a fence inside the answer": (f"{FENCE}json\n{SHELL_TEXT}", (Finish(SHELL),)),
    "words before": (f"Sure, here you are: {OK_TEXT}", (OK,)),
    "words behind": (f"{OK_TEXT}\nAnything else I can do?", (OK,)),
    "words around": (f"Let me see.\n\n{NAME_TEXT}\n\nThat should do.", (NAME,)),
    "a byte order mark": (f"\ufeff{OK_TEXT}", (OK,)),
    "thinking before": (f"<think>They want {{something}}.</think>{OK_TEXT}", (OK,)),
    "a heading and a list": (f"# Plan\n- first\n- then\n{OK_TEXT}", (OK,)),
    "backticks in the words": (f"The `answer`: {OK_TEXT}", (OK,)),
    "a footnote in the words": (f"As [1] says: {OK_TEXT}", (OK,)),
    "quotes in the words": (f'He said "{{" once: {OK_TEXT}', (OK,)),
    "as the text of its JSON": (r'"{\"action\": \"finish\", \"answer\": \"ok\"}"', (OK,)),
    # braces and quotes where they mislead
    "braces in the answer": ('{"action":"finish","answer":"close with } or {"}', (Finish("close with } or {"),)),
    "brackets in the answer": ('{"action":"finish","answer":"a[0] = ]["}', (Finish("a[0] = ]["),)),
    "braces in the words": (f"Use {{name}} then: {OK_TEXT}", (OK,)),
    "double braces in the words": (f"Use {{{{name}}}} then: {OK_TEXT}", (OK,)),
    "an empty object in the words": (
        'Default is {}. {"action":"describe","agent":"math/basic"}',
        (Describe("math/basic"),),
    ),
    "an object that is no action": (f'I know {{"a": 1}}. {OK_TEXT}', (OK,)),
    "an escaped quote before a brace": (r'{"answer":"x \" } y","action":"finish"}', (Finish('x " } y'),)),
    "backslashes at the end": (r'{"action":"finish","answer":"C:\\dir\\"}', (Finish("C:\\dir\\"),)),
    "an action inside an input": (
        '{"action":"call","agent":"a","tool":"t","input":{"action":"finish","answer":"no"}}',
        (Call("a", "t", {"action": "finish", "answer": "no"}),),
    ),
    "JSON inside the answer": (
        r'{"action":"finish","answer":"{\"action\":\"abort\",\"reason\":\"no\"}"}',
        (Finish('{"action":"abort","reason":"no"}'),),
    ),
    # what a careless repair would destroy
    "slashes, comments and commas in the answer": (
        """{"action":"finish","answer":"see https://ex.test/a//b /* no */ , } it's 5 o'clock"}""",
        (Finish("see https://ex.test/a//b /* no */ , } it's 5 o'clock"),),
    ),
    "backticks in the answer": ('{"action":"finish","answer":"use `print` here"}', (Finish("use `print` here"),)),
    # what can be read for sure
    "single quotes": (r"{'action':'finish','answer':'it\'s ok'}", (Finish("it's ok"),)),
    "a comment and a comma before the end": ('{"action":"finish",/* c */"answer":"ok",}', (OK,)),
    "a comment to the end of the line": ('{"action":"finish", // done\n"answer":"ok"}', (OK,)),
    "a real line break in the answer": ('{"action":"finish","answer":"line1\nline2"}', (Finish("line1\nline2"),)),
    "a real tab in the answer": ('{"action":"finish","answer":"a\tb"}', (Finish("a\tb"),)),
    # escapes
    "escapes": (
        r'{"action":"finish","answer":"A\ud83e\udd8aB\n\"q\" \u00e9 \/ \b\f\r\t\\"}',
        (Finish('A🦊B\n"q" é / \b\f\r\t\\'),),
    ),
    "raw characters of all lengths": ('{"action":"finish","answer":"é 北 🦊"}', (Finish("é 北 🦊"),)),
    "half a character at the end": (r'{"action":"finish","answer":"x\ud83e"}', (Finish("x\ufffd"),)),
    "the wrong half first": (r'{"action":"finish","answer":"\udd8a\ud83ex"}', (Finish("\ufffd\ufffdx"),)),
    "two first halves": (r'{"action":"finish","answer":"\ud83e\ud83e\udd8a"}', (Finish("\ufffd🦊"),)),
    # several
    "two calls": (ADD_TEXT + "\n" + NAME_TEXT, (ADD, NAME)),
    "two calls with words between": (f"First {ADD_TEXT}, then {NAME_TEXT}.", (ADD, NAME)),
    "a list of calls": (f"[{ADD_TEXT}, {NAME_TEXT}]", (ADD, NAME)),
    "a list of one": (f"[{OK_TEXT}]", (OK,)),
    "describe, then call": ('{"action":"describe","agent":"a"} ' + ADD_TEXT, (Describe("a"), ADD)),
    "finish, then more": (f"{OK_TEXT} {ADD_TEXT}", (OK,)),
    "finish, then something broken": (OK_TEXT + ' {"action": "call", "agent', (OK,)),
    "finish twice": (OK_TEXT + '{"action": "finish", "answer": "no"}', (OK,)),
    "many opening braces before": ("{" * 50_000 + '{"action":"abort","reason":"r"}', (Abort("r"),)),
}
"""A reply → the actions that it comes to: an end, or what is done before the model is asked again."""

EARLY: dict[str, tuple[str, Outcome]] = {
    "call, then finish": (f"{ADD_TEXT} {OK_TEXT}", (ADD,)),
    "call, then abort": (ADD_TEXT + '{"action": "abort", "reason": "no"}', (ADD,)),
    "describe, then finish": ('{"action": "describe", "agent": "a"}' + OK_TEXT, (Describe("a"),)),
}
"""Replies whose end stands behind calls: it does not count."""

BAD: dict[str, tuple[str, str]] = {
    "nothing": ("", "empty"),
    "blanks": (" \n\t", "empty"),
    "only words": ("User 1 was born in 2001.", "holds no JSON"),
    "only a fence": (f"{FENCE}json\n{FENCE}", "holds no JSON"),
    "only an empty object": ("{}", "has an `action`"),
    "a number": ("42", "has an `action`"),
    "no action": ('{"answer": "ok"}', "has an `action`"),
    "an unknown action": ('{"action": "think", "about": "it"}', 'must be one of "describe"'),
    "an action that is no text": ('{"action": 1}', "`action` is 1"),
    "an action that is nothing": ('{"action": null, "answer": "ok"}', "`action` is null"),
    "finish without an answer": ('{"action": "finish"}', "`finish` has no `answer`"),
    "finish with an object": ('{"action": "finish", "answer": {"a": 1}}', "`answer` of the action `finish`"),
    "finish with a number": ('{"action": "finish", "answer": 3}', "must be a string"),
    "finish with nothing": ('{"action": "finish", "answer": null}', "must be a string"),
    "abort without a reason": ('{"action": "abort"}', "no `reason`"),
    "describe without an agent": ('{"action": "describe"}', "no `agent`"),
    "describe of an empty path": ('{"action": "describe", "agent": " "}', "`agent` of the action `describe` is empty"),
    "call without an agent": ('{"action": "call", "tool": "t", "input": "x"}', "no `agent`"),
    "call without a tool": ('{"action": "call", "agent": "a", "input": "x"}', "no `tool`"),
    "older call without an agent": ('{"tool": "t", "input": "x"}', "no `agent`"),
    "one good call and one bad": (ADD_TEXT + '{"action": "call", "agent": "a"}', "no `tool`"),
    "cut off in the answer": ('{"action": "finish", "answer": "User 1 was', "cut off"),
    "cut off behind the answer": ('{"action": "finish", "answer": "ok"', "cut off"),
    "cut off in a key": ('{"action": "finish", "ans', "cut off"),
    "cut off in an input": ('{"action": "call", "agent": "a", "tool": "t", "input": {"x": [1, 2', "cut off"),
    "cut off in an escape": ('{"action": "finish", "answer": "a\\u00', "cut off"),
    "cut off in the second call": (ADD_TEXT + '{"action": "call", "agent": "a"', "cut off"),
    "a bare word": ('{"action": finish, "answer": "ok"}', "broken"),
    "Python's None": ('{"action":"finish","answer":None}', "broken"),
    "no quotes around the keys": ('{action: "finish", answer: "ok"}', "holds no JSON"),
    "smart quotes": ("{“action”: “finish”, “answer”: “ok”}", "holds no JSON"),
    "no comma": ('{"action": "finish" "answer": "ok"}', "broken"),
    "an escape that JSON has not": (r'{"action": "finish", "answer": "\x41"}', "broken"),
    "a quote too few": ('{"action": "finish", "answer": "ok}', "cut off"),
    "a quote that should be escaped": ('{"action": "finish", "answer": "say "hi" now"}', "broken"),
    "nested too deep": (
        '{"action":"call","agent":"a","tool":"t","input":' + "[" * 200 + "]" * 200 + "}",
        "deeper than",
    ),
    "too many actions": (ADD_TEXT * 51, "more than 50 actions"),
    "tags instead of JSON": ("<tool_call>add(1, 2)</tool_call>", "holds no JSON"),
}
"""A reply that is put back → a part of the fault that the model reads."""
