// The token of the server: the address that the server prints ends in #token=…, which browsers neither send nor log. It
// is taken from the address bar at once, and kept for this tab.

const KEPT = "bertwright-token";

export const admit = (token) => sessionStorage.setItem(KEPT, token);

// The header of a request that the server answers.
export const authorization = () => ({ Authorization: `Bearer ${sessionStorage.getItem(KEPT) ?? ""}` });

function take() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!given) return false;
  admit(given);
  history.replaceState(null, "", location.pathname + location.search);
  return true;
}

take();
// Another address of the same server, pasted into this tab, changes the fragment only.
addEventListener("hashchange", () => take() && location.reload());
