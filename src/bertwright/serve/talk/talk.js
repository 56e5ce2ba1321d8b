// The page on which one talks to models. `start(model)` runs it with a model object, which gives every answer:
//
//   models(signal)                          [{id, title, tasks, mask, language, examples, hidden}], the first of which
//                                           is chosen; of each example, `hidden` has the words of its blanks, or null
//   fillMask(id, text, top, signal)         {text, blanks: [{begin, end, words: [{word, probability}]}]}
//   alternatives(id, text, top, signal)     {text, words: [{begin, end, word, pieces, probability?, alternatives}]}
//   tokenize(id, text, signal)              {tokens: [{piece, id, begin, end}]}
//   neighbours(id, word, top, signal)       [{word, score}]
//   similar, classify, tag, answer, choose  only for models whose `tasks` name them
//   training()                              optional: whether there is a page about the training, at watch/
//   admit(token)                            optional: answer with this token from now on
//
// Each gives a promise; offsets are code points of the text as given; `signal` says that the answer is no longer
// wanted, and may be ignored. An error may have a `kind`, one of the texts lost, token, busy, long and slow; any other
// error is told by its message. `served.js` asks a server; a page with its model inside computes.

import { Column } from "./column.js";
import { element } from "./element.js";
import { changeTheme, chooseLanguage, dark, showTheme } from "./looks.js";
import { PANELS } from "./panels.js";
import { TASKS } from "./tasks.js";
import { edited, partAt, partsOf, read, toggled, whole } from "./sentence.js";
import { show } from "./show.js";
import { say, speak } from "./texts.js";

const TYPING = 120;
const AGAIN = 2000;
const SHOWN = 3;
const KEPT_STATE = "bertwright-talk";
const FIELDS = ["question", "query", "sentence", "pair", "context", "choices", "texts", "word"];
const PANELS_OF_ALL = [...PANELS.slice(0, 2), ...TASKS, ...PANELS.slice(2)];

const state = {
  sentence: { text: "", hidden: [] },
  fields: {},
  panel: "guess",
  chosen: [],
  first: 0,
};
let model,
  models = [],
  columns = [],
  again;

const at = (id) => document.getElementById(id);
const panel = () => PANELS_OF_ALL.find((each) => each.id === state.panel);

export async function start(given) {
  model = given;
  restore();
  showTheme();
  listen();
  translate();
  await load();
}

async function load() {
  tell("loading");
  try {
    models = await model.models();
  } catch (error) {
    tell(error.kind ?? "failed", { message: error.message });
    if (error.kind === "lost" || error.kind === "busy") setTimeout(load, AGAIN);
    return;
  }
  tell(models.length ? "" : "noModels");
  model.training?.().then((there) => (at("training").hidden = !there));
  if (!models.length) return;
  state.chosen = state.chosen.filter((id) => models.some((each) => each.id === id));
  if (!state.chosen.length) state.chosen = [models[0].id];
  choosePossible();
  if (!state.sentence.text) state.sentence = panel().blanks ? examples()[0] : read(say("samples").sentence);
  arrange();
  at(panel().fields[0]).focus({ preventScroll: true });
}

// A panel that no model can answer is left for one that some model can.
function choosePossible() {
  if (!able().some((each) => each.id === state.panel)) state.panel = able()[0]?.id ?? "pieces";
}

// A page keeps what is asked while its tab is open, so that a reload loses nothing.
function restore() {
  try {
    Object.assign(state, JSON.parse(sessionStorage.getItem(KEPT_STATE)));
  } catch {
    // Without storage, or with what another version kept, the page begins anew.
  }
}

function keep() {
  try {
    sessionStorage.setItem(KEPT_STATE, JSON.stringify(state));
  } catch {
    // A page from a file may have no storage.
  }
}

// What stands in the fields besides the sentence: samples, until the reader writes something.
const fields = () => ({ ...say("samples"), ...state.fields });
const described = (id) => models.find((each) => each.id === id);
const able = () => {
  const tasks = new Set(state.chosen.flatMap((id) => described(id)?.tasks ?? []));
  return PANELS_OF_ALL.filter((each) => tasks.has(each.task));
};
const examples = () => {
  const { examples: own = [], hidden = [] } = described(state.chosen[0]);
  if (!own.length) return say("fallback").map(read);
  return own.map((line, number) => ({ ...read(line), ...(hidden[number] && { hidden: hidden[number] }) }));
};

// Show the fields, panels and columns anew, for other models, another panel or another language.
function arrange() {
  choosePossible();
  for (const name of FIELDS) {
    at("fields").querySelector(`[data-field="${name}"]`).hidden = !panel().fields.includes(name);
    if (name !== "sentence") at(name).value = fields()[name] ?? "";
  }
  at("sentence").value = state.sentence.text;
  at("fields").hidden = false;
  at("lead").textContent = say("leads")[state.panel];
  at("help").hidden = !panel().blanks;
  show(at("panels"), able().map(tab));
  at(`panel-${state.panel}`).scrollIntoView({ block: "nearest", inline: "nearest" });
  at("columns").setAttribute("aria-labelledby", `panel-${state.panel}`);
  offer();
  for (const column of columns) column.questions.stop();
  const page = { model, models, state, panel: panel(), arrange, change, refresh, tell, later, fields };
  columns = state.chosen.map((id, number) => new Column(page, described(id), number));
  show(
    at("columns"),
    columns.map((column) => column.root),
  );
  at("columns").classList.toggle("two", columns.length > 1);
  refresh(0);
}

function tab({ id }, number, all) {
  const chosen = id === state.panel;
  return element(
    "button",
    {
      type: "button",
      role: "tab",
      id: `panel-${id}`,
      "data-key": `panel-${id}`,
      "aria-selected": String(chosen),
      "aria-controls": "columns",
      tabindex: chosen ? 0 : -1,
      click: () => choosePanel(id),
      keydown: (event) => {
        const way = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!way) return;
        event.preventDefault();
        choosePanel(all[(number + way + all.length) % all.length].id);
        at(`panel-${state.panel}`).focus();
      },
    },
    say(id),
  );
}

function choosePanel(id) {
  state.panel = id;
  if (!panel().blanks) state.sentence = whole(state.sentence);
  if (panel().fields.includes("word") && !state.fields.word) state.fields.word = telling();
  arrange();
}

// The word whose neighbours are shown first: the last one that was hidden, or the longest.
function telling() {
  const words = partsOf(state.sentence.text)
    .filter((part) => part.kind === "word")
    .map((part) => part.text);
  return (
    state.sentence.hidden.findLast((word) => word) ?? words.sort((one, other) => other.length - one.length)[0] ?? ""
  );
}

// A few examples, and more of them.
function offer() {
  const all = examples(),
    some = [...all, ...all].slice(state.first, state.first + Math.min(SHOWN, all.length));
  const lines = some.map((sentence) =>
    element("button", { type: "button", class: "example", dir: "auto", click: () => change(sentence) }, sentence.text),
  );
  const more = element(
    "button",
    {
      type: "button",
      class: "quiet",
      "data-key": "more",
      click: () => {
        state.first = (state.first + SHOWN) % all.length;
        offer();
      },
    },
    say("another"),
  );
  at("examples").hidden = !panel().blanks;
  show(at("examples"), [element("span", {}, say("examples")), ...lines, all.length > SHOWN ? more : ""]);
}

// The sentence is another one: `part` is where the reader is then.
function change(sentence, part, column) {
  state.sentence = sentence;
  at("sentence").value = sentence.text;
  if (column) column.goTo = part;
  refresh(0);
}

function refresh(delay) {
  keep();
  clearTimeout(again);
  for (const column of columns) column.ask(delay);
}

// Ask again by itself, after a while.
function later(seconds = 0) {
  clearTimeout(again);
  again = setTimeout(refresh, Math.max(seconds * 1000, AGAIN), 0);
}

// Tell what concerns the whole page, or nothing.
function tell(kind, values) {
  at("trouble").hidden = !kind;
  at("trouble").classList.toggle("mild", kind === "loading" || kind === "busy");
  if (!kind) at("trouble").replaceChildren();
  else if (at("trouble").firstChild?.textContent !== say(kind, values)) {
    at("trouble").replaceChildren(
      element("span", {}, say(kind, values)),
      kind === "token" && model.admit ? admission() : "",
    );
  }
}

// Where the reader gives the token, if the address has none.
function admission() {
  const field = element("input", {
    type: "password",
    "aria-label": say("tokenField"),
    placeholder: say("tokenField"),
    autocomplete: "off",
  });
  const admit = (event) => {
    event.preventDefault();
    model.admit(field.value.trim());
    if (models.length) refresh(0);
    else load();
  };
  return element("form", { submit: admit }, field, element("button", {}, say("open")));
}

function listen() {
  for (const name of FIELDS) {
    at(name).addEventListener("input", ({ target }) => {
      if (name === "sentence") state.sentence = edited(state.sentence, target.value);
      else state.fields[name] = target.value;
      refresh(TYPING);
    });
  }
  at("sentence").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || !panel().blanks) return;
    event.preventDefault();
    blankAtCursor(event.target);
  });
  for (const button of document.querySelectorAll("[data-language]")) {
    button.addEventListener("click", () => {
      chooseLanguage(button.dataset.language);
      translate();
      if (models.length) arrange();
    });
  }
  if (!CSS.supports("field-sizing", "content")) addEventListener("input", ({ target }) => grow(target));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", translate);
  at("theme").addEventListener("click", () => {
    changeTheme();
    translate();
  });
}

// A field as high as its text, in browsers that cannot do this by themselves.
function grow(field) {
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight + 2}px`;
}

// Blank the word at the cursor, or bring it back; the cursor stays behind it.
function blankAtCursor(field) {
  const parts = partsOf(field.value),
    part = partAt(parts, field.selectionStart);
  if (!part) return;
  const best = columns[0]?.answer?.blanks?.[part.blank]?.words[0]?.word;
  const length = field.value.length;
  change(toggled(state.sentence, part, best));
  const end = part.begin + part.text.length + field.value.length - length;
  field.setSelectionRange(end, end);
}

function translate() {
  const language = speak();
  document.documentElement.lang = language;
  for (const each of document.querySelectorAll("[data-text]")) each.textContent = say(each.dataset.text);
  for (const each of document.querySelectorAll("[data-language]")) {
    each.setAttribute("aria-pressed", String(each.dataset.language === language));
  }
  at("theme").textContent = say(dark() ? "light" : "dark");
  at("panels").setAttribute("aria-label", say("panels"));
  document.title = `${say("heading")} – bertwright`;
  at("keys").replaceChildren(
    ...say("keysList").map(([key, does]) => element("div", {}, element("dt", {}, key), element("dd", {}, does))),
  );
}
