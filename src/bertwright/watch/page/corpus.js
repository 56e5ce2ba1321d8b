// What became of the corpus: how much was dropped and why, with examples, and its longest and strangest sentences.

import { ask } from "./data.js";
import { element } from "./element.js";
import { pages, table } from "./markup.js";
import { exact, percent, short, text, whole } from "./texts.js";

const OF_PAGES = ["redirects", "other_namespaces", "disambiguations"];
const LATER = ["duplicates", "near_duplicates", "emptied", "not_drawn"];

export class Corpus {
  constructor() {
    this.root = element("div", {});
    this.kind = "longest";
  }

  async update(run) {
    const made = `${run.i} ${run.made.corpus}`;
    if (made === this.made) return;
    const { counts } = await ask("corpus", { run: run.i });
    Object.assign(this, { made, run: run.i, counts });
    if (!counts.documents) {
      this.root.replaceChildren(element("p", { class: "hint" }, text("noCorpus")));
      return;
    }
    this.examples = element("section", { "aria-live": "polite" });
    this.sentences = element("div", {});
    this.kinds = element("span", { class: "switch" });
    this.root.replaceChildren(
      element("h2", {}, text("dropTitle")),
      this.#numbers(),
      element("div", { class: "funnel" }, this.#funnel()),
      this.examples,
      element("h2", {}, text("sentencesTitle")),
      element("p", { class: "bar" }, this.kinds),
      this.sentences,
    );
    const [most] = Object.entries(counts.dropped ?? {}).sort((a, b) => b[1] - a[1]);
    if (most) await this.#show(most[0], 0);
    await this.#list(0);
  }

  #numbers() {
    const { counts } = this;
    const parts = [
      ["kept", counts.kept],
      ["sentences", counts.sentences],
      ["words", counts.words],
    ].filter(([, n]) => n != null);
    const shown = parts.map(([name, n]) =>
      element("div", {}, element("dt", {}, text(name)), element("dd", { title: whole(n) }, short(n))),
    );
    return element("dl", { class: "numbers" }, shown);
  }

  #funnel() {
    const { counts } = this, total = Math.max(counts.pages ?? 0, counts.documents, 1);
    const sizes = counts.bytes ?? {};
    const row = (name, count, size, kind) => [
      typeof name === "string" ? element("span", { class: kind }, name) : name,
      whole(count),
      element(
        "span",
        { class: "amount" },
        element("span", { class: `bar-share ${kind}`, style: { width: `${(100 * count) / total}%` } }),
        percent(count / total, 2),
      ),
      size == null ? "" : short(size),
    ];
    const reason = ([name, count]) =>
      row(
        element("button", { type: "button", class: "link lost", click: () => this.#show(name, 0) }, this.#reason(name)),
        count,
        sizes.dropped?.[name],
        "lost",
      );
    const later = LATER.filter((name) => counts[name]).map((name) => {
      const button = element(
        "button",
        { type: "button", class: "link lost", click: () => this.#show(name, 0) },
        text(name),
      );
      return row(button, counts[name], sizes[name], "lost");
    });
    const dropped = Object.entries(counts.dropped ?? {}).sort((a, b) => b[1] - a[1]);
    return table(
      [text("what"), text("documents"), text("share"), text("bytes")],
      [
        ...(counts.pages ? [row(text("pages"), counts.pages, null, "kept")] : []),
        ...OF_PAGES.filter((name) => counts[name]).map((name) => row(text(name), counts[name], null, "lost")),
        row(text("documents"), counts.documents, sizes.documents, "kept"),
        ...dropped.map(reason),
        ...later,
        row(text("kept"), counts.kept, sizes.kept, "kept"),
        ...Object.entries(counts.removed_paragraphs ?? {}).map(([name, count]) => [
          element(
            "button",
            { type: "button", class: "link lost", click: () => this.#show(name, 0) },
            text("paragraphs", { what: text(`rules.${name}`) }),
          ),
          whole(count),
        ]),
      ],
    );
  }

  #reason(name) {
    const own = text("reasons")[name] ?? this.counts.reasons?.[name] ?? text("rules")[name];
    return own ?? text(name);
  }

  async #show(reason, page) {
    const found = await ask("dropped", { run: this.run, reason: REASONS[reason] ?? reason, page });
    const name = this.#reason(reason);
    const items = found.items.map((item) => {
      const title = item.title || item.source;
      // A link only where it leads to a page of the web, whatever a document says.
      const link = /^https?:\/\//.test(item.url)
        ? element("a", { href: item.url, rel: "noreferrer", target: "_blank" }, title)
        : title;
      return element("article", { class: "text" }, element("h4", {}, link), passage(item));
    });
    this.examples.replaceChildren(
      element("h3", {}, text("examplesOf", { reason: name })),
      element("p", { class: "hint" }, found.count ? text("fromFiles", found) : text("noExamples")),
      ...items,
      turn(found, page, (to) => this.#show(reason, to)) ?? "",
    );
  }

  async #list(page) {
    const choice = (kind) =>
      element(
        "button",
        {
          type: "button",
          "aria-pressed": String(kind === this.kind),
          click: () => {
            this.kind = kind;
            this.#list(0);
          },
        },
        text(kind),
      );
    this.kinds.replaceChildren(choice("longest"), choice("strangest"));
    const found = await ask("sentences", { run: this.run, kind: this.kind, page });
    const items = found.items.map((item) => {
      const count =
        item.bits === undefined
          ? text("characters", { count: whole(item.characters) })
          : text("bits", { count: exact(item.bits) });
      return element("article", { class: "text" }, element("p", { class: "note" }, count), passage(item));
    });
    this.sentences.replaceChildren(
      element(
        "p",
        { class: "hint" },
        this.kind === "strangest" ? `${text("strangestHelp")} ` : "",
        text("fromFiles", found),
      ),
      ...items,
      turn(found, page, (to) => this.#list(to)) ?? "",
    );
  }
}

// The names that the files of dropped documents have for what the counts name otherwise.
const REASONS = { duplicates: "duplicate", near_duplicates: "near_duplicate" };

function passage({ text: said, characters }) {
  const cut =
    characters > said.length ? element("span", { class: "hint" }, ` ${text("cut", { count: whole(characters) })}`) : "";
  return element("p", { class: "passage" }, said, cut);
}

const turn = ({ pages: count }, page, go) =>
  pages({ page, count, back: text("before"), on: text("next"), label: text("page", { page: page + 1, count }), go });
