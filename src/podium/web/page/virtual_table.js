// A table of any length: only the rows that can be seen are in the document.
import { el } from "./dom.js";

const ROW = 30;
const SPARE = 12;

/**
 * columns: [{title, hint, least, share, right, sort}]: `least` rem wide, and that share of the rest; `sort` is called
 * when a heading is chosen.
 * row(place): a list of cells, each text or {text, class, title, href}, or null for one that is not known yet.
 * open(place): called for a click or Enter.
 * empty: what is said where there are no rows.
 */
export class VirtualTable {
  constructor({ label, columns, row, open, height, empty }) {
    this.row = row;
    this.open = open;
    this.empty = empty ?? "Nothing.";
    this.count = 0;
    this.active = 0;
    this.head = el("div", { class: "vt-head", role: "row" });
    this.body = el("div", { class: "vt-body", role: "rowgroup" });
    this.root = el(
      "div",
      { class: `vt ${height ?? ""}`, role: "table", "aria-label": label, tabindex: 0, onscroll: () => this.draw(), onkeydown: (event) => this.key(event) },
      el("div", { role: "rowgroup", class: "vt-head-group" }, this.head),
      this.body,
    );
    this.setColumns(columns);
    new ResizeObserver(() => this.draw()).observe(this.root);
  }

  setColumns(columns, sorted = -1, ascending = false) {
    this.columns = columns;
    const least = columns.map((column) => column.least ?? 5.5);
    this.root.style.setProperty("--columns", columns.map((column, place) => `minmax(${least[place]}rem, ${column.share ?? 1}fr)`).join(" "));
    this.root.style.setProperty("--least", `${least.reduce((sum, each) => sum + each, 0)}rem`);
    this.head.replaceChildren(...columns.map((column, place) => {
      const direction = place === sorted ? (ascending ? "ascending" : "descending") : "none";
      const content = column.sort
        ? el("button", { type: "button", class: "sort", title: column.hint ?? column.title, onclick: () => column.sort(place) },
            column.title, place === sorted ? (ascending ? " ▲" : " ▼") : "")
        : el("span", { title: column.hint ?? column.title }, column.title);
      return el("div", { role: "columnheader", class: column.right ? "right" : "", "aria-sort": direction }, content);
    }));
  }

  setCount(count) {
    this.count = count;
    this.active = Math.min(this.active, Math.max(count - 1, 0));
    this.root.setAttribute("aria-rowcount", count + 1);
    this.body.style.height = `${Math.max(count, 1) * ROW}px`;
    this.draw();
  }

  draw() {
    const first = Math.max(0, Math.floor(this.root.scrollTop / ROW) - SPARE);
    const last = Math.min(this.count, Math.ceil((this.root.scrollTop + this.root.clientHeight) / ROW) + SPARE);
    const rows = [];
    for (let place = first; place < last; place++) {
      const cells = this.row(place) ?? [{ text: "…" }];
      const row = el("div", { role: "row", class: place === this.active ? "vt-row active" : "vt-row", "aria-rowindex": place + 2, onclick: (event) => { if (!event.target.closest("a")) this.choose(place); } },
        cells.map((cell, column) => {
          const { text, class: kind, title, href } = typeof cell === "object" && cell !== null ? cell : { text: cell };
          return el("div", { role: "cell", class: `${this.columns[column]?.right ? "right " : ""}${kind ?? ""}`, title: title ?? text }, href ? el("a", { href, tabindex: -1 }, String(text)) : String(text));
        }));
      row.style.top = `${place * ROW}px`;
      rows.push(row);
    }
    if (!this.count) rows.push(el("p", { class: "vt-empty dim" }, this.empty));
    this.body.replaceChildren(...rows);
  }

  choose(place) {
    this.active = place;
    this.draw();
    this.open?.(place);
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.root.clientHeight / ROW) - 2);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.count, End: this.count };
    if (event.target !== this.root) return;
    if (event.key === "Enter") this.open?.(this.active);
    else if (event.key in steps) {
      this.active = Math.max(0, Math.min(this.count - 1, this.active + steps[event.key]));
      const top = this.active * ROW;
      const room = this.root.clientHeight - ROW - this.head.offsetHeight;
      if (top < this.root.scrollTop) this.root.scrollTop = top;
      else if (top > this.root.scrollTop + room) this.root.scrollTop = top - room;
      this.draw();
    } else return;
    event.preventDefault();
  }
}
