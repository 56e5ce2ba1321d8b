// How pages look: their language and their theme, "" as the browser is set. They are kept for all pages of the server.

const read = (name) => {
  try {
    return localStorage.getItem(`bertwright-${name}`) ?? "";
  } catch {
    return ""; // a page from a file may have no storage
  }
};

const looks = { language: read("language"), theme: read("theme") };

const keep = (name, value) => {
  looks[name] = value;
  try {
    localStorage.setItem(`bertwright-${name}`, value);
  } catch {
    // It is so until the page is left.
  }
};

// The language of the page, of those that it has: the one that was chosen, or else that of the browser, or English.
export function language(known) {
  const wanted = (looks.language || navigator.language).slice(0, 2).toLowerCase();
  return known.includes(wanted) ? wanted : "en";
}

export const chooseLanguage = (name) => keep("language", name);

export const dark = () =>
  (looks.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";

export function changeTheme() {
  keep("theme", dark() ? "light" : "dark");
  showTheme();
}

export function showTheme() {
  if (looks.theme) document.documentElement.dataset.theme = looks.theme;
}
