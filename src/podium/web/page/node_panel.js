// A node: what it has, what runs on it and, for a pod, how each score came about.
import { addressTo, note } from "./address.js";
import { addressOf, ask } from "./api.js";
import { amount, counted, el, number } from "./dom.js";

const MOST_PODS = 200;

/** Fill the panel with a node and show it; the node stands in the address until the panel is closed. */
export async function nodePanel(panel, { node, pod, chosen }, signal) {
  const from = document.activeElement;
  const found = await ask("node", { node, ...(pod ? { pod } : {}) }, signal);
  const close = el("button", { type: "button", class: "close", "aria-label": "Close", onclick: leave }, "×");
  function leave() {
    panel.hidden = true;
    note({ open: "" });
    if (from?.isConnected) from.focus();
  }
  panel.onkeydown = (event) => { if (event.key === "Escape") leave(); };
  const rejected = found.rejected ? el("p", { class: "bad" }, `Rejected by ${found.rejected.plugin}: ${found.rejected.reasons.join(", ")}`) : null;
  const whyNot = pod && node !== chosen ? el("p", {}, el("a", { href: addressOf("why-not", { pod, node }, "html"), target: "_blank", rel: "noopener" }, `Why not ${node}?`), " finds the smallest changes that would send the pod there.") : null;
  panel.replaceChildren(...[
    el("div", { class: "bar" }, el("h2", {}, found.node), el("span", { class: "grow" }), close),
    rejected, whyNot,
    ...(found.formulas.length ? [el("h3", {}, "How its scores came about"), ...found.formulas.map(formula)] : []),
    el("h3", {}, "Resources"),
    el("table", {}, el("thead", {}, el("tr", {}, ["Resource", "Requested", "Allocatable", "Share"].map((title) => el("th", { scope: "col" }, title)))),
      el("tbody", {}, found.resources.map((each) => el("tr", {}, el("td", {}, each.resource), el("td", { class: "right" }, amount(each.resource, each.requested)), el("td", { class: "right" }, amount(each.resource, each.allocatable)),
        el("td", {}, each.allocatable ? [el("meter", { min: 0, max: 1, value: each.requested / each.allocatable, "aria-label": `${each.resource} in use` }), ` ${Math.round((100 * each.requested) / each.allocatable)} %`] : ""))))),
    el("h3", {}, "Taints and labels"),
    el("p", {}, found.unschedulable ? "Cordoned. " : "", found.taints.length ? "" : "No taints.", found.taints.map((taint) => el("code", {}, `${taint.key}${taint.value ? `=${taint.value}` : ""}:${taint.effect} `))),
    el("p", {}, Object.entries(found.labels).map(([key, value]) => el("code", {}, `${key}=${value} `))),
    el("h3", {}, counted(found.pods.length, "pod")),
    el("ul", { class: "columns" }, found.pods.slice(0, MOST_PODS).map((each) => el("li", {}, el("a", { href: addressTo("decision", { pod: each.pod }) }, each.pod), ` priority ${number(each.priority)}`)),
      found.pods.length > MOST_PODS ? el("li", {}, `and ${number(found.pods.length - MOST_PODS)} more`) : null),
    ...(found.pendingPodsThatGoHere.length ? [el("h3", {}, `${counted(found.pendingPodsThatGoHere.length, "pending pod")} would come here`),
      el("ul", { class: "columns" }, found.pendingPodsThatGoHere.slice(0, MOST_PODS).map((each) => el("li", {}, el("a", { href: addressTo("decision", { pod: each }) }, each))))] : []),
  ].filter(Boolean));
  panel.hidden = false;
  panel.dataset.node = found.node;
  note({ open: found.node });
  close.focus();
}

function formula(each) {
  return el("details", { open: true }, el("summary", {}, el("b", {}, each.plugin), ` ${number(each.weighted)} points`), el("ol", { class: "formula" }, each.lines.map((line) => el("li", {}, line))));
}
