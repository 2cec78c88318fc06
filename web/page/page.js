// The page: lists runs, shows one and follows it, stops it and takes it up again, and asks the brain something.
import { events } from "./events.js";
import { rows, seconds, tokens } from "./timeline.js";

const KEY = "bigbrain key";
const PAUSE = 1000; // ms between two looks at a run that goes on
const $ = (id) => document.getElementById(id);
// the page may stand under a path of a proxy
const route = (path) => new URL(path, new URL("./", location.href));

let shown = null; // the run that is shown: its id, and what ends the following of it
let talk = []; // the conversation
let asking = null; // what ends the answer that comes

async function ask(path, options = {}) {
  const key = sessionStorage.getItem(KEY);
  const headers = { ...(key ? { Authorization: `Bearer ${key}` } : {}), ...options.headers };
  const response = await fetch(route(path), { ...options, headers });
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  throw new Error(body.error?.message ?? `${response.status} ${response.statusText}`);
}

function notice(text) {
  $("notice").textContent = text;
  $("notice").hidden = !text;
}

// what fails is said at the top of the page, and what was ended on purpose is no failure
async function trying(work) {
  try {
    notice("");
    return await work();
  } catch (error) {
    if (error.name !== "AbortError") notice(error.message);
  }
}

async function list(after = "") {
  const query = new URLSearchParams({ limit: 20, ...(after && { after }) });
  if ($("status").value) query.set("status", $("status").value);
  const page = await (await ask(`v1/runs?${query}`)).json();
  if (!after) $("runs").replaceChildren();
  $("runs").append(...page.data.map(entry));
  if (!$("runs").children.length) $("runs").append(Object.assign(document.createElement("li"), { textContent: "no runs" }));
  $("more").hidden = !page.has_more;
  $("more").onclick = () => trying(() => list(page.after));
}

function entry(run) {
  const line = document.createElement("li");
  const link = Object.assign(document.createElement("a"), { href: `#${encodeURIComponent(run.id)}`, textContent: run.id });
  const state = Object.assign(document.createElement("span"), { textContent: run.status, className: `state ${run.status}` });
  const about = `${run.flow} · ${new Date(run.begun).toLocaleString()}`;
  line.append(state, link, Object.assign(document.createElement("small"), { textContent: about }));
  return line;
}

async function show(id) {
  shown?.following.abort();
  const current = (shown = { id, following: new AbortController() });
  $("run").hidden = false;
  $("answer").textContent = "";
  $("hint").hidden = true;
  await look(current);
  await follow(current);
}

async function look(current) {
  const run = await (await ask(`v1/runs/${encodeURIComponent(current.id)}`, { signal: current.following.signal })).json();
  if (current !== shown) return run;
  const over = run.ended !== null;
  $("run-title").textContent = run.id;
  const took = seconds((run.ended ?? Date.now()) - run.begun);
  const replayed = run.replayed ? `replayed ${run.replayed} times` : "";
  $("facts").textContent = [run.flow, run.status, took, tokens(run.usage), replayed].filter(Boolean).join(" · ");
  $("fault").hidden = !run.error;
  $("fault").textContent = run.error ? `${run.error.code}: ${run.error.message}` : "";
  $("timeline").tBodies[0].replaceChildren(...rows(run, Date.now()));
  $("cancel").disabled = over;
  $("retry").disabled = !["failed", "cancelled"].includes(run.status);
  return run;
}

// what the run says, live; its tree is looked at again meanwhile, until it is over
async function follow(current) {
  const { signal } = current.following;
  const watch = async () => {
    while (!signal.aborted && (await look(current)).ended === null) await new Promise((done) => setTimeout(done, PAUSE));
  };
  const listen = async () => {
    const response = await ask(`v1/runs/${encodeURIComponent(current.id)}/events`, { signal });
    for await (const { data } of events(response)) {
      for (const event of JSON.parse(data)) {
        if (event.type === "delta") $("answer").append(event.text);
        if (event.type === "failed") $("answer").append(`\n[${event.code}] ${event.message}`);
      }
    }
  };
  await Promise.all([watch(), listen()]);
}

async function command(verb) {
  await ask(`v1/runs/${encodeURIComponent(shown.id)}/${verb}`, { method: "POST" });
  await Promise.all([list(), show(shown.id)]);
}

async function models() {
  const page = await (await ask("v1/models")).json();
  $("model").replaceChildren(...page.data.map(({ id }) => new Option(id)));
}

function say(role, text) {
  const line = document.createElement("li");
  line.className = role;
  line.textContent = text;
  $("talk").append(line);
  line.scrollIntoView({ block: "nearest" });
  return line;
}

async function send() {
  asking = new AbortController();
  const asked = [...talk, { role: "user", content: $("question").value }];
  say("user", $("question").value);
  $("question").value = "";
  const line = say("assistant", "");
  const body = JSON.stringify({ model: $("model").value, stream: true, messages: asked });
  const headers = { "Content-Type": "application/json" };
  const response = await ask("v1/chat/completions", { method: "POST", headers, body, signal: asking.signal });
  // its run is shown while it goes on
  location.hash = encodeURIComponent(response.headers.get("X-Run-Id"));
  list();
  for await (const { data } of events(response)) {
    if (data === "[DONE]") break;
    const frame = JSON.parse(data);
    if (frame.error) throw new Error(frame.error.message);
    line.append(frame.choices?.[0]?.delta?.content ?? "");
  }
  // an answer that failed is no part of the conversation
  talk = [...asked, { role: "assistant", content: line.textContent }];
  await list();
}

function forget() {
  asking?.abort();
  talk = [];
  $("talk").replaceChildren();
}

function begin() {
  return trying(() => Promise.all([list(), models()]));
}

function on(id, event, act) {
  $(id).addEventListener(event, (happened) => {
    happened.preventDefault();
    act();
  });
}

const chosen = () => location.hash && trying(() => show(decodeURIComponent(location.hash.slice(1))));

$("key").value = sessionStorage.getItem(KEY) ?? "";
on("key-form", "submit", () => {
  sessionStorage.setItem(KEY, $("key").value);
  begin();
});
on("filter", "submit", () => trying(list));
on("status", "change", () => trying(list));
on("cancel", "click", () => trying(() => command("cancel")));
on("retry", "click", () => trying(() => command("retry")));
on("clear", "click", forget);
on("ask", "submit", async () => {
  $("send").disabled = true;
  await trying(send);
  $("send").disabled = false;
});
addEventListener("hashchange", chosen);
begin();
chosen();
