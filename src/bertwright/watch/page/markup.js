// Parts of the page that several tabs have.

import { element } from "./element.js";

// A table with a heading row; cells are texts or elements. `wide` columns hold texts, the others numbers.
export function table(heads, rows, wide = 1) {
  const kind = (index) => (index < wide ? "name" : "number");
  return element(
    "div",
    { class: "scroll" },
    element(
      "table",
      {},
      element(
        "thead",
        {},
        element(
          "tr",
          {},
          heads.map((head, i) => element("th", { scope: "col", class: kind(i) }, head)),
        ),
      ),
      element(
        "tbody",
        {},
        rows.map((row) => element("tr", {}, row.map((cell, i) => element("td", { class: kind(i) }, cell ?? "")))),
      ),
    ),
  );
}

// Buttons to the page before and after; `go` is called with its number. Page 0 is the first.
export function pages({ page, count, back, on, label, go }) {
  if (count < 2) return null;
  const button = (text, to) =>
    element("button", { type: "button", class: "small", disabled: to < 0 || to >= count, click: () => go(to) }, text);
  return element("p", { class: "pages" }, button(back, page - 1), element("span", {}, label), button(on, page + 1));
}

// A color of the style sheet as a canvas takes it, in the theme of now.
export function paint(name) {
  const probe = element("i", { style: { color: `var(${name})` } });
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
