// Two scenarios, releases or configurations side by side: what moves, and which plugin is responsible.
import { addressTo, note } from "./address.js";
import { ask, busy, reports } from "./api.js";
import { amount, counted, el, labelled, number, select, table } from "./dom.js";
import { recent, scenario } from "./scenario.js";
import { VirtualTable } from "./virtual_table.js";

/** Place the same pods in two ways. */
export async function compareView(view, params, { about, complain, signal }) {
  const releases = about.releases.map((name) => [name, name]);
  const place = about.releases.indexOf(about.release);
  const before = about.releases[place > 0 ? place - 1 : Math.min(place + 1, about.releases.length - 1)];
  const first = select(releases, params.get("a") ?? before, () => {});
  const second = select(releases, params.get("b") ?? about.release, () => {});
  const here = params.get("s") ?? "";
  const known = [["", "base"], ...recent()];
  const sides = [params.get("s1") ?? "", params.get("s2") ?? here].map((text) => select(known.some(([value]) => value === text) ? known : [...known, [text, "the scenario of the address"]], text, () => {}));
  const configs = [params.get("c1") ?? "", params.get("c2") ?? ""].map((text, which) =>
    el("textarea", { rows: 8, class: "code", spellcheck: "false", "aria-label": `Configuration ${which + 1}`, placeholder: which ? "a KubeSchedulerConfiguration" : "empty for the one of the cluster" }, text));
  const replay = el("input", { type: "checkbox", checked: params.get("replay") === "1" });
  let what = params.get("what") ?? (here ? "scenarios" : "releases");
  const fields = el("div", {});
  const shown = el("div", { "aria-live": "polite" });

  const drawFields = () => fields.replaceChildren(...(what === "releases"
    ? [el("div", { class: "bar" }, labelled("First", first), labelled("Second", second))]
    : what === "configs" ? [el("div", { class: "split" }, ...configs.map((each, which) => labelled(`Configuration ${which + 1}`, each)))]
      : [el("div", { class: "bar" }, labelled("First", sides[0]), labelled("Second", sides[1]))]));

  const sent = (text) => (text.startsWith("@") ? text.slice(1) : text || "{}");

  function question() {
    const asked = { replay: replay.checked };
    if (what === "releases") return { ...asked, releases: [first.value, second.value] };
    if (what === "scenarios") return { ...asked, scenarios: sides.map((each) => sent(each.value)) };
    return { ...asked, configs: configs.map((each) => each.value).filter((text) => text.trim()) };
  }

  async function run() {
    complain(null);
    delete shown.dataset.ready;
    const isConfigs = what === "configs";
    note({ what, a: what === "releases" ? first.value : "", b: what === "releases" ? second.value : "", s1: what === "scenarios" ? sides[0].value : "", s2: what === "scenarios" && sides[1].value !== here ? sides[1].value : "", replay: replay.checked, c1: isConfigs ? configs[0].value : "", c2: isConfigs ? configs[1].value : "", run: true });
    const asked = question();
    const isWeights = what === "scenarios" && sides[1].value === here && !sides[0].value && !scenario().steps.length && about.scenario.parts.length > 0;
    const [found, moved] = await Promise.all([ask("compare", asked, signal), isWeights ? allMoved() : null]);
    show(found, asked, moved);
  }

  /** How many pods the weights move, once all of the sample were looked at. */
  async function allMoved() {
    for (;;) {
      const found = await ask("moved", {}, signal);
      if (found.lookedAt >= found.sample) return found;
    }
  }

  function show(found, asked, moved) {
    const names = [found.before.name, found.after.name];
    const measures = Object.keys(found.before.measures);
    const moves = new VirtualTable({
      label: "Pods that move",
      empty: "Every pod goes where it did.",
      columns: [{ title: "Pod", least: 10, share: 1.5 }, { title: names[0], least: 8 }, { title: names[1], least: 8 }, { title: "Plugin", least: 8 }, { title: "Why", least: 10, share: 1.6 }],
      row: (place) => {
        const move = found.moves[place];
        return [{ text: move.pod, class: "name", href: addressTo("decision", { pod: move.pod }) }, move.before ?? "nowhere", move.after ?? "nowhere", move.plugin ?? "", move.reason ?? ""];
      },
      open: (at) => { location.hash = addressTo("decision", { pod: found.moves[at].pod }); },
    });
    shown.replaceChildren(
      el("div", { class: "bar" }, el("div", { class: "lead grow" },
        moved ? el("p", { class: "each" }, `${counted(moved.moved, "pod")} would go elsewhere than without these weights, each decided on its own.`) : null,
        el("p", {}, `Of ${asked.replay ? "all pods, placed again" : "the pending pods, placed"} one after the other, ${number(found.moves.length)} ${found.moves.length === 1 ? "goes" : "go"} elsewhere with ${names[1]} than with ${names[0]}.`)), reports("comparison", "compare", () => asked, complain)),
      moves.root,
      table("Measures", ["", ...[...names, "Change"].map((name) => ({ text: name, class: "number" }))], measures.map((name) => measured(name, found.before.measures[name], found.after.measures[name]))) ?? "",
      table("Pending", ["Pod", ...names], [...new Set([...Object.keys(found.before.pending), ...Object.keys(found.after.pending)])].slice(0, 200).map((pod) => [pod, found.before.pending[pod] ?? "placed", found.after.pending[pod] ?? "placed"])) ?? "",
    );
    moves.setCount(found.moves.length);
    shown.dataset.ready = "1";
  }

  view.append(
    el("h1", {}, "Compare"),
    el("div", { class: "bar" },
      labelled("Compare", select([["scenarios", "two scenarios"], ["releases", "two releases"], ["configs", "two configurations"]], what, (name) => { what = name; drawFields(); })),
      labelled("Also place the running pods again", replay),
      el("button", { type: "button", class: "main", onclick: (event) => busy(event.target, run()).catch(complain) }, "Compare")),
    fields, shown,
  );
  drawFields();
  if (params.get("run")) await run();
}

/** A row of the measures: its name in words, both values and the difference. */
function measured(name, before, after) {
  const words = name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  const change = typeof before === "number" && typeof after === "number" ? after - before : 0;
  const resource = /^(?:stranded|largest)(Cpu|Memory)$/.exec(name)?.[1].toLowerCase();
  const said = (value) => (resource ? amount(resource, value) : text(value));
  const cells = [said(before), said(after), Math.abs(change) < 0.0005 ? "" : `${change > 0 ? "+" : "−"}${said(Math.abs(change))}`];
  return [words, ...cells.map((cell) => ({ text: cell, class: "number" }))];
}

const text = (value) => (typeof value === "number" ? number(Math.round(value * 1000) / 1000) : JSON.stringify(value));
