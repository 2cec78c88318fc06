// A run's tree as rows of a table, each with its place in time.
export function rows(run, now) {
  const begun = run.begun;
  const whole = Math.max(1, (run.ended ?? now) - begun);
  return flat(run.tree, 0).map(({ node, depth }) => row(node, depth, begun, whole, now));
}

function flat(nodes, depth) {
  return (nodes ?? []).flatMap((node) => [{ node, depth }, ...flat(node.inside, depth + 1)]);
}

function row(node, depth, begun, whole, now) {
  const line = document.createElement("tr");
  const last = node.begun === undefined ? undefined : (node.ended ?? now);
  line.append(
    cell(named(node), `depth-${Math.min(depth, 6)}`),
    cell(said(node), node.error ? "fault" : ""),
    cell(last === undefined ? "" : seconds(last - node.begun)),
    cell(tokens(node.usage)),
    bar(node, last, begun, whole),
  );
  line.dataset.path = node.path ?? "";
  return line;
}

function named(node) {
  const name = node.name || node.path || "";
  if (node.kind === "step") return [name, ...(node.agents ?? [])].filter(Boolean).join(" · ");
  return node.kind === "respond" ? "respond" : `${node.kind} ${name}`;
}

function said(node) {
  const attempts = node.attempts > 1 ? ` (${node.attempts} attempts)` : "";
  return (node.error ?? node.status ?? "") + attempts;
}

function cell(text, kind = "") {
  const made = document.createElement("td");
  made.textContent = text;
  made.className = kind;
  return made;
}

// an image and not a style of an element, which the page's policy forbids
function bar(node, last, begun, whole) {
  const made = cell("", "bars");
  if (last === undefined) return made;
  const svg = (name, values) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(values)) element.setAttribute(key, value);
    return element;
  };
  const picture = svg("svg", { viewBox: "0 0 1000 16", preserveAspectRatio: "none", role: "presentation" });
  const x = ((node.begun - begun) / whole) * 1000;
  const width = Math.max(4, ((last - node.begun) / whole) * 1000);
  picture.append(svg("rect", { x: Math.min(x, 996), width, y: 2, height: 12, class: node.error ? "bar fault" : "bar" }));
  made.append(picture);
  return made;
}

export function tokens(usage) {
  const { input = 0, output = 0, cache_read = 0, cache_write = 0 } = usage ?? {};
  const read = input + cache_read + cache_write;
  return read + output ? `${read} in, ${output} out` : "";
}

export function seconds(ms) {
  return `${(ms / 1000).toFixed(ms < 10000 ? 2 : 1)} s`;
}
