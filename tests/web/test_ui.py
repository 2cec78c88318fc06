"""The page for people: open, closed to everything from elsewhere, and made of routes that there are."""

from __future__ import annotations

import base64
import re
import shutil
import subprocess

import pytest

from bigbrain.settings import Settings
from tests.web.site import saying, serving
from web.ui import FOLDER, PAGE, PATHS, TYPES

FILES = sorted(set(TYPES) - {PAGE})


@pytest.mark.parametrize("path", sorted(PATHS))
def test_each_file_is_open_fresh_and_may_load_nothing_from_elsewhere(path: str) -> None:
    with serving(saying("x"), Settings(keys=("one",))) as site:
        response = site.client.get(path)
        again = site.client.get(path, headers={"If-None-Match": response.headers["ETag"]})

    assert response.status_code == 200
    assert response.mimetype == TYPES.get(path.removeprefix("/ui/"), "text/html")
    policy = dict(part.strip().split(" ", 1) for part in response.headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert {policy[name] for name in ("script-src", "style-src", "connect-src")} == {"'self'"}
    assert policy["frame-ancestors"] == "'none'"
    assert response.headers["Cache-Control"] == "no-cache"
    assert again.status_code == 304


@pytest.mark.parametrize("path", ["/ui/", "/ui/index.html", "/ui/../keys.py", "/ui/%2e%2e/keys.py", "/ui/page.html"])
def test_nothing_else_is_handed_out(path: str) -> None:
    with serving(saying("x")) as site:
        assert site.client.get(path).status_code == 404


def test_the_page_keeps_to_its_own_policy_and_names_files_that_there_are() -> None:
    page = (FOLDER / PAGE).read_text(encoding="utf-8")
    named = re.findall(r'(?:src|href)="ui/([^"]+)"', page)
    scripts = {name: (FOLDER / name).read_text(encoding="utf-8") for name in FILES if name.endswith(".js")}
    named += [name for text in scripts.values() for name in re.findall(r'from "\./([^"]+)"', text)]

    assert sorted({*named}) == FILES
    assert {path.name for path in FOLDER.iterdir()} == set(TYPES)
    # neither code nor style in the page itself, no handler in an attribute, and nothing read as HTML
    assert re.findall(r"<style|style=|\son\w+=|<script(?![^>]*\ssrc=)", page) == []
    assert [
        name
        for name, text in scripts.items()
        if re.search(r"innerHTML|insertAdjacentHTML|document\.write|eval\(", text)
    ] == []


def test_the_page_asks_for_routes_and_elements_that_there_are() -> None:
    page = (FOLDER / PAGE).read_text(encoding="utf-8")
    script = (FOLDER / "page.js").read_text(encoding="utf-8")
    with serving(saying("x")) as site:
        rules = {re.sub(r"<[^>]+>", "*", rule.rule) for rule in site.app.url_map.iter_rules()}

    asked = {
        re.sub(r"\$\{[^}]*\}", "*", path).partition("?")[0] for path in re.findall(r'ask\([`"]([^`"]+)[`"]', script)
    }
    # the last one stands for two
    assert asked == {"v1/chat/completions", "v1/models", "v1/runs", "v1/runs/*", "v1/runs/*/events", "v1/runs/*/*"}
    assert {f"/{path}" for path in asked - {"v1/runs/*/*"}} <= rules
    assert {f"/v1/runs/*/{verb}" for verb in re.findall(r'command\("(\w+)"\)', script)} <= rules
    used = set(re.findall(r'\$\("([\w-]+)"\)', script)) | set(re.findall(r'on\("([\w-]+)"', script))
    assert {"key", "runs", "timeline", "answer", "question"} <= used
    assert used <= set(re.findall(r'id="([\w-]+)"', page))


NODE = shutil.which("node")


@pytest.mark.skipif(NODE is None, reason="needs Node.js")
@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".js")])
def test_each_script_is_one(name: str) -> None:
    assert NODE is not None
    done = subprocess.run([NODE, "--check", FOLDER / name], capture_output=True, text=True, timeout=30, check=False)

    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(NODE is None, reason="needs Node.js")
def test_events_are_read_whole_however_the_network_cuts_them() -> None:
    assert NODE is not None
    with serving(saying("ä 👍 two")) as site:
        asked = {"model": "b", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
        site.client.post("/v1/chat/completions", json=asked, headers={"X-Run-Id": "r"}).get_data()
        told = b": keep-alive\n\n" + site.client.get("/v1/runs/r/events").data
    code = """
    import { events } from "EVENTS";
    const told = Buffer.from(process.argv[1], "base64");
    for (const size of [1, 2, 3, 7, told.length]) {
      const pieces = [];
      for (let at = 0; at < told.length; at += size) pieces.push(told.subarray(at, at + size));
      let text = "";
      for await (const { id, data } of events(new Response(ReadableStream.from(pieces)))) {
        if (!id) throw new Error("an event without an id");
        for (const event of JSON.parse(data)) text += event.text ?? "";
      }
      console.log(text);
    }
    """.replace("EVENTS", (FOLDER / "events.js").as_uri())
    command = [NODE, "--input-type=module", "-e", code, base64.b64encode(told).decode()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)

    assert done.stdout.splitlines() == ["ä 👍 two"] * 5, done.stderr
