// The playground: a program, what pscdsl says of it while it is edited, and a link to it.

import { editor } from "./editor.js";
import { fragment, programOf } from "./links.js";
import { render } from "./output.js";

const PROGRAM = "program.py";
const DELAY = 150; // milliseconds without an edit after which a check starts
const TABS = [
  { name: "check", title: "Findings" },
  { name: "ir", title: "Typed program", perKernel: true },
  { name: "grad", title: "Gradient", perKernel: true },
  { name: "cost", title: "Cost", perKernel: true },
  { name: "discover", title: "Discover" },
];

const root = document.getElementById("pg-page");

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

// Requests to Python, one after another.

const worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
const waiting = new Map();
let asked = 0;

worker.onmessage = ({ data: { id, answer, problem } }) => {
  const { resolve, reject } = waiting.get(id);
  waiting.delete(id);
  if (problem === undefined) resolve(JSON.parse(answer));
  else reject(new Error(problem));
};
worker.onerror = (event) => {
  say(`Python could not be started: ${event.message ?? "the worker was not loaded"}`);
};

function call(name, ...given) {
  return new Promise((resolve, reject) => {
    const id = asked++;
    waiting.set(id, { resolve, reject });
    worker.postMessage({ id, request: JSON.stringify({ call: name, arguments: given }) });
  });
}

// The page.

const examples = element("select", { id: "pg-examples" });
const kernels = element("select", { id: "pg-kernels" });
const tabs = new Map(
  TABS.map((tab) => [
    tab.name,
    element("button", { type: "button", textContent: tab.title, onclick: () => choose(tab.name) }),
  ]),
);
const link = element("button", { type: "button", textContent: "Copy link", onclick: copyLink });
const command = element("div", { className: "pg-command" });
const output = element("pre", { className: "pg-output", tabIndex: 0 });
const status = element("div", { className: "pg-status", role: "status" });
const left = element("div", { className: "pg-editor" });
root.append(
  element(
    "div",
    { className: "pg-bar" },
    element("label", {}, "Example ", examples),
    element("span", { className: "pg-tabs" }, ...tabs.values()),
    element("label", {}, "Kernel ", kernels),
    link,
  ),
  element(
    "div",
    { className: "pg-panes" },
    left,
    element("div", { className: "pg-right" }, command, output),
  ),
  status,
);

function say(text) {
  status.textContent = text;
}

// What is shown on the right: the output of one command, again after each edit.

let chosen = "check";
let known = []; // the kernels of the program that was checked last
let current; // the editor

function choose(name) {
  chosen = name;
  return refresh();
}

function explain(code) {
  chosen = `explain ${code}`;
  return refresh();
}

function argumentsOf(name) {
  const kernel = kernels.value;
  if (name.startsWith("explain ")) return name.split(" ");
  if (name === "discover") return ["discover", "--colour", "always", PROGRAM];
  const target = kernel ? `${PROGRAM}:${kernel}` : PROGRAM;
  return name === "grad" ? ["ir", target, "--grad"] : [name, target];
}

function list(select, values) {
  const before = select.value;
  select.replaceChildren(...values.map((value) => element("option", { value }, value)));
  if (values.includes(before)) select.value = before;
  select.disabled = values.length === 0;
}

let running = 0; // the number of the last refresh

async function refresh() {
  const turn = ++running;
  const program = current.program();
  for (const [name, button] of tabs) button.ariaPressed = String(name === chosen);
  try {
    const started = performance.now();
    const checked = await call("check", program);
    if (turn !== running) return;
    const took = Math.round(performance.now() - started);
    say(`Python ${checked.python}, NumPy ${checked.numpy}; checked in ${took} ms`);
    current.show(program, checked.findings);
    if (known.join() !== checked.kernels.join()) list(kernels, (known = checked.kernels));
    const given = chosen === "check" ? ["check", PROGRAM] : argumentsOf(chosen);
    const text = chosen === "check" ? checked.output : await call("command", program, given);
    if (turn !== running) return;
    const shown = given.filter((each) => each !== "--colour" && each !== "always");
    command.textContent = `$ pscdsl ${shown.join(" ")}`;
    output.replaceChildren(render(text, explain));
    root.dataset.shown = chosen;
  } catch (problem) {
    if (turn === running) say(String(problem.message).trim().split("\n").at(-1));
  }
}

let pending;

function changed() {
  clearTimeout(pending);
  running++; // what runs is about an older program
  delete root.dataset.shown;
  pending = setTimeout(refresh, DELAY);
}

async function copyLink() {
  history.replaceState(null, "", await fragment(current.program()));
  try {
    await navigator.clipboard.writeText(location.href);
    say("The link is copied.");
  } catch {
    say("The link is in the address bar.");
  }
}

async function linked() {
  try {
    return await programOf(location.hash);
  } catch (problem) {
    say(`The link cannot be read: ${problem.message}`);
    return null;
  }
}

async function start() {
  say("Loading Python…");
  const { examples: programs } = await (
    await fetch(new URL("contents.json", import.meta.url))
  ).json();
  const own = await linked();
  list(examples, [...(own === null ? [] : ["from the link"]), ...Object.keys(programs)]);
  const texts = own === null ? programs : { "from the link": own, ...programs };
  current = editor(left, texts[examples.value], {
    hover: (program, offset) => call("hover", program, offset).catch(() => null),
    changed,
  });
  examples.onchange = () => current.replace(texts[examples.value]);
  kernels.onchange = refresh;
  window.addEventListener("hashchange", async () => {
    const program = await linked();
    if (program !== null) current.replace(program);
  });
  await refresh();
}

await start();
