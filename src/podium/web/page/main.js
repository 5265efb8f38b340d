// The frame of the page: which view is shown, what went wrong, light or dark.
import { addressTo, current } from "./address.js";
import { overview } from "./api.js";
import { clusterView } from "./cluster.js";
import { compareView } from "./compare.js";
import { decisionView } from "./decision.js";
import { counted, el } from "./dom.js";
import { podsView } from "./pods.js";
import { timeView } from "./time.js";

const VIEWS = {
  pods: ["Pods", podsView],
  cluster: ["Cluster", clusterView],
  time: ["Time", timeView],
  compare: ["Compare", compareView],
  decision: ["Decision", decisionView],
};

const view = document.getElementById("view");
const problem = document.getElementById("problem");
let about = null;
let leaving = new AbortController();

/** Say what went wrong, or nothing any more. */
function complain(error) {
  if (error?.name === "AbortError") return;
  problem.hidden = !error;
  problem.textContent = error ? error.message : "";
}

/** Draw the view that the address names. */
async function draw() {
  leaving.abort();
  leaving = new AbortController();
  const { view: name, params } = current();
  const [title, build] = VIEWS[name] ?? VIEWS.pods;
  document.title = `${title} · Podium`;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === name || (name === "decision" && link.dataset.view === "pods")) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  complain(null);
  try {
    about ??= await overview();
    document.getElementById("about").textContent =
      `${counted(about.nodes, "node")}, ${counted(about.pods, "pod")}, ${about.pending} pending · decides as ${about.release}`;
    view.replaceChildren();
    view.dataset.view = name;
    await build(view, params, { about, complain, signal: leaving.signal });
    view.dataset.ready = name;
  } catch (error) {
    complain(error);
  }
}

function theme(wanted) {
  const dark = wanted ? wanted === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  document.getElementById("theme").textContent = dark ? "Light" : "Dark";
  return dark;
}

document.getElementById("nav").append(
  ...["pods", "cluster", "time", "compare"].map((name) => el("a", { href: addressTo(name), "data-view": name }, VIEWS[name][0])),
);
let dark = theme(localStorage.getItem("theme"));
document.getElementById("theme").addEventListener("click", () => {
  dark = theme(dark ? "light" : "dark");
  localStorage.setItem("theme", dark ? "dark" : "light");
});
addEventListener("hashchange", draw);
addEventListener("unhandledrejection", (event) => complain(event.reason));
draw();
