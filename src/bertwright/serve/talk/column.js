// One of the models that are asked at once, and its answers.

import { element } from "./element.js";
import { latest } from "./latest.js";
import { asked, filled, partBefore, partsOf, toggled } from "./sentence.js";
import { show } from "./show.js";
import { percent, say } from "./texts.js";

const OF_ALL = ["lost", "token", "busy"];

export class Column {
  // `page` has the model object, the models, the state and the panel, and what a column does to the page.
  constructor(page, described, number) {
    Object.assign(this, { page, described, number });
    this.questions = latest();
    this.body = element("div", { class: "body" });
    this.root = element("article", { class: `column column-${number}` }, this.head(), this.body);
  }

  head() {
    const { models, state, arrange } = this.page;
    // Checkpoints of a run have the same title.
    const titles = models.map((each) => each.title || each.id);
    const title = ({ id, title }) => {
      if (titles.filter((each) => each === title).length < 2) return title || id;
      return id.startsWith(title) ? id : `${title} · ${id}`;
    };
    if (models.length < 2) return element("div", { class: "head" }, element("h2", {}, title(this.described)));
    const options = models.map((each) =>
      element("option", { value: each.id, selected: each.id === this.described.id }, title(each)),
    );
    const change = (event) => {
      state.chosen[this.number] = event.target.value;
      arrange();
    };
    const key = `model-${this.number}`;
    const choice = element("select", { "aria-label": say("model"), "data-key": key, change }, options);
    const alone = state.chosen.length < 2;
    const click = () => {
      const other = models.find((each) => each.id !== this.described.id);
      state.chosen = alone ? [this.described.id, other.id] : [state.chosen[0]];
      arrange();
    };
    const label = say(alone ? "compare" : "alone");
    const toggle = element("button", { type: "button", class: "quiet", "data-key": "compare", click }, label);
    return element("div", { class: "head" }, choice, alone || this.number ? toggle : "");
  }

  view() {
    const { state, change, refresh, fields } = this.page;
    const { sentence } = state;
    const { text } = sentence;
    const parts = partsOf(text);
    const { mask, language } = this.described;
    const act = {
      toggle: (part, number, guess) => change(toggled(sentence, part, guess), `part-${number}`, this),
      fill: (part, word) => {
        const now = filled(sentence, part, word);
        change(
          now,
          `part-${partBefore(now.text, now.text.length - text.length + part.begin + part.text.length)}`,
          this,
        );
      },
      reach: (number) => (this.active = number),
      move: (number) => this.body.querySelector(`[data-key="part-${number}"]`)?.focus(),
      write: (name, text) => {
        document.getElementById(name).value = state.fields[name] = text;
        refresh(0);
      },
    };
    return { sentence, parts, sent: asked(parts, mask), fields: fields(), mask, language, active: this.active, act };
  }

  ask(delay) {
    const { model, panel } = this.page;
    this.able = this.described.tasks.includes(panel.task);
    const question = this.able ? panel.question(this.view()) : undefined;
    const asks = question !== undefined;
    if (!asks) this.answer = undefined;
    this.show(this.able ? "" : "cannot");
    this.root.setAttribute("aria-busy", String(asks));
    this.questions.ask(
      delay,
      async (signal) => (asks ? await panel.ask(model, this.described.id, question, signal) : undefined),
      (answer) => this.take(answer),
      (error) => this.fail(error),
    );
  }

  take(answer) {
    this.root.setAttribute("aria-busy", "false");
    if (answer === undefined) return;
    this.answer = answer;
    this.page.tell("");
    this.show("");
    const best = answer.blanks?.map(({ words: [first] }, number) =>
      first ? `${number + 1}: ${first.word}, ${percent(first.probability)}` : "",
    );
    if (best && !this.number) document.getElementById("announced").textContent = best.join("; ");
  }

  fail({ kind = "failed", seconds, message }) {
    this.root.setAttribute("aria-busy", "false");
    if (OF_ALL.includes(kind)) this.page.tell(kind);
    else this.show(kind, { message });
    if (kind === "lost" || kind === "busy") this.page.later(seconds);
  }

  // What went wrong, if something did, and the answer as far as there is one.
  show(kind, values) {
    const told = kind ? [element("p", { class: "trouble", role: "alert" }, say(kind, values))] : [];
    const content = this.able ? this.page.panel.show(this.view(), this.answer) : [];
    show(this.body, [...told, ...content], this.goTo);
    this.goTo = undefined;
  }
}
