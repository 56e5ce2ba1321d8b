// Elements of pages. A text becomes a text node and nothing else, whoever wrote it.

// The element `tag`; a function among its attributes listens to the event of that name, and `style` sets properties.
export function element(tag, attributes = {}, ...content) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (name === "style") for (const each of Object.entries(value)) made.style.setProperty(...each);
    else if (value !== false && value != null) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...content.flat(2).filter((each) => each !== false && each != null && each !== ""));
  return made;
}
