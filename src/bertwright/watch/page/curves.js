// The curves of all shown runs: which charts there are, what part of them, and what has to be asked for.

import { Chart } from "./chart.js";
import { ask } from "./data.js";
import { element } from "./element.js";
import { paint } from "./markup.js";
import { exact, percent, short, text, whole } from "./texts.js";

const SINGLE = [
  "learning_rate", "tokens_per_second", "data_wait_share", "memory_bytes", "grad_norm", "loss_scale",
  "tflops_per_second", "floor_ratio",
];
const plain = (y, apart) => (apart ? short(y, apart) : exact(y));
const share = (y, apart) => percent(y, apart ? Math.max(0, Math.ceil(-Math.log10(apart)) - 2) : 3);
const FORMS = {
  accuracy: share,
  data_wait_share: share,
  memory_bytes: (y, apart) => `${plain(y / 1e9, apart && apart / 1e9)} GB`,
};
const WIDTH = 600;

// The charts that these rows have values for: {id, group, keys}.
function plan(keys) {
  const of = (kind) =>
    keys.filter((key) => key.endsWith(`_${kind}`) && !key.startsWith("heldout_")).map((key) => ({
      id: key,
      group: kind,
      term: key.slice(0, -kind.length - 1),
      keys: [key, `heldout_${key}`],
    }));
  const single = SINGLE.filter((key) => keys.includes(key)).map((key) => ({ id: key, group: key, keys: [key] }));
  return [...of("loss"), ...of("accuracy"), ...single];
}

export class Curves {
  // `page` has: hidden (numbers of runs), color(number), say(text).
  constructor(page) {
    this.page = page;
    this.axis = "total_steps";
    this.zoomed = null;
    this.data = new Map();
    this.charts = new Map();
    this.grid = element("div", { class: "charts" });
    this.bar = element("p", { class: "bar" });
    this.root = element("div", {}, this.bar, this.grid);
    new ResizeObserver(() => this.#frame()).observe(this.grid);
  }

  // Called with every new state; asks for what has changed.
  async update(runs) {
    this.runs = runs;
    const shown = runs
      .map((run, i) => ({ ...run, i }))
      .filter((run) => !this.page.hidden.has(run.i) && run.rows.version[1]);
    const charts = plan([...new Set(shown.flatMap((run) => run.rows.keys))]);
    this.bounds = [0, Math.max(0, ...shown.map((run) => run.rows.extent[this.axis][1]))];
    this.view = this.zoomed ?? this.bounds;
    this.#arrange(charts);
    const keys = charts.flatMap((chart) => chart.keys).join(",");
    await Promise.all(shown.map((run) => this.#fetch(run, keys)));
    this.#fill(charts, shown);
  }

  async #fetch(run, keys) {
    const wanted = `${this.axis} ${this.zoomed ?? ""} ${keys}`;
    const known = this.data.get(run.i);
    if (known?.wanted === wanted && String(known.version) === String(run.rows.version) && known.end === this.view[1])
      return;
    const [begin, end] = this.view;
    const query = { run: run.i, axis: this.axis, begin, end, width: WIDTH, keys };
    if (known?.wanted === wanted)
      Object.assign(query, { generation: known.generation, rows: known.rows, size: known.size });
    const answer = await ask("curves", query);
    if (answer.from >= 0 && known) merge(known, answer);
    this.data.set(run.i, { ...(answer.from >= 0 && known ? known : answer), wanted, version: run.rows.version, end });
    Object.assign(this.data.get(run.i), { generation: answer.generation, rows: answer.rows, size: answer.size });
  }

  #arrange(charts) {
    const wanted = charts.map((chart) => chart.id).join();
    if (wanted !== this.arranged) {
      this.arranged = wanted;
      this.charts.clear();
      const on = {
        read: (x, spoken) => this.#read(x, spoken),
        zoom: (begin, end) => this.#zoom(begin, end),
        all: () => this.#zoom(null),
      };
      for (const { id, group, term } of charts) {
        const title = text(`chartTitles.${group}`) + (term ? `: ${text(`terms.${term}`)}` : "");
        this.charts.set(id, new Chart(title, FORMS[group] ?? plain, on));
      }
      this.grid.replaceChildren(...[...this.charts.values()].map((chart) => chart.figure));
      if (!charts.length) this.grid.replaceChildren(element("p", { class: "hint" }, text("waiting")));
    }
    const choice = (axis) =>
      element(
        "button",
        { type: "button", "aria-pressed": String(axis === this.axis), click: () => this.#over(axis) },
        text(`axes.${axis}`),
      );
    const all = this.zoomed
      ? element("button", { type: "button", class: "small", click: () => this.#zoom(null) }, text("everything"))
      : element("span", { class: "hint" }, text("drag"));
    const signature = `${this.axis} ${!this.zoomed} ${charts.length > 0}`;
    if (signature === this.barred) return;
    this.barred = signature;
    const axes = element("span", { class: "switch" }, ["total_steps", "tokens_seen", "seconds"].map(choice));
    this.bar.replaceChildren(...(charts.length ? [element("span", {}, text("axis")), axes, all] : []));
  }

  #fill(charts, shown) {
    const several = shown.length > 1;
    for (const { id, keys } of charts) {
      const series = shown.flatMap((run) => {
        const data = this.data.get(run.i);
        return keys.flatMap((key, i) => {
          const values = data?.keys[key];
          if (!values?.mean.some((value) => value !== null)) return [];
          const kind = i ? "dots" : "line";
          const name = several ? (i ? `${run.name}, ${text("heldout")}` : run.name) : text(i ? "heldout" : "training");
          const color = paint(several ? this.page.color(run.i) : i ? "--orange" : "--blue");
          return [{ name, color, kind, x: data.x, mean: values.mean, low: values.low, high: values.high }];
        });
      });
      const chart = this.charts.get(id);
      const marks =
        several || this.axis !== "total_steps" ? [] : shown[0]?.rows.phases.slice(1).map(([, step]) => step);
      chart.show({
        series,
        view: this.view,
        marks,
        axisForm: this.axis === "seconds" ? (x, apart) => plain(x / 3600, apart / 3600) : plain,
      });
      chart.figure.hidden = !series.length;
      const label = text("chart", { title: chart.title, count: series[0]?.x.length ?? 0 });
      chart.canvas.setAttribute("aria-label", label);
    }
  }

  #over(axis) {
    this.axis = axis;
    this.zoomed = null;
    this.update(this.runs);
  }

  async #zoom(begin, end) {
    const [low, high] = this.bounds;
    if (begin !== null) {
      const span = Math.min(end - begin, high - low);
      if (!(span > 0)) return;
      begin = Math.min(Math.max(begin, low), high - span);
      this.zoomed = span >= high - low ? null : [begin, begin + span];
    } else this.zoomed = null;
    await this.update(this.runs);
    this.#say();
  }

  #read(x, spoken) {
    for (const chart of this.charts.values()) chart.at = x;
    this.at = x;
    this.#frame();
    if (spoken) requestAnimationFrame(() => this.#say());
  }

  #say() {
    const place = this.at == null ? this.view.map(whole).join(" – ") : whole(this.at);
    const focused = [...this.charts.values()].find((chart) => chart.canvas === document.activeElement);
    this.page.say(`${text(`axes.${this.axis}`)} ${place}. ${focused?.legend.textContent ?? ""}`);
  }

  // However many moves of the mouse there are, one drawing a frame.
  #frame() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = null;
      for (const chart of this.charts.values()) if (!chart.figure.hidden && chart.values) chart.draw();
    });
  }
}

// Put buckets that have changed in the place of those that are known.
export function merge(known, answer) {
  let kept = known.bucket.findIndex((bucket) => bucket >= answer.from);
  if (kept < 0) kept = known.bucket.length;
  // Without lows and highs, each bucket has one row; with them on one side only, that side's means are both.
  for (const [key, values] of Object.entries(answer.keys)) {
    const before = known.keys[key] ?? { mean: Array(known.bucket.length).fill(null) };
    const bands = before.low || values.low ? ["low", "high"] : [];
    known.keys[key] = Object.fromEntries(
      [...bands, "mean"].map((name) => [
        name,
        [...(before[name] ?? before.mean).slice(0, kept), ...(values[name] ?? values.mean)],
      ]),
    );
  }
  known.x = [...known.x.slice(0, kept), ...answer.x];
  known.bucket = [...known.bucket.slice(0, kept), ...answer.bucket];
}
