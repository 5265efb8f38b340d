// The cluster as tiles, and what-ifs: changes to a copy of it, one after the other, each of which can be undone.
import { note } from "./address.js";
import { ask, reports } from "./api.js";
import { counted, el, labelled, number, select } from "./dom.js";
import { nodePanel } from "./node_panel.js";
import { legend, Tiles } from "./tiles.js";

const KINDS = [
  ["cordon", "Cordon nodes"], ["uncordon", "Uncordon nodes"], ["drain", "Drain nodes"], ["fail", "Lose nodes"],
  ["add-nodes", "Add nodes"], ["scale", "Scale a workload"], ["apply", "Paste YAML"],
];

/** The nodes of the cluster by a label. */
export async function clusterView(view, params, { about, complain, signal }) {
  const state = {
    resource: params.get("resource") ?? "cpu",
    group: params.get("by") ?? "topology.kubernetes.io/zone",
    steps: readSteps(params.get("steps")),
  };
  let data = null;
  const nodes = el("input", { class: "names-field", "aria-label": "Nodes" });
  const count = el("input", { type: "number", min: 0, max: 10000, value: 1, "aria-label": "How many" });
  const workload = el("input", { class: "names-field", list: "workloads", "aria-label": "Workload", placeholder: "namespace/Kind/name" });
  const yaml = el("textarea", { rows: 8, "aria-label": "YAML", placeholder: "apiVersion: v1\nkind: Pod\n…" });
  const told = el("ol", { class: "steps" });
  const outcome = el("div", { "aria-live": "polite" });
  const aside = el("aside", { class: "panel", hidden: true, "aria-label": "Node" });
  const tiles = new Tiles({
    pick: (node) => {
      nodes.value = node;
      nodePanel(aside, { node }, signal).catch(complain);
    },
  });
  let kind = "cordon";
  const fields = el("span", { class: "bar fields" });
  const needs = { "add-nodes": [nodes, labelled("How many", count)], scale: [workload, labelled("Pods", count)], apply: [yaml] };
  const hints = { fail: "names, or a label: zone=eu-1a", "add-nodes": "the node they are like" };
  const undos = [["Undo the last", () => state.steps.slice(0, -1)], ["Undo all", () => []]].map(([title, left]) =>
    el("button", { type: "button", onclick: () => load(left()).catch(complain) }, title));

  function drawFields() {
    nodes.placeholder = hints[kind] ?? "names, or choose a tile";
    fields.replaceChildren(...(needs[kind] ?? [nodes]));
  }

  function step() {
    const names = nodes.value.split(/[\s,]+/).filter(Boolean);
    switch (kind) {
      case "fail":
        return names.some((name) => name.includes("=")) ? { do: kind, selector: nodes.value.trim() } : { do: kind, nodes: names };
      case "add-nodes":
        return { do: kind, like: nodes.value.trim(), count: Number(count.value) };
      case "scale":
        return { do: kind, workload: workload.value.trim(), replicas: Number(count.value) };
      case "apply":
        return { do: kind, objects: yaml.value };
      default:
        return { do: kind, nodes: names };
    }
  }

  async function load(steps = state.steps) {
    complain(null);
    const found = await ask("what-if", { steps, group: state.group }, signal);
    state.steps = steps;
    data = found;
    note({ steps: steps.length ? JSON.stringify(steps) : "", by: state.group, resource: state.resource });
    show();
  }

  function show() {
    for (const undo of undos) undo.disabled = !state.steps.length;
    tiles.set(data.tiles, state.resource);
    told.replaceChildren(...data.steps.map((each, place) => el("li", {}, each.words.join(" "), " ",
      el("button", { type: "button", class: "link", onclick: () => load(state.steps.filter((_, other) => other !== place)).catch(complain) }, "undo"))));
    const pending = data.placements.filter((each) => each.node === null);
    const placed = data.placements.filter((each) => each.node !== null);
    outcome.replaceChildren(...(data.steps.length ? [
      el("p", { class: data.fits ? "lead good" : "lead bad" }, `${counted(data.placed, "pod")} ${data.placed === 1 ? "lands" : "land"} on a node, ${number(data.pending)} ${data.pending === 1 ? "stays" : "stay"} pending.`),
      data.tiles.gone.length ? el("p", {}, `Gone: ${data.tiles.gone.slice(0, 20).join(", ")}`) : null,
      table("Stay pending", ["Pod", "Because"], pending.slice(0, 100).map((each) => [link(each.pod), each.message])),
      table("Land on", ["Pod", "Node"], placed.slice(0, 100).map((each) => [link(each.pod), each.node])),
    ].filter(Boolean) : []));
  }

  const resources = ["cpu", "memory", "pods"];
  view.append(
    el("h1", {}, "Cluster"),
    el("datalist", { id: "workloads" }, about.workloads.map((name) => el("option", { value: name }))),
    el("datalist", { id: "labels" }, about.labels.map((name) => el("option", { value: name }))),
    el("div", { class: "bar" },
      labelled("Colour by", select(resources.map((name) => [name, name]), state.resource, (name) => { state.resource = name; note({ resource: name }); show(); }, { id: "resource" })),
      labelled("Group by label", el("input", { class: "names-field", list: "labels", value: state.group, onchange: (event) => { state.group = event.target.value || "topology.kubernetes.io/zone"; load().catch(complain); } })),
      el("span", { class: "grow" }),
      reports("what-if", "what-if", () => ({ steps: state.steps, group: state.group }), complain)),
    legend(),
    tiles.root,
    aside,
    el("section", { class: "what-if" },
      el("h2", {}, "What if"),
      el("form", { class: "bar", onsubmit: (event) => { event.preventDefault(); load([...state.steps, step()]).catch(complain); } },
        labelled("Change", select(KINDS, kind, (name) => { kind = name; drawFields(); }, { id: "change" })), fields, el("button", { class: "main" }, "Do it"), undos),
      el("p", { class: "dim" }, "Changes are made to a copy, one after the other; the cluster itself stays as it is."),
      told, outcome),
  );
  drawFields();
  await load();
  const offered = data.tiles.resources.map((each) => each.resource);
  document.getElementById("resource").replaceChildren(...offered.map((name) => el("option", { value: name, selected: name === state.resource }, name)));
  if (params.get("open")) await nodePanel(aside, { node: params.get("open") }, signal);
}

const link = (pod) => el("a", { href: `#/decision?pod=${encodeURIComponent(pod)}` }, pod);

/** A table under a heading, of text, nodes and {text, class}; nothing without rows. */
export function table(title, heads, rows) {
  if (!rows.length) return null;
  return el("div", { class: "wide" }, el("h3", {}, title), el("table", {},
    el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col", class: parts(head).class }, parts(head).text)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell) => el("td", { class: parts(cell).class }, parts(cell).text)))))));
}

const parts = (cell) => (typeof cell === "object" && cell !== null && !(cell instanceof Node) ? cell : { text: cell ?? "" });

function readSteps(text) {
  try {
    const steps = JSON.parse(text ?? "[]");
    return Array.isArray(steps) ? steps : [];
  } catch {
    return [];
  }
}
