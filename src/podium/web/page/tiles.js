// Nodes as tiles, by group, coloured and numbered by how much of a resource is in use.
import { amount, counted, el, number, shade } from "./dom.js";

const MOST_WITH_NAMES = 200;

/** Tiles of nodes; `pick(node, isMore)` is called for the one that is chosen, with Shift or Ctrl to choose more. */
export class Tiles {
  constructor({ pick }) {
    this.pick = pick;
    this.root = el("div", { class: "tiles", onclick: (event) => this.chosen(event), onkeydown: (event) => this.key(event) });
    this.buttons = new Map();
  }

  /** Show nodes: `data` as the server gives them, which resource, and only some of the nodes if `only` is a list. */
  set(data, resource, only = null) {
    const shown = only && new Set(only);
    this.data = data;
    this.buttons.clear();
    const cordoned = new Set(data.unschedulable);
    const fresh = new Set(data.new);
    const groups = new Map();
    data.nodes.forEach((node, place) => {
      if (shown && !shown.has(node)) return;
      const group = data.groups[place];
      if (!groups.has(group)) groups.set(group, []);
      groups.get(group).push(place);
    });
    const parts = [...groups.keys()].sort().map((group) => {
      const places = groups.get(group);
      const tiles = places.map((place) => {
        const tile = el("button", { type: "button", class: "tile", tabindex: -1, "data-node": data.nodes[place], "data-cordoned": cordoned.has(place), "data-new": fresh.has(place) });
        this.buttons.set(data.nodes[place], tile);
        return tile;
      });
      return el("section", { class: "group" }, el("h3", { "data-group": group }, group || "(no such label)"), el("div", { class: "tile-row" }, tiles));
    });
    this.root.classList.toggle("named", data.nodes.length <= MOST_WITH_NAMES);
    this.root.replaceChildren(...parts);
    this.root.querySelector(".tile")?.setAttribute("tabindex", 0);
    this.colour(resource);
    for (const [group, places] of groups) this.#head(group, places, resource);
  }

  #head(group, places, resource) {
    const column = this.#column(resource);
    const sum = (list) => places.reduce((total, place) => total + list[place], 0);
    const share = column && sum(column.allocatable) ? `, ${Math.round((100 * sum(column.requested)) / sum(column.allocatable))} % of ${resource}` : "";
    const head = [...this.root.querySelectorAll("h3")].find((each) => each.dataset.group === group);
    if (head) head.textContent = `${group || "(no such label)"}: ${counted(places.length, "node")}${share}`;
  }

  #column(resource) {
    return this.data.resources.find((each) => each.resource === resource);
  }

  /** Colour by a resource. */
  colour(resource) {
    const column = this.#column(resource);
    this.data.nodes.forEach((node, place) => {
      const of = column ? column.allocatable[place] : 0;
      const share = of ? column.requested[place] / of : 0;
      const detail = of ? `${resource} ${amount(resource, column.requested[place])} of ${amount(resource, of)}` : `no ${resource}`;
      this.paint(node, share, of ? String(Math.round(100 * share)) : "·", `${detail}, ${counted(this.data.pods[place], "pod")}`);
    });
  }

  /** Colour one tile: how full from 0 to 1, a short text in it, and what it says when pointed at. */
  paint(node, share, text, detail) {
    const tile = this.buttons.get(node);
    if (!tile) return;
    const cordoned = tile.hasAttribute("data-cordoned");
    tile.className = `tile ${shade(share)}`;
    const said = `${cordoned ? "⊘" : ""}${share > 1 ? "▲" : ""}${text}`;
    tile.replaceChildren(...(this.data.nodes.length <= MOST_WITH_NAMES ? [el("span", { class: "tile-name" }, node), el("span", {}, said)] : [said]));
    const about = `${node}: ${detail}${cordoned ? ", cordoned" : ""}${tile.hasAttribute("data-new") ? ", new" : ""}`;
    tile.title = about;
    tile.setAttribute("aria-label", about);
  }

  chosen(event) {
    const tile = event.target.closest(".tile");
    if (tile?.dataset.node) this.pick(tile.dataset.node, event.shiftKey || event.ctrlKey || event.metaKey);
  }

  /** Mark the nodes that are chosen. */
  choose(nodes) {
    for (const [node, tile] of this.buttons) tile.setAttribute("aria-pressed", String(nodes.has(node)));
  }

  key(event) {
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1 };
    if (!(event.key in steps) || !event.target.classList.contains("tile")) return;
    const all = [...this.root.querySelectorAll(".tile")];
    const at = all.indexOf(event.target);
    let next = at + steps[event.key];
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const left = event.target.offsetLeft;
      const top = event.target.offsetTop;
      while (all[next] && (all[next].offsetTop === top || Math.abs(all[next].offsetLeft - left) > event.target.offsetWidth / 2)) next += steps[event.key];
    }
    if (all[next]) {
      event.target.tabIndex = -1;
      all[next].tabIndex = 0;
      all[next].focus();
    }
    event.preventDefault();
  }
}

/** The scale of the colours, in words. */
export function legend() {
  const tiles = [0, 0.25, 0.5, 0.75, 1].map((share) => el("span", { class: `tile ${shade(share)}` }, number(share * 100)));
  return el("p", { class: "legend" }, "In use, percent: ", tiles, " ⊘ cordoned, ▲ more than all");
}
