// What is wrong in this cluster: each line is a link to the place that explains it.
import { addressTo } from "./address.js";
import { ask, reports } from "./api.js";
import { counted, el, number } from "./dom.js";

const MOST_SHOWN = 8;

/** Pods that fit nowhere by cause, workloads, full nodes, budgets that block a drain, and drift. */
export async function homeView(view, params, { complain, signal }) {
  const heading = el("h1", {}, "What is wrong in this cluster");
  const waiting = el("p", { class: "dim" }, "Looking at every pod and node.");
  view.append(heading, waiting);
  const found = await ask("troubles", {}, signal);
  const { counts } = found;
  const items = [
    ...found.pending.map(cause),
    section(counts.workloads, (count) => `${counted(count, "workload")} with pods that fit nowhere`, found.workloads, (each) => [
      el("a", { href: addressTo("pods", { q: `${each.namespace} ${each.workload} pending` }) }, `${each.namespace}/${each.workload}`), `: ${each.words}`]),
    section(counts.fullNodes, (count) => `${counted(count, "node")} over 90 %`, found.fullNodes, (each) => [
      el("a", { href: addressTo("cluster", { open: each.node, resource: each.resource }) }, each.node), `: ${each.words} of ${each.resource}`]),
    section(counts.budgets, (count) => `${counted(count, "budget")} that block a drain`, found.budgets, (each) => [
      el("a", { href: addressTo("pods", { q: each.budget.replace("/", " ") }) }, each.budget), `: ${each.words}`]),
    drift(counts),
  ].filter(Boolean);
  waiting.replaceWith(
    el("p", { class: counts.pending ? "lead bad" : "lead good" }, counts.pending
      ? `${counted(counts.pending, "pending pod")} ${counts.pending === 1 ? "fits" : "fit"} nowhere${counts.placeable ? `; ${number(counts.placeable)} more would get a node now` : ""}.`
      : counts.placeable ? `Every pending pod would get a node: ${number(counts.placeable)}.` : "No pod is pending."),
    items.length ? el("ul", { class: "troubles" }, items) : el("p", {}, "Nothing else is wrong."),
    reports("troubles", "troubles", () => ({}), complain).lastChild,
  );
}

function cause(each) {
  const [closest] = each.closest;
  return el("li", {},
    el("h2", {}, counted(each.count, "pod"), ": ", each.pods.slice(0, 3).map((pod, place) => [place ? ", " : "", el("a", { href: addressTo("decision", { pod }) }, pod)]), each.count > 3 ? ` and ${number(each.count - 3)} more` : ""),
    el("p", {}, each.reason),
    closest ? el("p", {}, "Closest: ", el("a", { href: addressTo("decision", { pod: each.pods[0], open: closest.node }) }, closest.node), `, ${closest.words}`) : null);
}

function section(count, title, list, line) {
  if (!count) return null;
  return el("li", {}, el("h2", {}, title(count)),
    el("ul", {}, list.slice(0, MOST_SHOWN).map((each) => el("li", {}, line(each)))),
    list.length > MOST_SHOWN ? el("details", {}, el("summary", {}, `${number(count - MOST_SHOWN)} more`), el("ul", {}, list.slice(MOST_SHOWN).map((each) => el("li", {}, line(each))))) : null);
}

function drift({ unfit, drifted }) {
  if (!unfit && !drifted) return null;
  return el("li", {}, el("h2", {}, "Drift"),
    el("p", {}, `Decided again today, ${number(drifted)} running ${drifted === 1 ? "pod" : "pods"} would go elsewhere, and ${number(unfit)} would no longer fit where they are. `,
      el("a", { href: "api/v1/audit?output=html", target: "_blank", rel: "noopener" }, "The whole audit")));
}
