// Sliders and switches for plugins, weights and the scoring strategy of one profile. They change the scenario.
import { addressTo } from "./address.js";
import { ask } from "./api.js";
import { counted, el, labelled, number, save, select } from "./dom.js";
import { changeQuietly, scenario } from "./scenario.js";

const STRATEGIES = ["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"];
const HIGHEST = 20;

/** A panel whose sliders call `turned` once the scenario has the new settings; it says how many pods would move. */
export function weightsPanel({ profile, isFirst, turned, complain, signal }) {
  let isAsking = false;
  let isStale = false;
  const own = scenario().settings;
  const isOwn = (own.profile ?? "") === profile.name || (isFirst && !own.profile);
  let settings = isOwn ? { weights: own.weights ?? {}, strategy: own.strategy ?? null, disabled: own.disabled ?? [] } : { weights: {}, strategy: null, disabled: [] };
  const said = el("p", { class: "moved", "aria-live": "polite" });
  const moves = el("ul", { class: "moves" });

  const copy = () => ({ weights: { ...settings.weights }, strategy: settings.strategy, disabled: [...settings.disabled] });

  function change(changed) {
    settings = changed;
    changeQuietly({ settings: { ...settings, profile: isFirst ? null : profile.name } }).then(() => { turned(); follow(); }).catch(complain);
  }

  /** Ask how many pods would move until all of the sample were looked at; one question at a time, the newest settings next. */
  async function follow() {
    isStale = true;
    if (isAsking) return;
    isAsking = true;
    try {
      while (isStale && !signal.aborted) {
        isStale = false;
        const found = await ask("moved", {}, signal);
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
    said.textContent = `${counted(found.moved, "pod")}${sample} would go elsewhere than without these weights, each decided on its own.`;
    said.dataset.answers = String(Number(said.dataset.answers ?? 0) + 1);
    moves.replaceChildren(...found.moves.slice(0, 8).map((move) => el("li", {}, el("a", { href: addressTo("decision", { pod: move.pod }) }, move.pod), ` ${move.before ?? "nowhere"} → ${move.after ?? "nowhere"}`)));
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
        change(next);
      },
    });
    const on = el("input", {
      type: "checkbox", checked: !settings.disabled.includes(plugin), "aria-label": `${plugin} is on`,
      onchange: () => {
        const next = copy();
        next.disabled = on.checked ? next.disabled.filter((name) => name !== plugin) : [...next.disabled, plugin].sort();
        change(next);
      },
    });
    return el("div", { class: "slider" }, on, el("span", { class: "slider-name" }, plugin), range, shown);
  }

  const strategy = profile.strategy
    ? labelled("NodeResourcesFit scores by", select(STRATEGIES.map((name) => [name, name]), settings.strategy ?? profile.strategy, (name) => {
        const next = copy();
        next.strategy = name === profile.strategy ? null : name;
        change(next);
      }))
    : null;
  const sliders = el("div", { class: "sliders" });
  const drawSliders = () => sliders.replaceChildren(...Object.entries(profile.weights).map(([plugin, today]) => slider(plugin, today)));
  drawSliders();
  const download = async () => save("scheduler-config.json", `${JSON.stringify(await ask("configuration", {}, signal), null, 2)}\n`);
  const reset = () => {
    change({ weights: {}, strategy: null, disabled: [] });
    drawSliders();
    strategy?.querySelector("select")?.replaceChildren(...STRATEGIES.map((name) => el("option", { value: name, selected: name === profile.strategy }, name)));
  };
  if (Object.keys(settings.weights).length || settings.strategy || settings.disabled.length) follow();
  return el("section", { class: "weights", "aria-label": "Other weights" },
    el("h2", {}, "Other weights"),
    el("p", { class: "dim" }, `Profile ${profile.name}. A weight of 0 leaves the plugin out of the score; a plugin that is switched off does not filter either.`),
    sliders, strategy, said, moves,
    el("div", { class: "bar" },
      el("button", { type: "button", onclick: () => download().catch(complain) }, "Download the configuration"),
      el("a", { class: "button", href: addressTo("compare", { what: "scenarios", run: "1" }), onclick: (event) => { event.target.href = addressTo("compare", { what: "scenarios", run: "1" }); } }, "Compare the whole cluster"),
      el("button", { type: "button", onclick: reset }, "Back to today's")));
}
