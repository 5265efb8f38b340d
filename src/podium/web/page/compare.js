// Two releases or two configurations side by side: what moves, and which plugin is responsible.
import { note, readSettings } from "./address.js";
import { ask, reports } from "./api.js";
import { table } from "./cluster.js";
import { amount, counted, el, labelled, number, select } from "./dom.js";
import { sent } from "./weights.js";
import { VirtualTable } from "./virtual_table.js";

/** Place the same pods in two ways. */
export async function compareView(view, params, { about, complain, signal }) {
  const releases = about.releases.map((name) => [name, name]);
  const first = select(releases, params.get("a") ?? about.release, () => {});
  const second = select(releases, params.get("b") ?? about.releases[0], () => {});
  const configs = [params.get("c1") ?? "", params.get("c2") ?? ""].map((text, place) =>
    el("textarea", { rows: 8, class: "code", spellcheck: "false", "aria-label": `Configuration ${place + 1}`, placeholder: place ? "a KubeSchedulerConfiguration" : "empty for the one of the cluster" }, text));
  const replay = el("input", { type: "checkbox", checked: params.get("replay") === "1" });
  const settings = readSettings(params);
  const hasSettings = Object.keys(settings.weights).length || settings.strategy || settings.disabled.length;
  let what = params.get("what") ?? (hasSettings ? "settings" : "releases");
  const fields = el("div", {});
  const shown = el("div", { "aria-live": "polite" });

  const drawFields = () => fields.replaceChildren(...(what === "releases"
    ? [el("div", { class: "bar" }, labelled("First", first), labelled("Second", second))]
    : what === "configs" ? [el("div", { class: "split" }, ...configs.map((each, place) => labelled(`Configuration ${place + 1}`, each)))]
      : [el("p", {}, "Today's weights, and those chosen with the sliders: ", el("code", {}, JSON.stringify(sent(settings))))]));

  function question() {
    const asked = { replay: replay.checked };
    if (what === "releases") return { ...asked, releases: [first.value, second.value] };
    if (what === "settings") return { ...asked, settings: sent(settings) };
    return { ...asked, configs: configs.map((each) => each.value).filter((text) => text.trim()) };
  }

  async function run() {
    complain(null);
    note({ what, a: first.value, b: second.value, replay: replay.checked, c1: what === "configs" ? configs[0].value : "", c2: what === "configs" ? configs[1].value : "", run: true });
    const asked = question();
    show(await ask("compare", asked, signal), asked);
  }

  function show(found, asked) {
    const names = [found.before.name, found.after.name];
    const measures = Object.keys(found.before.measures);
    const moves = new VirtualTable({
      label: "Pods that move",
      empty: "Every pod goes where it did.",
      columns: [{ title: "Pod", least: 10, share: 1.5 }, { title: names[0], least: 8 }, { title: names[1], least: 8 }, { title: "Plugin", least: 8 }, { title: "Why", least: 10, share: 1.6 }],
      row: (place) => {
        const move = found.moves[place];
        return [{ text: move.pod, class: "name" }, move.before ?? "nowhere", move.after ?? "nowhere", move.plugin ?? "", move.reason ?? ""];
      },
      open: (place) => { location.hash = `#/decision?pod=${encodeURIComponent(found.moves[place].pod)}`; },
    });
    shown.replaceChildren(
      el("div", { class: "bar" }, el("p", { class: "lead grow" }, `${counted(found.moves.length, "pod")} ${found.moves.length === 1 ? "goes" : "go"} elsewhere with ${names[1]} than with ${names[0]}.`), reports("comparison", "compare", () => asked, complain)),
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
      labelled("Compare", select([["releases", "two releases"], ["configs", "two configurations"], ...(hasSettings ? [["settings", "other weights"]] : [])], what, (name) => { what = name; drawFields(); })),
      labelled("Also place the running pods again", replay),
      el("button", { type: "button", class: "main", onclick: () => run().catch(complain) }, "Compare")),
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
