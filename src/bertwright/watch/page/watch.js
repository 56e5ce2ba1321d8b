// The page: asks for the state of all runs again and again, and shows the tab that is chosen.

import { Corpus } from "./corpus.js";
import { Curves } from "./curves.js";
import { ask, clock } from "./data.js";
import { element } from "./element.js";
import { Guesses } from "./guesses.js";
import { Log } from "./log.js";
import { changeTheme, dark, showTheme } from "./looks.js";
import { card, color } from "./overview.js";
import { choose, current, text } from "./texts.js";
import { admit } from "./token.js";
import { Vocabulary } from "./vocabulary.js";

const EVERY = 2000, SLOWEST = 15000;
const TABS = { curves: Curves, guesses: Guesses, corpus: Corpus, vocabulary: Vocabulary, log: Log };
const find = (id) => document.getElementById(id);

const page = {
  hidden: new Set(),
  color,
  say: (words) => { find("announced").textContent = words; },
};
let tab = sessionStorage.getItem("bertwright-tab") ?? "curves";
let chosen = 0, runs = null, panels = {}, timer = null, pause = EVERY, before = "", polled = 0;

async function poll() {
  clearTimeout(timer);
  const mine = ++polled;
  try {
    const state = await ask("state");
    if (mine !== polled) return;
    runs = state.runs.map((run, i) => ({ ...run, i }));
    await show();
    trouble(null);
    // Much to read comes in pieces; the next one is asked for at once.
    pause = runs.some((run) => run.rows.reading) ? 50 : EVERY;
  } catch (error) {
    if (!error.kind) throw error;
    trouble(error);
    if (error.kind === "token") return;
    pause = Math.min(Math.max(2 * pause, EVERY), SLOWEST);
  }
  if (mine === polled && !document.hidden) timer = setTimeout(poll, pause);
}

async function show() {
  const now = Date.now() / 1000 - clock.ahead, several = runs.length > 1;
  const signature = JSON.stringify([runs, [...page.hidden], current(), Math.floor(now / 30)]);
  if (signature !== before) {
    before = signature;
    const toggle = (i) => () => {
      page.hidden.has(i) ? page.hidden.delete(i) : page.hidden.add(i);
      show().then(() => find("runs").querySelectorAll(".swatch")[i]?.focus());
    };
    find("runs").replaceChildren(
      ...runs.map((run) => card(run, { hidden: page.hidden.has(run.i), several, toggle: toggle(run.i), now })),
    );
    find("runs").classList.toggle("several", several);
    document.title = `${runs.map((run) => run.name).join(", ")} · bertwright`;
  }
  const panel = (panels[tab] ??= new TABS[tab](page));
  const holder = find("panel");
  if (panel.root.parentNode !== holder)
    holder.replaceChildren(...(several && tab !== "curves" ? [picker()] : []), panel.root);
  await panel.update(tab === "curves" ? runs : runs[chosen]);
}

// Which of several runs a tab shows.
function picker() {
  const options = runs.map((run) => element("option", { value: run.i, selected: run.i === chosen }, run.name));
  const select = element(
    "select",
    {
      id: "run",
      change: (event) => {
        chosen = Number(event.target.value);
        attempt(show);
      },
    },
    options,
  );
  return element("p", { class: "bar" }, element("label", { for: "run" }, text("run")), select);
}

// What the user did could not be answered: as with a poll.
const attempt = (work) => work().catch((error) => (error.kind ? trouble(error) : Promise.reject(error)));

function trouble(error) {
  const box = find("trouble"), kind = error?.kind ?? "";
  if (box.dataset.kind === kind) return;
  box.dataset.kind = kind;
  box.hidden = !error;
  if (!error) return box.replaceChildren();
  box.replaceChildren(element("p", {}, text(kind, { message: error.message })));
  if (kind !== "token") return;
  const field = element("input", { type: "password", "aria-label": text("tokenField"), autocomplete: "off" });
  const enter = (event) => { event.preventDefault(); admit(field.value.trim()); box.dataset.kind = "none"; poll(); };
  box.append(element("form", { submit: enter }, field, element("button", {}, text("go"))));
}

function open(name, focus) {
  panels[tab]?.leave?.();
  tab = name;
  sessionStorage.setItem("bertwright-tab", name);
  tabs();
  if (focus) find("panels").querySelector('[aria-selected="true"]').focus();
  if (runs) attempt(show);
}

function tabs() {
  const names = Object.keys(TABS);
  const move = (event) => {
    const side = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (side) open(names.at((names.indexOf(tab) + side) % names.length), true);
  };
  const button = (name) =>
    element(
      "button",
      {
        type: "button",
        role: "tab",
        id: `tab-${name}`,
        "aria-selected": String(name === tab),
        "aria-controls": "panel",
        tabindex: name === tab ? 0 : -1,
        click: () => open(name, true),
        keydown: move,
      },
      text(name),
    );
  find("panels").setAttribute("aria-label", text("panels"));
  find("panels").replaceChildren(...names.map(button));
  find("panel").setAttribute("aria-labelledby", `tab-${tab}`);
}

function say() {
  document.documentElement.lang = current();
  for (const each of document.querySelectorAll("[data-text]")) each.textContent = text(each.dataset.text);
  for (const each of document.querySelectorAll("[data-language]"))
    each.setAttribute("aria-pressed", String(each.dataset.language === current()));
  find("theme").textContent = text(dark() ? "light" : "dark");
  find("keys").replaceChildren(
    ...text("keyList").map(([key, what]) => element("div", {}, element("dt", {}, key), element("dd", {}, what))),
  );
  tabs();
}

// Everything anew, in another language or other colors.
function again() {
  for (const panel of Object.values(panels)) panel.leave?.();
  panels = {};
  find("panel").replaceChildren();
  find("trouble").dataset.kind = "none";
  before = "";
  say();
  poll();
}

for (const each of document.querySelectorAll("[data-language]"))
  each.addEventListener("click", () => { choose(each.dataset.language); again(); });
find("theme").addEventListener("click", () => {
  changeTheme();
  again();
});
showTheme();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
document.addEventListener("visibilitychange", () => document.hidden || poll());
say();
fetch("../health").then((answer) => { find("talk").hidden = !answer.ok; }, () => {});
poll();
