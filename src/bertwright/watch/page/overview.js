// A card for every run: what it is at, how far, how much time is left.

import { element } from "./element.js";
import { exact, percent, short, text, time, whole } from "./texts.js";

const COLORS = ["--run-0", "--run-1", "--run-2", "--run-3", "--run-4", "--run-5", "--run-6", "--run-7"];
export const color = (number) => COLORS[number % COLORS.length];

// How long ago the last row was written, if that is much longer than rows take.
function silence({ rows }, now) {
  const { last, first_time: first, version } = rows, written = Date.parse(last.time) / 1000;
  if (!written || version[1] < 3) return 0;
  const usual = (written - first) / (version[1] - 1);
  return now - written > Math.max(60, 10 * usual) ? now - written : 0;
}

function facts(run, now) {
  const { last } = run.rows, parts = [];
  const loss = Object.keys(last).find((key) => key.endsWith("_loss") && !key.startsWith("heldout_"));
  const add = (name, value) => parts.push(element("div", {}, element("dt", {}, name), element("dd", {}, value)));
  if (loss) add(text("loss"), exact(last[loss]));
  const scored = run.scores[loss] ?? last[`heldout_${loss}`];
  if (scored != null) add(text("heldoutLoss"), exact(scored));
  if (last.tokens_per_second) add(text("speed"), short(last.tokens_per_second));
  const quiet = run.state === "training" ? silence(run, now) : 0;
  if (run.state === "training" && last.remaining_seconds != null && !quiet) {
    const { remaining_low_seconds: low, remaining_high_seconds: high } = last;
    add(text("left"), time(last.remaining_seconds));
    if (low != null)
      parts.at(-1).append(element("dd", { class: "hint" }, text("between", { low: time(low), high: time(high) })));
  }
  return { parts, quiet };
}

export function card(run, { hidden, several, toggle, now }) {
  const { last, reading, share, damaged } = run.rows, { parts, quiet } = facts(run, now);
  const swatch = several
    ? element("button", {
        type: "button",
        class: "swatch",
        "aria-pressed": String(!hidden),
        "aria-label": `${text(hidden ? "show" : "hide")}: ${run.name}`,
        style: { "--key": `var(${color(run.i)})` },
        click: toggle,
      })
    : null;
  const stages = run.stages.map((stage) => {
    const what = [
      text(`stageStates.${stage.state}`),
      stage.seconds ? time(stage.seconds) : "",
      stage.aside ? text("aside", { count: stage.aside }) : "",
    ];
    return element(
      "li",
      { class: stage.state, title: what.filter(Boolean).join(", ") },
      text(`stages.${stage.name}`),
      element("span", { class: "unseen" }, `: ${what[0]}`),
    );
  });
  const of = last.steps ? last.step / last.steps : 0;
  const notes = run.rows.notes.slice(-3).map((note) => element("p", { class: "warning" }, note.text));
  return element(
    "article",
    { class: "run" },
    element(
      "div",
      { class: "head" },
      element("h2", {}, swatch, run.name),
      element("span", { class: `state ${run.state}` }, text(`states.${run.state}`)),
    ),
    last.steps
      ? element(
          "p",
          { class: "progress" },
          element("progress", { value: of, max: 1, "aria-label": percent(of) }),
          element(
            "span",
            {},
            text("step", { step: whole(last.step), steps: whole(last.steps) }),
            " · ",
            text("elapsed", { time: time(last.seconds ?? 0) }),
          ),
        )
      : null,
    parts.length ? element("dl", { class: "numbers" }, parts) : null,
    element("ol", { class: "stages" }, stages),
    reading ? element("p", { class: "note" }, text("reading", { share: percent(share, 0) })) : null,
    damaged ? element("p", { class: "note" }, text("damaged", { count: whole(damaged) })) : null,
    quiet ? element("p", { class: "warning" }, text("silent", { time: time(quiet) })) : null,
    ...notes,
  );
}
