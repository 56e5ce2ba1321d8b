// The entries of the vocabulary: how many of each script and length, and which they are.

import { ask } from "./data.js";
import { element } from "./element.js";
import { pages, table } from "./markup.js";
import { exact, percent, text, whole } from "./texts.js";

export class Vocabulary {
  constructor() {
    this.root = element("div", {});
  }

  async update(run) {
    const made = `${run.i} ${run.made.vocab}`;
    if (made === this.made) return;
    const found = await ask("vocabulary", { run: run.i });
    Object.assign(this, { made, run: run.i, script: "", length: 0, found });
    if (!found.entries) {
      this.root.replaceChildren(element("p", { class: "hint" }, text("noVocabulary")));
      return;
    }
    const search = element("input", { type: "search", id: "find", spellcheck: "false", autocomplete: "off" });
    search.addEventListener("input", () => {
      clearTimeout(this.waiting);
      this.waiting = setTimeout(() => this.#list(0), 250);
    });
    this.search = search;
    this.list = element("section", { "aria-live": "polite" });
    this.root.replaceChildren(
      this.#numbers(),
      element("h2", {}, text("byLength")),
      this.#table(),
      element("div", { class: "field" }, element("label", { for: "find" }, text("find")), search),
      this.list,
    );
    await this.#list(0);
  }

  #numbers() {
    const { counts, entries, continuations } = this.found;
    const parts = [[text("entries"), whole(entries)], [text("continuations"), percent(continuations / entries)]];
    if (counts.fertility != null) parts.push([text("fertility"), exact(counts.fertility)]);
    if (counts.unknown_rate != null) parts.push([text("unknown"), percent(counts.unknown_rate, 3)]);
    return element(
      "dl",
      { class: "numbers" },
      parts.map(([name, n]) => element("div", {}, element("dt", {}, name), element("dd", {}, n))),
    );
  }

  #table() {
    const { lengths, scripts, most } = this.found;
    const name = scriptName;
    const largest = Math.max(...scripts.flatMap((script) => script.by_length));
    const cell = (script, length, count, share) => {
      if (!count) return "";
      const pick = () => {
        Object.assign(this, { script, length });
        this.#list(0);
      };
      const level = Math.ceil((4 * Math.log1p(share * count)) / Math.log1p(share * largest));
      return element(
        "button",
        {
          type: "button",
          class: `cell heat-${share ? level : 0}`,
          click: pick,
          "aria-label": `${name(script) || text("all")}, ${length || text("all")}: ${count}`,
        },
        whole(count),
      );
    };
    return table(
      [text("script"), text("all"), ...lengths.map((n) => (n === most ? `${n}+` : n))],
      scripts.map((script) => [
        name(script.name),
        cell(script.name, 0, script.entries, 0),
        ...script.by_length.map((count, i) => cell(script.name, lengths[i], count, 1)),
      ]),
    );
  }

  async #list(page) {
    const query = { run: this.run, script: this.script, length: this.length, find: this.search.value, page };
    const found = await ask("entries", query);
    const chosen = [
      this.script ? scriptName(this.script) : text("anyScript"),
      this.length ? text("ofLength", { length: this.length }) : "",
    ].filter(Boolean);
    const all = () => {
      Object.assign(this, { script: "", length: 0 });
      this.search.value = "";
      this.#list(0);
    };
    const reset =
      this.script || this.length || this.search.value
        ? element("button", { type: "button", class: "small", click: all }, text("all"))
        : "";
    this.list.replaceChildren(
      element("p", { class: "bar" }, `${text("found", { count: whole(found.count) })} · ${chosen.join(", ")}`, reset),
      element(
        "ul",
        { class: "entries" },
        found.items.map(([id, entry]) => element("li", {}, entry, element("small", {}, id))),
      ),
      pages({
        page,
        count: found.pages,
        back: text("before"),
        on: text("next"),
        label: text("page", { page: page + 1, count: found.pages }),
        go: (to) => this.#list(to),
      }) ?? "",
    );
  }
}

// Scripts have their names of Unicode; what is none has a name in the language of the page.
const KINDS = { special: "special", digits: "digits", "other marks": "marks" };
const scriptName = (name) => (KINDS[name] ? text(KINDS[name]) : name);
