// What an element of the page shows, changed without losing where the reader is.

// Replace what `parent` shows; who was at an element with a `data-key` is at the one with the same key afterwards.
export function show(parent, content, at = undefined) {
  const key = at ?? (parent.contains(document.activeElement) ? document.activeElement.dataset.key : undefined);
  const shares = [...parent.querySelectorAll(".share")].map((bar) => bar.style.getPropertyValue("--share"));
  parent.replaceChildren(...content);
  glide([...parent.querySelectorAll(".share")], shares);
  if (key) parent.querySelector(`[data-key="${key}"]`)?.focus();
}

// Bars go to their new length from that of the bar which was in their place.
function glide(bars, before) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  bars.slice(0, before.length).forEach((bar, number) => {
    const after = bar.style.getPropertyValue("--share");
    if (after !== before[number])
      bar.animate({ "--share": [before[number], after] }, { duration: 220, easing: "ease-out" });
  });
}
