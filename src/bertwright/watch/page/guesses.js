// What the model guesses for the recipe's lines, through the checkpoints: as an animation, or one by one.

import { ask } from "./data.js";
import { element } from "./element.js";
import { percent, text, whole } from "./texts.js";

const FRAME = 700, FRAMES = 240;

export class Guesses {
  constructor(page) {
    this.page = page;
    this.rows = [];
    this.at = -1;
    this.follows = true;
    this.head = element("div", { class: "player" });
    this.lines = element("div", { class: "lines" });
    this.root = element("div", { keydown: (event) => this.#key(event) }, this.head, this.lines);
  }

  async update(run) {
    if (this.run !== run.i || String(this.version?.[0]) !== String(run.guesses.version[0])) {
      this.#stop();
      Object.assign(this, { run: run.i, known: new Map(), rows: [], at: -1, follows: true, drawn: null });
    }
    this.version = run.guesses.version;
    const rows = await this.#fetch(this.version[1]);
    if (!rows) return;
    const at = rows.indexOf(this.rows[this.at]);
    this.rows = rows;
    this.#show(this.follows || at < 0 ? rows.length - 1 : at);
  }

  // Of thousands of checkpoints, some hundred spread evenly, and the newest; null if the run is another one by now.
  async #fetch(count) {
    const { run, known } = this, stride = 2 ** Math.max(0, Math.ceil(Math.log2(count / FRAMES)));
    const take = async (begin, step) => {
      const answer = await ask("guesses", { run, begin, stride: step });
      answer.rows.forEach((row, i) => known.set(begin + i * step, row));
      return answer.rows.length > 0 && this.run === run && String(answer.version[0]) === String(this.version[0]);
    };
    for (let next = 0; next < count; next += stride) if (!known.has(next) && !(await take(next, stride))) return null;
    if (count && !known.has(count - 1) && !(await take(count - 1, 1))) return null;
    const wanted = [...known.keys()].filter(
      (number) => number < count && (number % stride === 0 || number === count - 1),
    );
    return wanted.sort((a, b) => a - b).map((number) => known.get(number));
  }

  leave() {
    this.#stop();
  }

  #key(event) {
    if (event.key !== " " || event.target.closest("button")) return;
    event.preventDefault();
    this.#play();
  }

  #play() {
    if (this.timer) this.#stop();
    else {
      if (this.at >= this.rows.length - 1) this.#show(0);
      this.timer = setInterval(() => {
        if (this.at >= this.rows.length - 1) this.#stop();
        else this.#show(this.at + 1);
      }, FRAME);
    }
    this.#show(this.at);
  }

  #stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.follows = this.at === this.rows.length - 1;
    if (this.button) this.button.textContent = text("play");
  }

  #show(at) {
    if (!this.rows.length) {
      this.drawn = null;
      this.head.replaceChildren(element("p", { class: "hint" }, text("noGuesses")));
      this.lines.replaceChildren();
      return;
    }
    this.at = at;
    this.follows = at === this.rows.length - 1 && !this.timer;
    const row = this.rows[at];
    if (this.drawn !== row.answers.length || !this.slider?.isConnected) this.#build(row);
    this.button.textContent = text(this.timer ? "pause" : "play");
    this.slider.max = this.rows.length - 1;
    this.slider.value = at;
    const step = row.step ? text("atStep", { step: whole(row.step) }) : text("beforeTraining");
    this.slider.setAttribute("aria-valuetext", step);
    const known = row.answers.filter((answer) => answer.gold);
    const right = known.filter((answer) => answer.top[0]?.[0] === answer.gold).length;
    const hits = known.length ? text("hits", { right, of: known.length }) : "";
    const place = text("ofCheckpoints", { number: whole(at + 1), count: whole(this.rows.length) });
    this.place.replaceChildren(element("b", {}, step), ` · ${place}`, hits ? ` · ${hits}` : "");
    row.answers.forEach((answer, i) => this.#line(i, answer));
  }

  #build(row) {
    this.drawn = row.answers.length;
    this.button = element("button", { type: "button", class: "primary", click: () => this.#play() });
    this.slider = element("input", {
      type: "range", min: 0, "aria-label": text("checkpoint"),
      input: () => { this.#stop(); this.#show(Number(this.slider.value)); },
    });
    this.place = element("p", { class: "place" });
    this.head.replaceChildren(this.button, this.slider, this.place);
    this.parts = row.answers.map(() => {
      const best = Array.from({ length: 5 }, () => {
        const said = element("span", { class: "said" }),
          share = element("span", { class: "share" }),
          number = element("span", { class: "amount" });
        return { said, share, number, row: element("li", { class: "row" }, share, said, number) };
      });
      const history = element("canvas", { class: "history", "aria-hidden": "true" });
      const sentence = element("p", { class: "sentence" });
      const gold = element("p", { class: "note" });
      return {
        best,
        history,
        sentence,
        gold,
        box: element(
          "article",
          { class: "line" },
          sentence,
          element(
            "ol",
            {},
            best.map((one) => one.row),
          ),
          gold,
          history,
        ),
      };
    });
    this.lines.replaceChildren(...this.parts.map((part) => part.box));
  }

  #line(i, answer) {
    const part = this.parts[i], [before, after = ""] = answer.text.split("[MASK]");
    const top = answer.top[0]?.[0] ?? "";
    const hit = answer.gold && top === answer.gold;
    part.sentence.replaceChildren(before, element("span", { class: hit ? "slot hit" : "slot" }, top || "…"), after);
    part.best.forEach((one, n) => {
      const [word, probability] = answer.top[n] ?? ["", 0];
      one.said.textContent = word;
      one.number.textContent = word ? percent(probability) : "";
      one.share.style.width = `${100 * probability}%`;
      one.row.classList.toggle("hit", word !== "" && word === answer.gold);
      one.row.hidden = !word;
    });
    part.gold.textContent = !answer.gold ? "" : text("expected", { word: answer.gold });
    part.history.hidden = !answer.gold;
    if (answer.gold) this.#history(part.history, i, answer.text);
  }

  // The probability of the right word, where it was among the best, over the checkpoints.
  #history(canvas, i, sentence) {
    const width = canvas.clientWidth || 300, height = 34, scale = devicePixelRatio || 1;
    canvas.width = width * scale;
    canvas.height = height * scale;
    const pen = canvas.getContext("2d"), style = getComputedStyle(canvas);
    pen.scale(scale, scale);
    const values = this.rows.map(({ answers }) => {
      const answer = answers[i]?.text === sentence ? answers[i] : null;
      return answer?.top.find(([word]) => word === answer.gold)?.[1] ?? 0;
    });
    const px = (n) => 3 + (n * (width - 6)) / Math.max(1, values.length - 1), py = (y) => height - 3 - y * (height - 6);
    pen.strokeStyle = style.borderColor;
    pen.strokeRect(0.5, 0.5, width - 1, height - 1);
    pen.strokeStyle = pen.fillStyle = style.color;
    pen.lineWidth = 1.5;
    pen.beginPath();
    values.forEach((value, n) => pen.lineTo(px(n), py(value)));
    pen.stroke();
    pen.beginPath();
    pen.arc(px(this.at), py(values[this.at]), 3, 0, 7);
    pen.fill();
  }
}
