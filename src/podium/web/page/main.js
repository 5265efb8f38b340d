// The frame of the page: which view is shown and in which scenario, what went wrong, light or dark.
import { addressTo, current } from "./address.js";
import { whenRestarted } from "./api.js";
import { clusterView } from "./cluster.js";
import { compareView } from "./compare.js";
import { decisionView } from "./decision.js";
import { counted, el } from "./dom.js";
import { homeView } from "./home.js";
import { podsView } from "./pods.js";
import { change, look, scenarioBar, whenLooked } from "./scenario.js";
import { timeView } from "./time.js";

const VIEWS = {
  home: ["Home", homeView],
  pods: ["Pods", podsView],
  cluster: ["Cluster", clusterView],
  time: ["Time", timeView],
  compare: ["Compare", compareView],
  decision: ["Decision", decisionView],
};

const view = document.getElementById("view");
const problem = document.getElementById("problem");
const bar = document.getElementById("scenario");
let leaving = new AbortController();
let isFirst = true;

/** Say what went wrong and offer to try again, or nothing any more. */
function complain(error) {
  if (error?.name === "AbortError") return;
  problem.hidden = !error;
  problem.replaceChildren(...(error ? [el("span", {}, error.message, " "), el("button", { type: "button", onclick: () => draw(true) }, "Try again")] : []));
}

/** Draw the view that the address names, in the scenario that it names. */
async function draw(isNew = false) {
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  const { view: name, params } = current();
  const [title, build] = VIEWS[name] ?? VIEWS.home;
  document.title = `${title} · Podium`;
  complain(null);
  delete view.dataset.ready;
  const slow = setTimeout(() => { view.dataset.busy = "1"; }, 300);
  try {
    const about = await look(isNew);
    if (signal.aborted) return;
    if (isFirst && about.start && !params.get("s")) {
      isFirst = false;
      const { apiVersion, kind, ...start } = about.start;
      await change(start);
      return;
    }
    isFirst = false;
    drawFrame(about, name);
    view.replaceChildren();
    view.dataset.view = name;
    await build(view, params, { about, complain, signal });
    if (!signal.aborted) view.dataset.ready = name;
  } catch (error) {
    complain(error);
  } finally {
    clearTimeout(slow);
    if (!signal.aborted) delete view.dataset.busy;
  }
}

function drawFrame(about, name) {
  document.getElementById("nav").replaceChildren(
    ...["home", "pods", "cluster", "time", "compare"].map((each) => el("a", { href: addressTo(each), "data-view": each,
      "aria-current": each === name || (name === "decision" && each === "pods") ? "page" : null }, VIEWS[each][0])));
  document.getElementById("about").textContent =
    `${counted(about.nodes, "node")}, ${counted(about.pods, "pod")}, ${about.pending} pending · decides as ${about.release}`;
  bar.replaceChildren(...scenarioBar(complain));
}

function theme(wanted) {
  const dark = wanted ? wanted === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  document.getElementById("theme").textContent = dark ? "Light" : "Dark";
  return dark;
}

let dark = theme(localStorage.getItem("theme"));
document.getElementById("theme").addEventListener("click", () => {
  dark = theme(dark ? "light" : "dark");
  localStorage.setItem("theme", dark ? "dark" : "light");
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  view.focus();
});
addEventListener("hashchange", () => draw());
addEventListener("unhandledrejection", (event) => complain(event.reason));
whenRestarted(() => draw(true));
whenLooked((about) => drawFrame(about, current().view));
draw();
