// The view and everything that was chosen in it stand in the address, so that it can be bookmarked and sent.

/** The view and its parameters. */
export function current() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?", 2);
  return { view: path || "pods", params: new URLSearchParams(query ?? "") };
}

/** The address of a view. */
export function addressTo(view, params = {}) {
  const query = new URLSearchParams(Object.entries(params).filter(([, value]) => value !== undefined && value !== ""));
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
  history.replaceState(null, "", addressTo(view, Object.fromEntries(params)));
}

/** Weights and switches as text for an address, and back: `NodeResourcesFit:5,ImageLocality:0`. */
export function writeSettings(settings) {
  return {
    w: Object.entries(settings.weights).map(([plugin, weight]) => `${plugin}:${weight}`).join(","),
    strategy: settings.strategy ?? "",
    off: settings.disabled.join(","),
  };
}

/** The weights and switches of an address. */
export function readSettings(params) {
  const weights = {};
  for (const pair of (params.get("w") ?? "").split(",")) {
    const at = pair.lastIndexOf(":");
    const weight = Number.parseInt(pair.slice(at + 1), 10);
    if (at > 0 && weight >= 0) weights[pair.slice(0, at)] = weight;
  }
  const strategy = params.get("strategy") || null;
  return { weights, strategy, disabled: (params.get("off") ?? "").split(",").filter(Boolean) };
}
