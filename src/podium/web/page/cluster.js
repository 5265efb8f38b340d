// The cluster as tiles, and what-ifs: steps that are added to the scenario, and what they did against before.
import { addressTo, note } from "./address.js";
import { ask, busy, reports } from "./api.js";
import { counted, el, labelled, number, select, table } from "./dom.js";
import { nodePanel } from "./node_panel.js";
import { addSteps, scenario } from "./scenario.js";
import { legend, Tiles } from "./tiles.js";

const KINDS = [
  ["drain", "Drain nodes"], ["cordon", "Cordon nodes"], ["uncordon", "Uncordon nodes"], ["fail", "Lose nodes"],
  ["add-nodes", "Add nodes"], ["scale", "Scale a workload"], ["apply", "Paste YAML"], ["place", "Place the pending pods"],
];
const MOST_ROWS = 200;

/** The nodes of the cluster by a label. */
export async function clusterView(view, params, { about, complain, signal }) {
  const state = {
    resource: params.get("resource") ?? "cpu",
    group: params.get("by") ?? "topology.kubernetes.io/zone",
    changed: params.get("changed") === "1",
  };
  const chosen = new Set((params.get("nodes") ?? "").split(",").filter(Boolean));
  let data = null;
  const nodes = el("input", { class: "names-field", required: true, value: [...chosen].join(" "), "aria-label": "Nodes", oninput: () => pick(nodes.value.split(/[\s,]+/).filter(Boolean)) });
  const like = el("input", { class: "names-field", required: true, "aria-label": "Like node", placeholder: "the node they are like" });
  const count = el("input", { type: "number", required: true, min: 1, max: 10000, value: 1, "aria-label": "How many" });
  const replicas = el("input", { type: "number", required: true, min: 0, max: 100000, value: 1, "aria-label": "Pods" });
  const workload = el("input", { class: "names-field", required: true, list: "workloads", "aria-label": "Workload", placeholder: "namespace/Kind/name" });
  const yaml = el("textarea", { rows: 8, required: true, "aria-label": "YAML", placeholder: "apiVersion: v1\nkind: Pod\n…" });
  const outcome = el("div", { "aria-live": "polite" });
  const aside = el("aside", { class: "panel", hidden: true, "aria-label": "Node" });
  const tiles = new Tiles({
    pick: (node, isMore) => {
      pick(isMore ? (chosen.has(node) ? [...chosen].filter((each) => each !== node) : [...chosen, node]) : [node]);
      nodes.value = [...chosen].join(" ");
      like.value = node;
      if (!isMore) nodePanel(aside, { node }, signal).catch(complain);
    },
  });
  let kind = "drain";
  const fields = el("span", { class: "bar fields" });
  const needs = {
    "add-nodes": () => [labelled("How many", count), labelled("Like", like)],
    scale: () => [workload, labelled("Pods", replicas)],
    apply: () => [yaml],
    place: () => [],
  };

  function pick(names) {
    chosen.clear();
    for (const name of names) chosen.add(name);
    tiles.choose(chosen);
    note({ nodes: [...chosen].join(",") });
  }

  function drawFields() {
    nodes.placeholder = "names, a label such as zone=eu-1a, or choose tiles";
    fields.replaceChildren(...(needs[kind]?.() ?? [nodes]));
  }

  function step() {
    switch (kind) {
      case "add-nodes":
        return { do: kind, like: like.value.trim(), count: Number(count.value) };
      case "scale":
        return { do: kind, workload: workload.value.trim(), replicas: Number(replicas.value) };
      case "apply":
        return { do: kind, objects: yaml.value };
      case "place":
        return { do: kind };
      default:
        return { do: kind, nodes: nodes.value.split(/[\s,]+/).filter(Boolean) };
    }
  }

  /** Ask whether the step can be done before it becomes part of the scenario. */
  async function doIt() {
    complain(null);
    const added = step();
    await ask("what-if", { steps: [added], group: state.group }, signal);
    await addSteps([added], "cluster", { by: state.group, resource: state.resource });
  }

  async function load() {
    data = await ask("what-if", { group: state.group }, signal);
    note({ by: state.group, resource: state.resource });
    show();
  }

  function show() {
    tiles.set(data.tiles, state.resource, state.changed ? [...data.differences.changedNodes, ...data.differences.newNodes] : null);
    tiles.choose(chosen);
    outcome.replaceChildren(...(data.steps.length ? results() : []));
  }

  function results() {
    const { pendingChanges: pending, differences } = data;
    const disruptions = data.steps.map((each) => each.disruption).filter(Boolean);
    const budgets = disruptions.flatMap((each) => each.budgets);
    const stuck = disruptions.flatMap((each) => each.pods).filter((each) => ["pending", "blocked", "lost", "returns"].includes(each.fate));
    const rows = (list) => list.slice(0, MOST_ROWS).map((each) => [link(each.pod), each.node ?? each.message]);
    return [
      el("div", { class: data.harmless ? "lead good" : "lead bad" }, [...data.steps.flatMap((each) => each.words), ...pending.words].map((text) => el("p", {}, text))),
      table("Have no other node", ["Pod", "Fate", "Why"], stuck.slice(0, MOST_ROWS).map((each) => [link(each.pod), each.fate, each.reason])),
      table("Budgets", ["Budget", "Needs", "Healthy", "At worst", "After", ""], budgets.map((each) => [each.budget, number(each.desired), number(each.healthyBefore), number(each.healthyAtWorst), number(each.healthyAfter), { text: each.blocks.length ? `blocks ${counted(each.blocks.length, "pod")}` : each.violated ? "violated" : "holds", class: each.blocks.length || each.violated ? "bad" : "good" }])),
      table("More pods that wait", ["Pod", "Why"], rows([...pending.newWaiting, ...pending.fitsNoLonger])),
      table("Pending pods that get a node now", ["Pod", "Node"], rows([...pending.fitsNow, ...pending.newPlaced])),
      table(`Who is elsewhere than before: ${counted(differences.movedPods, "pod")}`, ["Pod", "Before", "After"], differences.pods.slice(0, MOST_ROWS).map((each) => [each.gone ? each.pod : link(each.pod), each.before ?? (each.new ? "(new)" : "(waited)"), each.after ?? (each.gone ? "(gone)" : "(waits)")])),
      differences.goneNodes.length ? el("p", {}, `Gone: ${differences.goneNodes.slice(0, 20).join(", ")}${differences.goneNodes.length > 20 ? ` and ${number(differences.goneNodes.length - 20)} more` : ""}`) : null,
    ].filter(Boolean);
  }

  view.append(
    el("h1", {}, "Cluster"),
    el("datalist", { id: "workloads" }, about.workloads.map((name) => el("option", { value: name }))),
    el("datalist", { id: "labels" }, about.labels.map((name) => el("option", { value: name }))),
    el("section", { class: "what-if" },
      el("form", { class: "bar", onsubmit: (event) => { event.preventDefault(); busy(event.submitter, doIt()).catch(complain); } },
        labelled("What if", select(KINDS, kind, (name) => { kind = name; drawFields(); }, { id: "change" })), fields, el("button", { class: "main" }, "Do it")),
      el("p", { class: "dim" }, "Steps change a copy, one after the other; the cluster itself stays as it is. Shift-click chooses several tiles."),
      outcome),
    el("div", { class: "bar" },
      labelled("Colour by", select([[state.resource, state.resource]], state.resource, (name) => { state.resource = name; note({ resource: name }); show(); }, { id: "resource" })),
      labelled("Group by label", el("input", { class: "names-field", list: "labels", value: state.group, onchange: (event) => { state.group = event.target.value || "topology.kubernetes.io/zone"; load().catch(complain); } })),
      scenario().steps.length ? labelled("Only what changed", el("input", { type: "checkbox", checked: state.changed, onchange: (event) => { state.changed = event.target.checked; note({ changed: state.changed }); show(); } })) : null,
      el("span", { class: "grow" }),
      reports("what-if", "what-if", () => ({ group: state.group }), complain)),
    legend(),
    tiles.root,
    aside,
  );
  drawFields();
  await load();
  document.getElementById("resource").replaceChildren(...data.tiles.resources.map(({ resource }) => el("option", { value: resource, selected: resource === state.resource }, resource)));
  if (params.get("open")) await nodePanel(aside, { node: params.get("open") }, signal);
}

const link = (pod) => el("a", { href: addressTo("decision", { pod }) }, pod);
