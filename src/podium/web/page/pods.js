// The pods of the cluster, those that wait first.
import { addressTo, go, note } from "./address.js";
import { ask, reports } from "./api.js";
import { counted, el, number } from "./dom.js";
import { VirtualTable } from "./virtual_table.js";

const PAGE = 200;
const MOST_SAVED = 10000;

/** A list of pods with a search; a pod opens its decision. */
export async function podsView(view, params, { about, complain, signal }) {
  let search = params.get("q") ?? "";
  let pages = new Map();
  let drawing = 0;
  const said = el("p", { "aria-live": "polite" });
  const field = el("input", {
    type: "search", value: search, placeholder: "name, namespace, node, workload or reason", "aria-label": "Search pods",
    oninput: () => { search = field.value; note({ q: search }); load().catch(complain); },
  });
  const item = (place) => pages.get(Math.floor(place / PAGE))?.[place % PAGE];
  const table = new VirtualTable({
    label: "Pods",
    empty: about.pods ? "No pod has all of these words." : "There are no pods in this cluster.",
    columns: [
      { title: "Namespace", least: 7.5, share: 0.8 },
      { title: "Pod", least: 9, share: 1.4 },
      { title: "Node", least: 7, share: 0.8 },
      { title: "Workload", least: 9.5, share: 0.9 },
      { title: "Priority", least: 8, share: 0.4, right: true },
      { title: "If it waits: where it goes, or why", least: 10, share: 3.4 },
    ],
    row: (place) => {
      const pod = item(place);
      if (!pod) {
        fetchPage(Math.floor(place / PAGE)).catch(complain);
        return null;
      }
      const node = pod.node ?? { text: "pending", class: "bad" };
      return [pod.namespace, { text: pod.name, class: "name", href: addressTo("decision", { pod: `${pod.namespace}/${pod.name}` }) }, node, pod.workload, number(pod.priority), pod.reason];
    },
    open: (place) => { const pod = item(place); if (pod) go("decision", { pod: `${pod.namespace}/${pod.name}` }); },
  });
  view.append(el("h1", {}, "Pods"), el("div", { class: "bar" }, field, said, el("span", { class: "grow" }), reports("pods", "pods", () => ({ search, limit: MOST_SAVED }), complain)), table.root);

  const asked = new Set();
  async function fetchPage(page) {
    if (asked.has(page)) return;
    asked.add(page);
    const round = drawing;
    const found = await ask("pods", { search, offset: page * PAGE, limit: PAGE }, signal);
    if (round === drawing) {
      pages.set(page, found.items);
      table.draw();
    }
  }

  async function load() {
    const round = ++drawing;
    const found = await ask("pods", { search, offset: 0, limit: PAGE }, signal);
    if (round !== drawing) return;
    pages = new Map([[0, found.items]]);
    asked.clear();
    asked.add(0);
    said.textContent = `${counted(found.found, "pod")} of ${number(found.pods)}, ${number(found.pending)} pending`;
    table.setCount(found.found);
    if (!found.complete) {
      // Why pods wait is found out a little at a time.
      setTimeout(() => { if (round === drawing && !signal.aborted) load().catch(complain); }, 150);
    }
  }

  await load();
  const top = history.state?.top ?? 0;
  table.root.scrollTop = top;
  table.root.addEventListener("scroll", () => history.replaceState({ ...history.state, top: table.root.scrollTop }, ""), { signal, passive: true });
}
