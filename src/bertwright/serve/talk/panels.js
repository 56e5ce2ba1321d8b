// What the page can ask any model about a sentence or a word: guesses, word by word, pieces, neighbours.
//
// A panel is {id, task, fields, blanks, question, ask, show}: `blanks` says that words can be blanked; `question` is
// what to ask, from a view, or undefined for nothing; `ask` gets the model object, the id of a model, the question and
// a signal; `show` makes elements of the view and the answer, which is undefined until there is one. A view has the
// sentence with its parts, what the models are asked, the fields, and `act`, what the elements do.

import { element } from "./element.js";
import { decimal, percent, say } from "./texts.js";

const TOP = 7;
const INSTEAD = 4;
const NEIGHBOURS = 12;

const guess = {
  id: "guess",
  task: "fill-mask",
  fields: ["sentence"],
  blanks: true,
  question: ({ parts, sent }) => (parts.some((part) => part.kind === "blank") ? sent.text : undefined),
  ask: (model, id, text, signal) => model.fillMask(id, text, TOP, signal),
  show: (view, answer) => {
    const blanks = view.parts.filter((part) => part.kind === "blank");
    const found = answer?.blanks.length === blanks.length ? answer.blanks : [];
    const words = (part) => found[part.blank]?.words ?? [];
    const lists = blanks.map((part) => guesses(view, part, found[part.blank]?.words, blanks.length > 1));
    const hint = lists.length ? "clickGuess" : view.parts.length ? "clickWord" : "nothing";
    return [
      reading(view, { best: (part) => words(part)[0]?.word, words }),
      element("div", { class: "lists" }, lists),
      element("p", { class: "hint" }, say(hint)),
    ];
  },
};

// The list of a blank: its words with their probabilities, each a button that puts it in the sentence.
function guesses(view, part, words, numbered) {
  const hidden = view.sentence.hidden[part.blank];
  const rows = (words ?? []).map(({ word, probability }, number) => {
    const hit = word === hidden || word === hidden?.toLowerCase();
    const attributes = {
      "data-key": `guess-${part.blank}-${number}`,
      title: say("putIn"),
      class: hit ? "hit" : "",
      click: () => view.act.fill(part, word),
    };
    const mark = hit ? element("span", { class: "mark", title: say("hit") }, "✓") : "";
    return element("li", {}, bar(probability, attributes, spelled(word), mark, percent(probability)));
  });
  const notes = [words?.length === 0 ? say("beyond") : "", hidden ? say("hiddenWord", { word: hidden }) : ""];
  return element(
    "section",
    { class: "list" },
    numbered ? element("h3", {}, say("blankNumber", { number: part.blank + 1 })) : "",
    element("ol", {}, rows),
    notes.filter(Boolean).map((note) => element("p", { class: "note" }, note)),
  );
}

// A row that is filled up to a share of its width: [word, mark, number].
export function bar(share, attributes, word, mark, number) {
  const width = `${Math.min(Math.max(share, 0), 1) * 100}%`;
  const tag = attributes.click ? "button" : "div";
  return element(
    tag,
    { ...attributes, type: attributes.click ? "button" : undefined, class: `row ${attributes.class ?? ""}` },
    element("span", { class: "share", style: { "--share": width } }),
    element("span", { class: "said", dir: "auto" }, word, mark),
    element("span", { class: "number" }, number),
  );
}

// A word as people write it; a piece that continues a word follows an ellipsis.
const spelled = (word) => (word.startsWith("##") ? `…${word.slice(2)}` : word);

// The sentence with its words as buttons. `best` gives the guess for a blank, `heat` a class for a word.
export function reading(view, { best = () => undefined, words = () => [], heat = () => "" } = {}) {
  const { parts, act } = view;
  const able = parts.flatMap((part, number) => (part.kind === "gap" ? [] : [number]));
  const active = able.includes(view.active) ? view.active : able[0];
  const keydown = (event, part, number) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const way = { ArrowRight: 1, ArrowLeft: -1, Home: -able.length, End: able.length }[event.key];
    const chosen = words(part)[Number(event.key) - 1];
    if (way) act.move(able.at(Math.min(Math.max(able.indexOf(number) + way, 0), able.length - 1)));
    else if (chosen) act.fill(part, chosen.word);
    if (way || chosen) event.preventDefault();
  };
  const button = (part, number) => {
    const said = best(part);
    const blank = part.kind === "blank";
    const values = { number: part.blank + 1, guess: said };
    const label = blank ? say(said ? "blankLabel" : "blankEmpty", values) : undefined;
    return element(
      "button",
      {
        type: "button",
        class: blank ? "slot" : `word ${heat(part, number)}`,
        "data-key": `part-${number}`,
        tabindex: number === active ? 0 : -1,
        "aria-pressed": String(blank),
        "aria-label": label,
        click: () => act.toggle(part, number, said),
        focus: () => act.reach(number),
        keydown: (event) => keydown(event, part, number),
      },
      blank ? (said ? spelled(said) : "\u2003\u2003") : part.text,
    );
  };
  return element(
    "p",
    { class: "reading", role: "group", "aria-label": say("reading"), lang: view.language, dir: "auto" },
    lines(parts, button),
  );
}

// Words with the signs that touch them, which would otherwise begin or end a line, and the spaces between.
function lines(parts, button) {
  const shown = [];
  let together;
  parts.forEach((part, number) => {
    const texts = part.kind === "gap" ? part.text.split(/(\s+)/) : [button(part, number)];
    for (const each of texts) {
      if (typeof each === "string" && /^\s*$/.test(each)) {
        if (each) together = undefined;
        shown.push(each);
      } else {
        if (!together) shown.push((together = element("span", { class: "together" })));
        together.append(each);
      }
    }
  });
  return shown;
}

const words = {
  id: "words",
  task: "fill-mask",
  fields: ["sentence"],
  blanks: true,
  question: ({ parts, sent }) => (parts.some((part) => part.kind === "word") ? sent.text : undefined),
  ask: (model, id, text, signal) => model.alternatives(id, text, INSTEAD, signal),
  show: (view, answer) => {
    if (!view.parts.length) return [element("p", { class: "hint" }, say("nothing"))];
    const known = answer?.text === view.sent.text ? answer.words : [];
    const at = (number) => {
      const { begin, end } = view.sent.places[number];
      return known.find((each) => each.begin >= begin && each.end <= end);
    };
    const heat = (part, number) => surprise(at(number)?.probability);
    const rows = (answer?.words ?? [])
      .filter(({ word }) => word !== view.mask)
      .map((each) => instead(view, each, known));
    return [reading(view, { heat }), rows.length ? legend() : "", element("div", { class: "instead" }, rows)];
  },
};

// One word, how much the model expected it, and what it would say in its place.
function instead(view, { begin, end, word, probability, pieces, alternatives }, known) {
  const number = view.sent.places.findIndex((place) => place.begin <= begin && end <= place.end);
  const part = known.length ? view.parts[number] : undefined;
  const others = alternatives.map((each) => {
    const share = percent(each.probability);
    const inside = [spelled(each.word), element("small", {}, share)];
    return part?.kind === "word" && part.text === word
      ? element(
          "button",
          {
            type: "button",
            class: "other",
            title: say("instead", { old: word }),
            click: () => view.act.fill(part, each.word),
            "data-key": `instead-${begin}-${each.word}`,
          },
          inside,
        )
      : element("span", { class: "other" }, inside);
  });
  // A word beyond what the model reads has neither a probability nor alternatives.
  const divided = alternatives.length ? say("severalPieces", { count: pieces.length }) : "–";
  const share = typeof probability === "number" ? percent(probability) : divided;
  return element(
    "div",
    { class: "instance" },
    element("span", { class: `said ${surprise(probability)}` }, word),
    element("span", { class: "number" }, share),
    element("span", { class: "others" }, others),
  );
}

// How surprising a word was, in five classes, each of ten times less probability.
const surprise = (probability) =>
  typeof probability === "number" ? `heat-${Math.min(Math.max(Math.floor(-Math.log10(probability)), 0), 4)}` : "";

function legend() {
  const steps = [0, 1, 2, 3, 4].map((level) => element("span", { class: `heat-${level}` }, "\u2002"));
  return element("p", { class: "legend note", "aria-hidden": "true" }, say("expected"), steps, say("surprising"));
}

const pieces = {
  id: "pieces",
  task: "tokenize",
  fields: ["sentence"],
  blanks: true,
  question: ({ parts, sent }) => (parts.length ? sent.text : undefined),
  ask: (model, id, text, signal) => model.tokenize(id, text, signal),
  show: (view, answer) => {
    if (!view.parts.length) return [element("p", { class: "hint" }, say("nothing"))];
    const tokens = answer?.tokens ?? [],
      real = tokens.filter(({ begin, end }) => end > begin);
    const starts = real.filter(({ piece }) => /^(?!##).*[\p{L}\p{N}]/u.test(piece)).length;
    const chips = tokens.map(({ piece, id, begin, end }) => {
      const kind = end > begin ? (piece.startsWith("##") ? "continues" : "") : "special";
      return element("li", { class: `piece ${kind}` }, element("span", {}, piece), element("small", {}, String(id)));
    });
    return [
      element("ol", { class: "pieces" }, chips),
      tokens.length ? element("p", { class: "note" }, say("pieceCount", { words: starts, pieces: real.length })) : "",
    ];
  },
};

const neighbours = {
  id: "neighbours",
  task: "neighbours",
  fields: ["word"],
  question: ({ fields }) => fields.word.trim() || undefined,
  ask: (model, id, word, signal) => model.neighbours(id, word, NEIGHBOURS, signal),
  show: (view, answer) => {
    if (!view.fields.word.trim()) return [element("p", { class: "hint" }, say("noNeighbours"))];
    const rows = (answer ?? []).map(({ word, score }, number) =>
      element(
        "li",
        {},
        bar(
          score,
          {
            "data-key": `neighbour-${number}`,
            title: say("goTo"),
            click: () => view.act.write("word", word.replace(/^##/, "")),
          },
          spelled(word),
          "",
          decimal(score),
        ),
      ),
    );
    return [
      element("div", { class: "list" }, element("ol", {}, rows)),
      element("p", { class: "note" }, say("closeness")),
    ];
  },
};

export const PANELS = [guess, words, pieces, neighbours];
