// Lines over time, drawn as SVG.
import { el, number, svg } from "./dom.js";

const WIDE = 560;
const HIGH = 170;
const LEFT = 50;
const BOTTOM = 24;

/** A chart of lines: [{name, class, values}] over `times`; `percent` for shares. Returns {root, mark(time)}. */
export function chart({ title, times, lines, percent }) {
  const end = times.at(-1) || 1;
  const top = percent ? 1 : Math.max(1, ...lines.flatMap((line) => line.values));
  const x = (time) => LEFT + ((WIDE - LEFT - 8) * time) / end;
  const y = (value) => 8 + (HIGH - BOTTOM - 8) * (1 - value / top);
  const text = (value) => (percent ? `${Math.round(value * 100)} %` : number(Math.round(value)));
  const grid = [0, 0.5, 1].map((part) => [
    svg("line", { class: "grid", x1: LEFT, x2: WIDE - 8, y1: y(top * part), y2: y(top * part) }),
    svg("text", { class: "axis", x: LEFT - 6, y: y(top * part) + 4, "text-anchor": "end" }, text(top * part)),
  ]);
  const marks = [0, 0.25, 0.5, 0.75, 1].map((part) => svg("text", { class: "axis", x: x(end * part), y: HIGH - 5, "text-anchor": part ? (part === 1 ? "end" : "middle") : "start" }, clock(end * part)));
  const drawn = lines.map((line, place) => svg("polyline", { class: `line line${place}`, points: line.values.map((value, at) => `${x(times[at]).toFixed(1)},${y(value).toFixed(1)}`).join(" ") }));
  const now = svg("line", { class: "now", x1: LEFT, x2: LEFT, y1: 4, y2: HIGH - BOTTOM });
  const root = el("figure", { class: "chart" },
    el("figcaption", {}, el("b", {}, title), lines.map((line, place) => el("span", { class: `key key${place}` }, ` ${["━", "╍", "┅"][place] ?? "━"} ${line.name}`))),
    svg("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": `${title}: ${lines.map((line) => `${line.name} ends at ${text(line.values.at(-1) ?? 0)}`).join(", ")}` }, grid, marks, drawn, now));
  return {
    root,
    mark: (time) => {
      now.setAttribute("x1", x(time));
      now.setAttribute("x2", x(time));
    },
  };
}

/** Seconds as 1:02:03. */
export function clock(seconds) {
  const whole = Math.round(seconds);
  const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return parts.map((part, place) => (place ? String(part).padStart(2, "0") : part)).join(":");
}
