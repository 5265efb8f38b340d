// One decision: the pod and what it asks for, where it goes or why it fits nowhere, what would help, nodes by plugins,
// and other weights to play with. Every number is the server's.
import { addressTo, note } from "./address.js";
import { ask, busy, reports } from "./api.js";
import { counted, el, labelled, number, select, shade } from "./dom.js";
import { nodePanel } from "./node_panel.js";
import { addSteps, change, scenario } from "./scenario.js";
import { VirtualTable } from "./virtual_table.js";
import { weightsPanel } from "./weights.js";

const FORMS = [["weighted", "weighted"], ["normalised", "normalised"], ["raw", "raw"]];
const MOST_NAMED = 300;

/** The decision about a pod. */
export async function decisionView(view, params, { about, complain, signal }) {
  const pod = params.get("pod") ?? "";
  const state = {
    form: params.get("form") ?? "weighted",
    sort: Number(params.get("sort") ?? -1),
    ascending: params.get("up") === "1",
    filter: params.get("node") ?? "",
  };
  const facts = el("dl", { class: "facts" });
  const words = el("div", { class: "lead", "aria-live": "polite" });
  const funnel = el("ol", { class: "funnel", "aria-label": "Nodes left after each filter" });
  const help = el("section", { "aria-live": "polite" });
  const rejected = el("section", {});
  const aside = el("aside", { class: "panel", hidden: true, "aria-label": "Node" });
  const table = new VirtualTable({ label: `Scores of ${pod}`, columns: [], row: (place) => row(place), open: (place) => openNode(data.nodes[order[place]]), height: "tall" });
  let data = null;
  let order = [];
  let high = 1;
  let isLoading = false;
  let isStale = false;

  /** Ask for the decision; while one question is under way, the newest scenario is asked about next. */
  async function load() {
    isStale = true;
    if (isLoading) return;
    isLoading = true;
    try {
      while (isStale && !signal.aborted) {
        isStale = false;
        const start = performance.now();
        data = await ask("decision", { pod }, signal);
        show();
        view.dataset.step = String(Math.round(performance.now() - start));
      }
    } finally {
      isLoading = false;
    }
  }

  function show() {
    facts.replaceChildren(...data.facts.flatMap((fact) => [el("dt", {}, fact.name), el("dd", {}, fact.text)]));
    words.replaceChildren(...data.words.map((text, place) => el("p", { class: place ? "" : data.node ? "good" : "bad" }, text)));
    funnel.hidden = data.node !== null || !data.funnel.length;
    funnel.replaceChildren(el("li", {}, counted(data.counts.total, "node")), ...data.funnel.map((stage) => el("li", { title: `${stage.plugin} rejects ${stage.rejected}` }, el("b", {}, number(stage.left)), ` after ${stage.title}`)));
    high = Math.max(1, ...data.plugins.map((plugin) => Math.max(1, ...values(plugin))));
    sortRows();
    table.empty = state.filter && data.nodes.length ? "No node with this in its name fits the pod." : "No node fits the pod.";
    // Nothing is scored where no node fits.
    table.root.hidden = !data.nodes.length;
    for (const control of view.querySelectorAll("#scores .field, .weights")) control.hidden = !data.nodes.length;
    table.setColumns(columns(), state.sort < 0 ? 1 : state.sort, state.ascending);
    table.setCount(order.length);
    drawRejected();
  }

  function values(plugin) {
    if (!plugin.normalised || state.form === "weighted") return plugin.weighted;
    return state.form === "raw" ? plugin.raw : plugin.normalised;
  }

  function columns() {
    const sort = (place) => {
      state.ascending = state.sort === place || (state.sort < 0 && place === 1) ? !state.ascending : place === 0;
      state.sort = place;
      note({ sort: place, up: state.ascending });
      show();
    };
    return [
      { title: "Node", least: 11, share: 2, sort },
      { title: "Total", right: true, least: 5, sort },
      ...data.plugins.map((plugin) => {
        const weight = plugin.weight === null ? "" : ` ×${plugin.weight}`;
        return { title: plugin.title + weight, hint: `${plugin.plugin}, weight${weight || " of its own"}`, right: true, sort };
      }),
    ];
  }

  function sortRows() {
    const wanted = state.filter.toLowerCase();
    order = [...data.nodes.keys()].filter((place) => !wanted || data.nodes[place].toLowerCase().includes(wanted));
    const column = state.sort < 0 ? 1 : state.sort;
    const sign = state.ascending ? 1 : -1;
    const list = column === 1 ? data.totals : column > 1 && data.plugins[column - 2] ? values(data.plugins[column - 2]) : column > 1 ? data.totals : null;
    order.sort((a, b) => sign * (list ? list[a] - list[b] : data.nodes[a] < data.nodes[b] ? -1 : 1)
      || data.totals[b] - data.totals[a] || (data.nodes[a] < data.nodes[b] ? -1 : 1));
  }

  function row(place) {
    const at = order[place];
    const node = data.nodes[at];
    const isTied = data.ties.includes(node);
    const sign = node === data.node ? "★ " : isTied ? "= " : "";
    const title = node === data.node ? `${node}: chosen` : sign ? `${node}: tied with the chosen one` : node;
    const best = data.totals.length ? Math.max(data.totals[0], 1) : 1;
    return [
      { text: sign + node, class: node === data.node ? "name chosen" : "name", title },
      { text: number(data.totals[at]), class: shade(data.totals[at] / best) },
      // One scale for all columns, so that 14 points do not look like 300; raw scores have a unit of their own each.
      ...data.plugins.map((plugin) => {
        const value = values(plugin)[at];
        return {
          text: number(value),
          class: state.form === "raw" ? "" : shade(value / high),
          title: plugin.raw ? `raw ${plugin.raw[at]}, normalised ${plugin.normalised[at]}, weight ${plugin.weight}` : plugin.plugin,
        };
      }),
    ];
  }

  function drawRejected() {
    const groups = data.rejected.map((group) => el("details", {},
      el("summary", {}, el("b", {}, `${number(group.nodes.length)} `), `${group.plugin}: ${group.reasons.join(", ")}`, el("span", { class: "dim" }, ` (${group.code})`)),
      el("p", { class: "names" }, group.nodes.slice(0, MOST_NAMED).map((node) => [el("button", { type: "button", class: "link", onclick: () => openNode(node) }, node), group.details[node] ? ` ${group.details[node]} ` : " "]),
        group.nodes.length > MOST_NAMED ? `and ${number(group.nodes.length - MOST_NAMED)} more` : "")));
    const unseen = data.counts.notLookedAt ? el("p", {}, `Not checked: ${counted(data.counts.notLookedAt, "node")}. ${data.notLookedAtBecause.join(", ")}`) : null;
    rejected.replaceChildren(...(groups.length || unseen ? [el("h2", {}, `Rejected: ${counted(data.counts.rejected, "node")}`), ...groups, unseen].filter(Boolean) : []));
  }

  const openNode = (node) => nodePanel(aside, { node, pod, chosen: data.node }, signal).catch(complain);

  /** What would let the pod run: the closest nodes, and changes that were tried, smallest first. */
  async function drawHelp() {
    if (data.node !== null || data.error) return;
    help.replaceChildren(el("p", { class: "dim" }, "Looking for what would help."));
    const found = await ask("fixes", { pod }, signal);
    const tryIt = (fix) => (event) => busy(event.target, fix.steps.length ? addSteps(fix.steps) : change({ settings: { ...scenario().settings, ...fix.settings } })).catch(complain);
    help.replaceChildren(
      el("h2", {}, "What would help"),
      found.suggestions.length
        ? el("ol", { class: "fixes" }, found.suggestions.map((fix) => el("li", {}, `${fix.text}: it would go to ${fix.goesTo}. `,
            fix.canTry ? el("button", { type: "button", onclick: tryIt(fix) }, "Try it") : null)))
        : el("p", {}, "No change of a few things was found that lets it run."),
      el("h3", {}, "Closest nodes"),
      el("ul", {}, found.closest.map((each) => el("li", {}, el("button", { type: "button", class: "link", onclick: () => openNode(each.node) }, each.node), `: ${each.words}`))),
    );
  }

  const filter = el("input", { type: "search", value: state.filter, placeholder: "node", "aria-label": "Only nodes whose name has", oninput: () => { state.filter = filter.value; note({ node: state.filter }); show(); } });
  const beside = el("div", { class: "beside" });
  view.append(
    el("p", {}, el("a", { href: addressTo("pods") }, "← Pods")),
    el("h1", {}, `Where ${pod} goes`),
    facts,
    words,
    funnel,
    help,
    el("div", { class: "bar", id: "scores" },
      labelled("Scores", select(FORMS, state.form, (form) => { state.form = form; note({ form }); show(); })),
      labelled("Nodes", filter),
      el("span", { class: "grow" }),
      reports("decision", "explain", () => ({ pod, tieBreak: "first", preempt: about.canTurn }), complain)),
    beside,
    aside,
    rejected,
  );
  beside.append(table.root);
  await load();
  const profile = about.profiles.find((each) => each.name === data.profile);
  if (about.canTurn && profile) {
    beside.append(weightsPanel({ profile, isFirst: profile === about.profiles[0], turned: () => load().catch(complain), complain, signal }));
  }
  show();
  drawHelp().catch(complain);
  if (params.get("open")) await openNode(params.get("open"));
}
