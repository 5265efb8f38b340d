// The view, everything that was chosen in it, and the scenario stand in the address, so that it can be bookmarked and sent.

/** The view and its parameters. */
export function current() {
  const [path, ...query] = location.hash.replace(/^#\/?/, "").split("?");
  return { view: path || "home", params: new URLSearchParams(query.join("?")) };
}

/** The address of a view, in the scenario of this address unless `s` says otherwise. */
export function addressTo(view, params = {}) {
  const given = { ...params, s: params.s ?? current().params.get("s") ?? "" };
  const query = new URLSearchParams(Object.entries(given).filter(([, value]) => value !== undefined && value !== null && value !== ""));
  return `#/${view}${[...query].length ? `?${query}` : ""}`;
}

/** Go to a view. */
export function go(view, params = {}) {
  location.hash = addressTo(view, params);
}

/** Write what was chosen into the address, without a new entry in the history and without drawing the view anew. */
export function note(changes) {
  const { view, params } = current();
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === null || value === "" || value === false) params.delete(name);
    else params.set(name, value === true ? "1" : value);
  }
  const { s = "", ...others } = Object.fromEntries(params);
  history.replaceState(history.state, "", addressTo(view, { ...others, s }));
}
