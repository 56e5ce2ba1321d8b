// One chart on a canvas: curves with the band between their lowest and highest values, a line to read values at, and a
// part that is chosen by dragging. It knows nothing of runs; `curves.js` gives it series and follows what it is asked.

import { element } from "./element.js";

const LEFT = 58, RIGHT = 10, TOP = 8, BOTTOM = 24, HEIGHT = 210;

export class Chart {
  // `on` has: read(x or null, spoken), zoom(begin, end), all(). `form` writes a value of the vertical axis: exactly, or
  // with the digits by which labels so far apart differ.
  constructor(title, form, on) {
    this.form = form;
    this.on = on;
    this.series = [];
    this.view = [0, 1];
    this.at = null;
    this.canvas = element("canvas", { tabindex: 0, role: "img" });
    this.still = element("canvas");
    this.legend = element("p", { class: "legend" });
    this.figure = element("figure", { class: "chart" }, element("h3", {}, title), this.legend, this.canvas);
    this.title = title;
    this.#listen();
  }

  // Series are {name, color, kind, x: [], mean: [], low?: [], high?: []}; `kind` is "line" or "dots".
  show({ series, view, marks, axisForm }) {
    Object.assign(this, { series, view, marks, axisForm });
    this.values = series.map((one) => element("b"));
    const names = series.map((one, i) =>
      element("span", { class: `key of-${one.kind}`, style: { "--key": one.color } }, one.name, " ", this.values[i]),
    );
    this.legend.replaceChildren(...names);
    this.painted = null;
    this.draw();
  }

  get width() {
    return this.canvas.clientWidth || 320;
  }

  toX(pixel) {
    const [begin, end] = this.view;
    return begin + ((pixel - LEFT) / (this.width - LEFT - RIGHT)) * (end - begin);
  }

  // The curves, on a canvas that is not seen: while the mouse moves, it is only copied.
  #paint() {
    const { canvas, still, width } = this;
    const scale = devicePixelRatio || 1;
    still.width = Math.round(width * scale);
    still.height = HEIGHT * scale;
    const pen = still.getContext("2d");
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    const style = getComputedStyle(canvas);
    const soft = style.color, rule = style.borderColor;
    pen.font = `12px ${style.fontFamily}`;
    const [low, high] = this.#extent();
    const [begin, end] = this.view;
    const px = (x) => LEFT + ((x - begin) / (end - begin || 1)) * (width - LEFT - RIGHT);
    const py = (y) => HEIGHT - BOTTOM - ((y - low) / (high - low)) * (HEIGHT - TOP - BOTTOM);
    Object.assign(this, { px, py, soft, painted: `${width} ${scale}` });
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    const up = ticks(low, high, 5);
    for (const y of up) {
      pen.fillStyle = rule;
      pen.fillRect(LEFT, Math.round(py(y)), width - LEFT - RIGHT, 1);
      pen.fillStyle = soft;
      pen.fillText(this.form(y, up[1] - up[0]), LEFT - 6, py(y));
    }
    pen.textBaseline = "alphabetic";
    pen.fillStyle = soft;
    const across = ticks(begin, end, Math.max(2, Math.floor(width / 90)));
    for (const x of across) {
      const label = this.axisForm(x, across[1] - across[0]), half = pen.measureText(label).width / 2;
      pen.textAlign = px(x) + half > width ? "right" : "center";
      pen.fillText(label, Math.min(px(x), width), HEIGHT - 6);
    }
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, TOP - 4, width - LEFT - RIGHT + 4, HEIGHT - TOP - BOTTOM + 8);
    pen.clip();
    pen.fillStyle = soft;
    for (const x of this.marks ?? []) for (let y = TOP; y < HEIGHT - BOTTOM; y += 5) pen.fillRect(px(x), y, 1, 2);
    for (const one of this.series) {
      if (one.low) band(pen, one, px, py);
      curve(pen, one, px, py);
    }
    pen.restore();
  }

  draw() {
    const { canvas, still, width, px, py } = this;
    const scale = devicePixelRatio || 1;
    if (this.painted !== `${width} ${scale}`) {
      this.#paint();
      return this.draw();
    }
    if (canvas.width !== still.width || canvas.height !== still.height)
      Object.assign(canvas, { width: still.width, height: still.height });
    const pen = canvas.getContext("2d");
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(still, 0, 0);
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.fillStyle = this.soft;
    if (this.at !== null && this.at >= this.view[0] && this.at <= this.view[1]) {
      pen.fillRect(Math.round(px(this.at)), TOP, 1, HEIGHT - TOP - BOTTOM);
      for (const one of this.series) {
        const i = nearest(one, this.at);
        if (i < 0) continue;
        pen.fillStyle = one.color;
        pen.beginPath();
        pen.arc(px(one.x[i]), py(one.mean[i]), 4, 0, 7);
        pen.fill();
      }
    }
    if (this.drag) {
      pen.globalAlpha = 0.2;
      pen.fillStyle = this.soft;
      pen.fillRect(Math.min(...this.drag), TOP, Math.abs(this.drag[1] - this.drag[0]), HEIGHT - TOP - BOTTOM);
      pen.globalAlpha = 1;
    }
    this.#write();
  }

  // The values at the line, or the last ones.
  #write() {
    this.series.forEach((one, i) => {
      const at = this.at === null ? last(one) : nearest(one, this.at);
      this.values[i].textContent = at < 0 ? "" : this.form(one.mean[at]);
    });
  }

  // All means that are in view, and nearly all lows and highs: spikes of single steps would flatten the curve.
  #extent() {
    const [begin, end] = this.view, means = [], lows = [], highs = [];
    for (const { x, mean, low, high } of this.series)
      for (let i = 0; i < x.length; i++) {
        if (mean[i] === null || x[i] < begin || x[i] > end) continue;
        means.push(mean[i]);
        if (low) lows.push(low[i]), highs.push(high[i]);
      }
    if (!means.length) return [0, 1];
    const low = Math.min(means.reduce((a, b) => Math.min(a, b)), quantile(lows, 0.03) ?? Infinity);
    const high = Math.max(means.reduce((a, b) => Math.max(a, b)), quantile(highs, 0.97) ?? -Infinity);
    const room = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
    return [low >= 0 && low < room * 4 ? 0 : low - room, high + room];
  }

  #listen() {
    const { canvas } = this;
    const pixel = (event) => event.clientX - canvas.getBoundingClientRect().left;
    const inside = (p) => Math.min(Math.max(p, LEFT), this.width - RIGHT);
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button || event.pointerType === "touch") return;
      canvas.setPointerCapture(event.pointerId);
      this.drag = [inside(pixel(event)), inside(pixel(event))];
    });
    canvas.addEventListener("pointermove", (event) => {
      if (this.drag) this.drag[1] = inside(pixel(event));
      this.on.read(this.toX(inside(pixel(event))), false);
    });
    canvas.addEventListener("pointerup", () => {
      const drag = this.drag;
      this.drag = null;
      if (drag && Math.abs(drag[1] - drag[0]) > 6)
        this.on.zoom(this.toX(Math.min(...drag)), this.toX(Math.max(...drag)));
      else this.draw();
    });
    canvas.addEventListener("pointerleave", () => this.drag || this.on.read(null, false));
    canvas.addEventListener("dblclick", () => this.on.all());
    canvas.addEventListener("keydown", (event) => this.#key(event));
    canvas.addEventListener("blur", () => this.on.read(null, false));
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const [begin, end] = this.view, span = end - begin, at = this.at ?? end;
    const side = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const zoom = (share) => {
      const from = Math.min(Math.max(at - (span * share) / 2, begin - span), end);
      this.on.zoom(from, from + span * share);
    };
    if (side && event.shiftKey) this.on.zoom(begin + (side * span) / 4, end + (side * span) / 4);
    else if (side) this.on.read(this.#beside(at, side), true);
    else if (event.key === "Home" || event.key === "End") this.on.read(event.key === "Home" ? begin : end, true);
    else if (event.key === "+" || event.key === "=") zoom(0.5);
    else if (event.key === "-") zoom(2);
    else if (event.key === "0" || event.key === "Escape") this.on.all();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // The next point of the longest curve, at least some pixels on, so that a held key moves on.
  #beside(at, side) {
    const longest = this.series.reduce((best, one) => (one.x.length > best.x.length ? one : best), { x: [] });
    const wanted = at + (side * (this.view[1] - this.view[0])) / 200;
    const beyond = longest.x.filter((x) => (side > 0 ? x >= wanted : x <= wanted));
    return beyond.length ? (side > 0 ? beyond[0] : beyond.at(-1)) : at;
  }
}

function band(pen, { x, low, high, color }, px, py) {
  pen.fillStyle = color;
  pen.globalAlpha = 0.22;
  pen.beginPath();
  for (let i = 0; i < x.length; i++) if (high[i] !== null) pen.lineTo(px(x[i]), py(high[i]));
  for (let i = x.length - 1; i >= 0; i--) if (low[i] !== null) pen.lineTo(px(x[i]), py(low[i]));
  pen.fill();
  pen.globalAlpha = 1;
}

function curve(pen, { x, mean, kind, color }, px, py) {
  pen.strokeStyle = pen.fillStyle = color;
  pen.lineWidth = kind === "dots" ? 2 : 1.4;
  pen.lineJoin = "round";
  pen.beginPath();
  for (let i = 0; i < x.length; i++) if (mean[i] !== null) pen.lineTo(px(x[i]), py(mean[i]));
  pen.stroke();
  // Dots that would touch each other are left out.
  let before = -Infinity;
  if (kind === "dots")
    for (let i = 0; i < x.length; i++) {
      if (mean[i] === null || px(x[i]) < before + 12) continue;
      before = px(x[i]);
      pen.beginPath();
      pen.arc(before, py(mean[i]), 3, 0, 7);
      pen.fill();
    }
}

// The index of the value nearest to x, or -1.
export function nearest({ x, mean }, at) {
  let low = 0, high = x.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x[middle] < at) low = middle + 1;
    else high = middle;
  }
  for (let away = 0; away < x.length; away++) {
    const near = [low - away, low + away].filter((i) => i >= 0 && i < x.length && mean[i] !== null);
    // The one before may be nearer: look at both neighbours first.
    if (away === 0 && low > 0 && mean[low - 1] !== null) near.push(low - 1);
    if (near.length) return near.reduce((a, b) => (Math.abs(x[a] - at) <= Math.abs(x[b] - at) ? a : b));
  }
  return -1;
}

const quantile = (values, share) => values.sort((a, b) => a - b)[Math.floor(share * (values.length - 1))];

const last = ({ mean }) => mean.findLastIndex((value) => value !== null);

// Round numbers between two values, about `count` of them.
export function ticks(low, high, count) {
  const raw = (high - low) / count;
  if (!(raw > 0)) return [];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((m) => m * power >= raw);
  const found = [];
  for (let i = Math.ceil(low / step); i * step <= high; i++) found.push(i * step);
  return found;
}
