// The scenario of the page: the cluster after steps, with other weights, a release or a configuration. It stands in the
// address, every view asks about it, and every change of it can be undone.
import { addressTo, current } from "./address.js";
import { askAbout, busy, keep, overview } from "./api.js";
import { el, save } from "./dom.js";

const LONGEST = 1500;
const MOST_RECENT = 12;
let shown = null;
let about = null;
let isStale = false;
let refreshing = null;
let onLook = () => {};
const past = [];

/** Call this with what the server says of the scenario, once a slider rests. */
export function whenLooked(call) {
  onLook = call;
}

/** What the server says of the scenario in the address; the same as before if neither changed. */
export async function look(isNew = false) {
  const text = current().params.get("s") ?? "";
  if (about && !isNew && !isStale && text === shown) return about;
  const asked = text.startsWith("@") ? text.slice(1) : text ? JSON.parse(text) : null;
  askAbout(asked);
  const found = await overview(asked);
  if (shown !== null && text !== shown && past.at(-1) !== text) past.push(shown);
  else if (past.at(-1) === text) past.pop();
  shown = text;
  about = found;
  isStale = false;
  if (text) remember(text, found.scenario.title);
  return about;
}

/** The scenario itself. */
export const scenario = () => about.scenario.value;

/** Go on with a changed scenario in the same view, or another one. */
export async function change(changes, view, params = {}) {
  const next = await written({ ...scenario(), name: "", ...changes });
  const here = current();
  const others = view ? params : Object.fromEntries(here.params);
  location.hash = addressTo(view ?? here.view, { ...others, s: next || "" });
  if (!next) withoutScenario(view ?? here.view, others);
}

/** Change the scenario without drawing the view anew: what a slider does. The address follows. */
export async function changeQuietly(changes) {
  about.scenario.value = { ...scenario(), name: "", ...changes };
  const value = compact(about.scenario.value);
  askAbout(Object.keys(value).length ? value : null);
  const text = await written(about.scenario.value);
  if (!refreshing && past.at(-1) !== shown) past.push(shown);
  shown = text;
  isStale = true;
  const { view, params } = current();
  const { s, ...others } = Object.fromEntries(params);
  history.replaceState(history.state, "", plainAddress(view, { ...others, ...(text ? { s: text } : {}) }));
  clearTimeout(refreshing);
  refreshing = setTimeout(() => {
    refreshing = null;
    look().then(onLook, () => {});
  }, 400);
}

/** Add steps to the scenario. */
export const addSteps = (steps, view, params) => change({ steps: [...scenario().steps, ...steps] }, view, params);

const plainAddress = (view, params) => `#/${view}${Object.keys(params).length ? `?${new URLSearchParams(params)}` : ""}`;

function withoutScenario(view, params) {
  const { s, ...others } = params;
  location.hash = plainAddress(view, others);
}

/** Leave out what is not set. */
function compact(value) {
  const settings = Object.fromEntries(Object.entries(value.settings ?? {}).filter(([, each]) => each && Object.keys(each).length !== 0));
  const has = Object.keys(settings).some((name) => name !== "profile");
  const all = { ...value, settings: has ? settings : null };
  return Object.fromEntries(Object.entries(all).filter(([, each]) => each && each.length !== 0));
}

async function written(value) {
  const parts = compact(value);
  if (!Object.keys(parts).length) return "";
  const text = JSON.stringify(parts);
  return text.length > LONGEST ? `@${await keep(text)}` : text;
}

/** The scenarios that were looked at in this tab, newest first: [text for the address, title]. */
export function recent() {
  try {
    return JSON.parse(sessionStorage.getItem("scenarios") ?? "[]");
  } catch {
    return [];
  }
}

function remember(text, title) {
  const others = recent().filter(([known]) => known !== text);
  sessionStorage.setItem("scenarios", JSON.stringify([[text, title], ...others].slice(0, MOST_RECENT)));
}

/** The bar that names the scenario, lists its parts, and undoes them. */
export function scenarioBar(complain) {
  const value = scenario();
  const isBase = !current().params.get("s");
  const button = (title, work, props = {}) => el("button", { type: "button", ...props, onclick: (event) => busy(event.target, work()).catch(complain) }, title);
  const parts = [
    ...(value.release ? [[`as ${value.release}`, [], () => change({ release: null })]] : []),
    ...(value.config ? [["another configuration", [], () => change({ config: null })]] : []),
    ...about.scenario.parts.map((words) => [words, [], () => change({ settings: {} })]),
    ...about.scenario.steps.map((step, place) => [step.title, step.words, () => change({ steps: value.steps.filter((_, other) => other !== place) })]),
  ];
  const list = el("ol", { class: "steps" }, parts.map(([title, words, undo]) => el("li", {}, el("b", {}, title), words.length ? ` ${words.join(" ")} ` : " ", button("undo", undo, { class: "link" }))));
  const undo = async () => {
    const { view, params } = current();
    const before = past.length ? past.pop() : "";
    shown = null;
    const { s, ...others } = Object.fromEntries(params);
    location.hash = plainAddress(view, { ...others, ...(before ? { s: before } : {}) });
  };
  return [
    el("span", { class: "scenario-title" }, el("b", {}, "Scenario: "), about.scenario.title),
    isBase ? null : el("details", { class: "scenario-parts" }, el("summary", {}, "parts"), list),
    isBase && !past.length ? null : button("Undo", undo, { id: "undo" }),
    isBase ? null : button("Back to base", () => change({ steps: [], settings: {}, release: null, config: null })),
    isBase ? null : el("a", { class: "button", href: addressTo("compare", { what: "scenarios", run: "1" }) }, "Compare with base"),
    isBase ? null : button("Download", async () => save("scenario.json", `${JSON.stringify({ apiVersion: "podium/v1", kind: "Scenario", ...compact(value) }, null, 2)}\n`)),
  ].filter(Boolean);
}
