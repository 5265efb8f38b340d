// Sliders and switches for plugins, weights and the scoring strategy.
import { go, writeSettings } from "./address.js";
import { ask } from "./api.js";
import { counted, el, labelled, number, save, select } from "./dom.js";

const STRATEGIES = ["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"];
const HIGHEST = 20;

/** A panel whose sliders call `turn` with the settings, and which says how many pods of the cluster would move. */
export function weightsPanel({ profile, settings, turn, complain, signal }) {
  let isAsking = false;
  let isStale = false;
  const said = el("p", { class: "moved", "aria-live": "polite" });
  const moves = el("ul", { class: "moves" });

  const copy = () => ({ weights: { ...settings.weights }, strategy: settings.strategy, disabled: [...settings.disabled] });

  function change(changed, needsServer) {
    settings = changed;
    turn(settings, needsServer);
    follow();
  }

  /** Ask how many pods would move until all of the sample were looked at; one question at a time, the newest settings next. */
  async function follow() {
    isStale = true;
    if (isAsking) return;
    isAsking = true;
    try {
      while (isStale && !signal.aborted) {
        isStale = false;
        const found = await ask("moved", { settings: sent(settings) }, signal);
        isStale ||= found.lookedAt < found.sample;
        tellMoved(found);
      }
    } catch (error) {
      complain(error);
    } finally {
      isAsking = false;
    }
  }

  function tellMoved(found) {
    const sample = found.lookedAt < found.pods ? ` of ${number(found.lookedAt)} looked at, by chance out of ${number(found.pods)},` : "";
    said.textContent = `${counted(found.moved, "pod")}${sample} would go elsewhere than with today's weights.`;
    said.dataset.answers = String(Number(said.dataset.answers ?? 0) + 1);
    moves.replaceChildren(...found.moves.slice(0, 8).map((move) => el("li", {}, el("a", { href: `#/decision?pod=${encodeURIComponent(move.pod)}` }, move.pod), ` ${move.before ?? "nowhere"} → ${move.after ?? "nowhere"}`)));
  }

  function slider(plugin, today) {
    const value = settings.weights[plugin] ?? today;
    const shown = el("output", {}, String(value));
    const range = el("input", {
      type: "range", min: 0, max: Math.max(HIGHEST, today), step: 1, value, "aria-label": `Weight of ${plugin}`, "data-plugin": plugin,
      oninput: () => {
        const next = copy();
        const weight = Number(range.value);
        shown.textContent = range.value;
        if (weight === today) delete next.weights[plugin];
        else next.weights[plugin] = weight;
        change(next, false);
      },
    });
    const on = el("input", {
      type: "checkbox", checked: !settings.disabled.includes(plugin), "aria-label": `${plugin} is on`,
      onchange: () => {
        const next = copy();
        next.disabled = on.checked ? next.disabled.filter((name) => name !== plugin) : [...next.disabled, plugin].sort();
        change(next, true);
      },
    });
    return el("div", { class: "slider" }, on, el("span", { class: "slider-name" }, plugin), range, shown);
  }

  const strategy = profile.strategy
    ? labelled("NodeResourcesFit scores by", select(STRATEGIES.map((name) => [name, name]), settings.strategy ?? profile.strategy, (name) => {
        const next = copy();
        next.strategy = name === profile.strategy ? null : name;
        change(next, true);
      }))
    : null;
  const sliders = el("div", { class: "sliders" });
  const drawSliders = () => sliders.replaceChildren(...Object.entries(profile.weights).map(([plugin, today]) => slider(plugin, today)));
  drawSliders();
  const download = async () => {
    const config = await ask("configuration", { settings: sent(settings) }, signal);
    save("scheduler-config.json", `${JSON.stringify(config, null, 2)}\n`);
  };
  if (Object.keys(settings.weights).length || settings.strategy || settings.disabled.length) follow();
  return el("section", { class: "weights" },
    el("h2", {}, "Other weights"),
    el("p", { class: "dim" }, `Profile ${profile.name}. A weight of 0 leaves the plugin out of the score; a plugin that is switched off does not filter either.`),
    sliders, strategy, said, moves,
    el("div", { class: "bar" },
      el("button", { type: "button", onclick: () => download().catch(complain) }, "Download the configuration"),
      el("button", { type: "button", onclick: () => go("compare", { ...writeSettings(settings), what: "settings", run: "1" }) }, "Compare the whole cluster"),
      el("button", { type: "button", onclick: () => { change({ weights: {}, strategy: null, disabled: [] }, true); drawSliders(); strategy?.querySelector("select")?.replaceChildren(...STRATEGIES.map((name) => el("option", { value: name, selected: name === profile.strategy }, name))); } }, "Back to today's")));
}

/** The settings as the server takes them. */
export const sent = (settings) => ({ weights: settings.weights, disabled: settings.disabled, ...(settings.strategy ? { strategy: settings.strategy } : {}) });
