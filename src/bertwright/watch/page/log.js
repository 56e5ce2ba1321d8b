// What a run has said, by pages, the newest at the end.

import { ask } from "./data.js";
import { element } from "./element.js";
import { pages } from "./markup.js";
import { current, text } from "./texts.js";

export class Log {
  constructor() {
    this.root = element("div", {});
    this.page = 0;
  }

  async update(run) {
    if (this.run !== run.i) Object.assign(this, { run: run.i, page: 0, version: null });
    const version = `${run.log.version} ${this.page}`;
    if (version !== this.version) await this.#show(version);
  }

  async #show(version) {
    const found = await ask("log", { run: this.run, page: this.page });
    this.version = version;
    const line = ({ time, message, error }) => {
      const when = new Date(time);
      const shown = isNaN(when) ? "" : when.toLocaleString(current(), { dateStyle: "short", timeStyle: "medium" });
      return element(
        "li",
        { class: error ? "error" : "" },
        element("time", { datetime: isNaN(when) ? null : time }, shown),
        element("span", {}, message),
      );
    };
    const label = text("page", { page: found.pages - this.page, count: found.pages });
    const go = (to) => {
      this.page = found.pages - 1 - to;
      this.#show(null);
    };
    const turn = pages({
      page: found.pages - 1 - this.page,
      count: found.pages,
      back: text("older"),
      on: text("newer"),
      label,
      go,
    });
    this.root.replaceChildren(
      found.count
        ? element("ol", { class: "log" }, found.lines.map(line))
        : element("p", { class: "hint" }, text("noLog")),
      turn ?? "",
    );
  }
}
