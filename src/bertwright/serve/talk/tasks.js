// What the page can ask models that were trained for a task, and encoders of texts. Panels as in panels.js.

import { element } from "./element.js";
import { bar } from "./panels.js";
import { decimal, percent, say } from "./texts.js";

const MOST = 20;
const HUES = 6;

const hint = (key) => [element("p", { class: "hint" }, say(key))];
const linesOf = (text = "") =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);

// Names with their shares, the largest first, as bars.
function shares(rows) {
  const sorted = rows.toSorted((one, other) => other[1] - one[1]);
  const shown = sorted.map(([name, share], number) =>
    element("li", {}, bar(share, { class: number ? "" : "hit" }, name, "", percent(share))),
  );
  return [element("div", { class: "list" }, element("ol", {}, shown))];
}

const classify = {
  id: "classify",
  task: "classify",
  fields: ["sentence", "pair"],
  question: ({ sentence, fields }) =>
    sentence.text.trim() ? [sentence.text, fields.pair?.trim() || undefined] : undefined,
  ask: (model, id, [text, pair], signal) => model.classify(id, text, pair, signal),
  show: ({ sentence }, answer) => {
    if (!sentence.text.trim()) return hint("nothing");
    if (answer?.numbers) {
      const rows = Object.entries(answer.numbers);
      return [
        element(
          "dl",
          { class: "numbers" },
          rows.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, decimal(value)))),
        ),
      ];
    }
    return shares(Object.entries(answer?.probabilities ?? {}));
  },
};

const tag = {
  id: "tag",
  task: "tag",
  fields: ["sentence"],
  question: ({ sentence }) => (sentence.text.trim() ? sentence.text : undefined),
  ask: (model, id, text, signal) => model.tag(id, text, signal),
  show: ({ sentence }, answer) => {
    if (!sentence.text.trim()) return hint("nothing");
    const kinds = [];
    const tagged = (answer?.words ?? []).map((word, number) => {
      const full = answer.tags[number],
        kind = full.replace(/^[BI]-/, "");
      if (full === "O") return element("span", { class: "tagged" }, word);
      if (!kinds.includes(kind)) kinds.push(kind);
      const share = percent(answer.probabilities[number]);
      return element(
        "span",
        { class: `tagged hue-${kinds.indexOf(kind) % HUES} ${full.startsWith("I-") ? "inside" : ""}` },
        word,
        element("small", { title: share }, full.startsWith("I-") ? "\u00a0" : kind),
      );
    });
    return [element("p", { class: "tags", dir: "auto" }, tagged)];
  },
};

const answer = {
  id: "answer",
  task: "answer",
  fields: ["question", "context"],
  question: ({ fields: { question = "", context = "" } }) =>
    question.trim() && context.trim() ? [question, context] : undefined,
  ask: (model, id, [question, context], signal) => model.answer(id, question, context, signal),
  show: ({ fields: { question = "", context = "" } }, found) => {
    if (!question.trim() || !context.trim()) return hint("noQuestion");
    if (!found) return [];
    const text = [...context],
      { begin, end } = found;
    const inText = found.answer && text.slice(begin, end).join("") === found.answer;
    return [
      element(
        "p",
        { class: "answer" },
        found.answer || say("noAnswer"),
        element("small", { class: "number" }, percent(found.probability)),
      ),
      inText
        ? element(
            "p",
            { class: "context", dir: "auto" },
            text.slice(0, begin).join(""),
            element("mark", {}, found.answer),
            text.slice(end).join(""),
          )
        : "",
    ].filter(Boolean);
  },
};

const choose = {
  id: "choose",
  task: "choose",
  fields: ["sentence", "choices"],
  question: ({ sentence, fields }) => {
    const choices = linesOf(fields.choices);
    return sentence.text.trim() && choices.length > 1 ? [sentence.text, choices] : undefined;
  },
  ask: (model, id, [text, choices], signal) => model.choose(id, text, choices, signal),
  show: ({ sentence, fields }, found) => {
    if (!sentence.text.trim() || linesOf(fields.choices).length < 2) return hint("noChoices");
    return shares((found?.choices ?? []).map((choice, number) => [choice, found.probabilities[number]]));
  },
};

const similar = {
  id: "similar",
  task: "similar",
  fields: ["query", "texts"],
  question: ({ fields }) => {
    const texts = linesOf(fields.texts);
    return fields.query?.trim() && texts.length ? [fields.query, texts] : undefined;
  },
  ask: (model, id, [query, texts], signal) => model.similar(id, query, texts, MOST, signal),
  show: ({ fields }, found) => {
    if (!fields.query?.trim() || !linesOf(fields.texts).length) return hint("noTexts");
    const rows = (found ?? []).map(({ text, score }) => element("li", {}, bar(score, {}, text, "", decimal(score))));
    return [
      element("div", { class: "list wide" }, element("ol", {}, rows)),
      element("p", { class: "note" }, say("likeness")),
    ];
  },
};

export const TASKS = [classify, tag, answer, choose, similar];
