// The player for a timeline: queue and utilisation over time, what happened, and the nodes following a scrubber.
import { note } from "./address.js";
import { ask, busy, keep, kept, reports } from "./api.js";
import { chart, clock } from "./chart.js";
import { counted, el, labelled } from "./dom.js";
import { Tiles } from "./tiles.js";

const MOST_IN_ADDRESS = 1500;
const SHOWN = 14;

/** Events in, a history out, with a scrubber to look at any moment of it. */
export async function timeView(view, params, { complain, signal }) {
  const given = params.get("kept") ? await kept(params.get("kept")) : params.get("events") ?? "";
  const events = el("textarea", { rows: 8, class: "code", "aria-label": "Events, one JSON object a line", spellcheck: "false",
    ondragover: (event) => event.preventDefault(), ondrop: (event) => { event.preventDefault(); read(event.dataTransfer.files[0]).catch(complain); } }, given);
  const file = el("input", { type: "file", accept: ".json,.jsonl,.ndjson,.txt", "aria-label": "A file of events", onchange: () => read(file.files[0]).catch(complain) });
  const until = el("input", { type: "number", min: 0, value: params.get("until") ?? "", "aria-label": "Until, in seconds", placeholder: "until nothing happens" });
  const input = el("details", { open: true });
  const shown = el("div", {});
  let playing = null;
  let found = null;

  /** Take the events of a file, and run them. */
  async function read(from) {
    if (!from) return;
    events.value = await from.text();
    await run();
  }

  function question() {
    return { events: events.value, ...(until.value ? { until: Number(until.value) } : {}) };
  }

  /** Pods that come and go while one node is drained and another fails. */
  async function example() {
    const { nodes, unschedulable } = (await ask("what-if", {}, signal)).tiles;
    const [first, second] = nodes.filter((_, place) => !unschedulable.includes(place));
    const node = (name) => ({ apiVersion: "v1", kind: "Node", metadata: { name } });
    const pod = (place) => ({
      apiVersion: "v1", kind: "Pod", metadata: { name: `visitor-${place}`, labels: { app: "visitor" } },
      spec: { containers: [{ name: "main", image: "registry.example/visitor:1", resources: { requests: { cpu: "500m", memory: "1Gi" } } }] },
    });
    const lines = Array.from({ length: 40 }, (_, place) => ({ time: 15 * place, event: "add", lifetime: 240, object: pod(place) }));
    lines.push({ time: 120, event: "drain", object: node(first) }, { time: 480, event: "uncordon", object: node(first) });
    if (second) lines.push({ time: 240, event: "fail", object: node(second) });
    events.value = lines.map((line) => JSON.stringify(line)).join("\n");
  }

  async function run() {
    complain(null);
    clearInterval(playing);
    if (!events.value.trim()) throw new Error("There are no events yet: write some, choose a file, or take the example.");
    const isLong = events.value.length > MOST_IN_ADDRESS;
    note({ events: isLong ? "" : events.value, kept: isLong ? await keep(events.value) : "", until: until.value, t: "" });
    const asked = question();
    found = await ask("timeline", asked, signal);
    input.open = false;
    show(asked);
  }

  function show(asked) {
    const { samples } = found;
    const times = samples.map((sample) => sample.time);
    const used = (resource) => samples.map((sample) => (sample.allocatable[resource] ? sample.requested[resource] / sample.allocatable[resource] : 0));
    const waiting = samples.map((sample) => sample.active + sample.backoff + sample.unschedulable + sample.gated);
    const charts = [
      chart({ title: "Pods that wait", times, lines: [{ name: "in the queue", values: waiting }, { name: "unschedulable", values: samples.map((sample) => sample.unschedulable) }] }),
      chart({ title: "In use", times, percent: true, lines: [{ name: "cpu", values: used("cpu") }, { name: "memory", values: used("memory") }] }),
      chart({ title: "Pods that run", times, lines: [{ name: "running", values: samples.map((sample) => sample.running) }] }),
    ];
    const end = found.end || 1;
    const tiles = new Tiles({ pick: () => {} });
    tiles.set(found.tiles, "");
    const most = Math.max(1, found.mostPods);
    const scrubber = el("input", { type: "range", class: "scrubber", min: 0, max: end, step: Math.max(end / 1000, 0.01), value: 0, "aria-label": "Moment", oninput: () => { at(Number(scrubber.value)); noteMoment(); } });
    const now = el("output", {});
    const happened = el("ol", { class: "log" });
    const play = el("button", { type: "button", onclick: toggle }, "Play");

    function at(time) {
      scrubber.value = time;
      now.textContent = `${clock(time)} of ${clock(end)}`;
      for (const each of charts) each.mark(time);
      const counts = new Map();
      for (const life of found.pods) {
        if (life.bound !== null && life.bound <= time && (life.ended === null || life.ended > time)) counts.set(life.node, (counts.get(life.node) ?? 0) + 1);
      }
      for (const node of found.tiles.nodes) {
        const pods = counts.get(node) ?? 0;
        tiles.paint(node, pods / most, String(pods), counted(pods, "pod"));
      }
      const before = found.log.filter((record) => record.time <= time).slice(-SHOWN);
      happened.replaceChildren(...before.map((record) => el("li", {}, el("time", {}, clock(record.time)), ` ${tell(record)}`)));
    }

    /** Write the moment into the address: not while playing, as browsers limit how often that may be. */
    function noteMoment() {
      note({ t: String(Math.round(Number(scrubber.value) * 100) / 100) });
    }

    function toggle() {
      if (playing) {
        clearInterval(playing);
        playing = null;
        play.textContent = "Play";
        noteMoment();
        return;
      }
      if (Number(scrubber.value) >= end) at(0);
      play.textContent = "Pause";
      playing = setInterval(() => {
        const next = Math.min(end, Number(scrubber.value) + end / 150);
        at(next);
        if (next >= end) toggle();
      }, 60);
      signal.addEventListener("abort", () => clearInterval(playing));
    }

    shown.replaceChildren(
      el("div", { class: "bar" }, el("div", { class: "lead grow" }, found.words.map((text, place) => el("p", { class: place ? "" : found.unplaced ? "bad" : "good" }, text))), reports("timeline", "timeline", () => asked, complain)),
      el("div", { class: "bar" }, play, scrubber, now),
      el("div", { class: "split" }, el("section", {}, el("h3", {}, "Pods on each node"), tiles.root), el("section", {}, el("h3", {}, "What happened"), happened)),
      el("div", { class: "charts" }, charts.map((each) => each.root)),
      found.warnings.length ? el("ul", {}, found.warnings.map((text) => el("li", {}, text))) : "",
    );
    at(Number(params.get("t") ?? 0));
    shown.dataset.ready = "1";
  }

  view.append(
    el("h1", {}, "Time"),
    input,
    shown,
  );
  input.append(el("summary", {}, "Events"),
    el("p", { class: "dim" }, "One event a line: ", el("code", {}, '{"time": 60, "event": "drain", "object": {"kind": "Node", "metadata": {"name": "…"}}}'), ". Pods come and go, nodes fail; the scheduler decides as always."),
    events,
    el("div", { class: "bar" },
      el("button", { type: "button", class: "main", onclick: (event) => busy(event.target, run()).catch(complain) }, "Run"),
      labelled("Or a file", file),
      el("button", { type: "button", onclick: () => example().catch(complain) }, "An example for this cluster"),
      labelled("Until, in seconds", until)));
  if (events.value) await run();
}

/** A record of the log as a sentence. */
function tell(record) {
  const { event, pod, node, message, reason, by, kind, name, replaces } = record;
  switch (event) {
    case "bind": return `${pod} goes to ${node}`;
    case "unschedulable": return `${pod} waits: ${message}`;
    case "evict": return `${pod} is evicted from ${node} (${reason}${by ? `, for ${by}` : ""})`;
    case "nominate": return node ? `${pod} waits for room on ${node}` : `${pod} waits for no node any more`;
    case "create": return `${pod} is made${replaces ? ` in place of ${replaces}` : ""}`;
    case "finish": case "gone": case "lost": return `${pod} is ${event === "finish" ? "done" : event} on ${node}`;
    default: return `${event} ${kind ?? ""} ${name ?? pod ?? ""}`;
  }
}
