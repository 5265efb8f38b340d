// One decision: nodes by plugins, the winner in words, what rejected the others, and other weights to play with.
import { addressTo, note, readSettings, writeSettings } from "./address.js";
import { ask, reports } from "./api.js";
import { counted, el, labelled, number, select, shade } from "./dom.js";
import { nodePanel } from "./node_panel.js";
import { VirtualTable } from "./virtual_table.js";
import { sent, weightsPanel } from "./weights.js";

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
    settings: readSettings(params),
  };
  const words = el("div", { class: "lead", "aria-live": "polite" });
  const rejected = el("section", {});
  const aside = el("aside", { class: "panel", hidden: true, "aria-label": "Node" });
  const table = new VirtualTable({ label: `Scores of ${pod}`, columns: [], row: (place) => row(place), open: (place) => open(order[place]), height: "tall", empty: "No node that fits the pod." });
  let data = null;
  let totals = [];
  let order = [];
  let spans = [];

  const isTurned = () => Object.keys(state.settings.weights).length > 0 || hasBase(state.settings);
  const question = () => ({ pod, ...(hasBase(state.settings) ? { settings: base(state.settings) } : {}) });

  async function load() {
    data = await ask("decision", question(), signal);
    show();
  }

  /** Work out the totals with the weights chosen: exact, as normalised scores do not depend on weights. */
  function show() {
    const start = performance.now();
    totals = data.totals.slice();
    for (const plugin of data.plugins) {
      const more = (state.settings.weights[plugin.plugin] ?? plugin.weight) - plugin.weight;
      if (plugin.normalised && more) plugin.normalised.forEach((score, place) => { totals[place] += more * score; });
    }
    spans = [span(totals), ...data.plugins.map((plugin) => span(values(plugin)))];
    sortRows();
    table.setColumns(columns(), state.sort < 0 ? 1 : state.sort, state.ascending);
    table.setCount(order.length);
    words.replaceChildren(...sentences().map((text, place) => el("p", { class: place ? "" : data.node ? "good" : "bad" }, text)));
    view.dataset.step = String(Math.round(performance.now() - start));
    drawRejected();
  }

  function values(plugin) {
    if (!plugin.normalised) return plugin.weighted;
    if (state.form === "raw") return plugin.raw;
    if (state.form === "normalised") return plugin.normalised;
    const weight = state.settings.weights[plugin.plugin] ?? plugin.weight;
    return plugin.normalised.map((score) => score * weight);
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
        const weight = plugin.weight === null ? "" : ` ×${state.settings.weights[plugin.plugin] ?? plugin.weight}`;
        return { title: plugin.title + weight, hint: `${plugin.plugin}, weight${weight || " of its own"}`, right: true, sort };
      }),
    ];
  }

  function sortRows() {
    const wanted = state.filter.toLowerCase();
    order = [...data.nodes.keys()].filter((place) => !wanted || data.nodes[place].toLowerCase().includes(wanted));
    const column = state.sort < 0 ? 1 : state.sort;
    const sign = state.ascending ? 1 : -1;
    const list = column === 1 ? totals : column > 1 ? values(data.plugins[column - 2] ?? {}) ?? totals : null;
    order.sort((a, b) => sign * (list ? list[a] - list[b] : data.nodes[a] < data.nodes[b] ? -1 : 1)
      || totals[b] - totals[a] || (data.nodes[a] < data.nodes[b] ? -1 : 1));
    shown = data.plugins.map(values);
  }
  let shown = [];

  function row(place) {
    const at = order[place];
    const node = data.nodes[at];
    const best = best_();
    const sign = node === best.winner ? "★ " : totals[at] === best.total ? "= " : "";
    const title = node === best.winner ? `${node}: chosen` : sign ? `${node}: tied with the chosen one` : node;
    return [
      { text: sign + node, class: node === best.winner ? "name chosen" : "name", title },
      { text: number(totals[at]), class: cell(spans[0], totals[at]) },
      ...data.plugins.map((plugin, column) => ({
        text: number(shown[column][at]),
        class: cell(spans[column + 1], shown[column][at]),
        title: plugin.raw ? `raw ${plugin.raw[at]}, normalised ${plugin.normalised[at]}, weight ${state.settings.weights[plugin.plugin] ?? plugin.weight}` : plugin.plugin,
      })),
    ];
  }

  let known = { totals: null };
  /** The winner with the weights chosen: among those with the highest total, the chosen node or else the smallest name. */
  function best_() {
    if (known.totals === totals) return known;
    let total = -Infinity;
    for (const each of totals) if (each > total) total = each;
    const ties = data.nodes.filter((_, place) => totals[place] === total);
    const winner = ties.includes(data.node) ? data.node : ties.sort()[0] ?? null;
    known = { totals, total, ties, winner };
    return known;
  }

  function sentences() {
    if (!isTurned() || !data.plugins.length) return data.words;
    const { winner, total, ties } = best_();
    const second = data.nodes.map((node, place) => [totals[place], node]).filter(([each]) => each < total).sort((a, b) => b[0] - a[0])[0];
    const found = [`With these weights pod ${data.pod} goes to ${winner} with ${counted(total, "point")}${second ? `, ${number(total - second[0])} more than ${second[1]}` : ""}.`];
    if (ties.length > 1) found.push(`${counted(ties.length, "node")} share the highest total.`);
    return found;
  }

  function drawRejected() {
    const groups = data.rejected.map((group) => el("details", {},
      el("summary", {}, el("b", {}, `${number(group.nodes.length)} `), `${group.plugin}: ${group.reasons.join(", ")}`, el("span", { class: "dim" }, ` (${group.code})`)),
      el("p", { class: "names" }, group.nodes.slice(0, MOST_NAMED).map((node) => [el("button", { type: "button", class: "link", onclick: () => openNode(node) }, node), group.details[node] ? ` ${group.details[node]} ` : " "]),
        group.nodes.length > MOST_NAMED ? `and ${number(group.nodes.length - MOST_NAMED)} more` : "")));
    const unseen = data.counts.notLookedAt ? el("p", {}, `Not checked: ${counted(data.counts.notLookedAt, "node")}. ${data.notLookedAtBecause.join(", ")}`) : null;
    rejected.replaceChildren(...(groups.length || unseen ? [el("h2", {}, `Rejected: ${counted(data.counts.rejected, "node")}`), ...groups, unseen].filter(Boolean) : []));
  }

  const open = (place) => openNode(data.nodes[place]);
  const openNode = (node) => nodePanel(aside, { node, pod, settings: { ...state.settings }, chosen: best_().winner }, signal).catch(complain);

  function turn(settings, needsServer) {
    state.settings = settings;
    note(writeSettings(settings));
    if (needsServer) return load().catch(complain);
    show();
    return null;
  }

  const filter = el("input", { type: "search", value: state.filter, placeholder: "node", "aria-label": "Only nodes whose name has", oninput: () => { state.filter = filter.value; note({ node: state.filter }); show(); } });
  view.append(
    el("p", {}, el("a", { href: addressTo("pods") }, "← Pods")),
    el("h1", {}, `Where ${pod} goes`),
    words,
    el("div", { class: "bar" },
      labelled("Scores", select(FORMS, state.form, (form) => { state.form = form; note({ form }); show(); })),
      labelled("Nodes", filter),
      el("span", { class: "grow" }),
      reports("decision", "explain", () => ({ pod, tieBreak: "first", ...(isTurned() ? { settings: sent(state.settings) } : {}) }), complain)),
    table.root,
    aside,
    rejected,
  );
  const profile = about.profiles.find((each) => each.name === params.get("profile")) ?? about.profiles[0];
  if (about.canTurn && profile) view.append(weightsPanel({ profile, settings: state.settings, turn, complain, signal }));
  await load();
  if (params.get("open")) await openNode(params.get("open"));
}

/** The part of the settings that changes the scores themselves, which the server has to work out. */
const base = (settings) => ({ weights: {}, ...(settings.strategy ? { strategy: settings.strategy } : {}), disabled: settings.disabled });
const hasBase = (settings) => Boolean(settings.strategy || settings.disabled.length);

function span(list) {
  let low = Infinity;
  let high = -Infinity;
  for (const each of list) {
    if (each < low) low = each;
    if (each > high) high = each;
  }
  return { low, high };
}

const cell = ({ low, high }, value) => (high > low ? shade((value - low) / (high - low)) : "");
