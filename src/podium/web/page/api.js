// Questions to the server, each about the scenario of the page. What the server says about a question that cannot be
// answered is the message of the error.
import { el, save } from "./dom.js";

let asked = null;
let server = null;
let onRestart = () => {};

/** Ask about this scenario from now on: an object, an id, or null for the cluster as it is. */
export function askAbout(scenario) {
  asked = scenario;
}

/** Call this when another server answers than before: it was started again, maybe with another cluster. */
export function whenRestarted(call) {
  onRestart = call;
}

/** The answer to a question, as data. */
export async function ask(kind, question, signal) {
  const response = await post(kind, question, signal);
  return response.json();
}

/** Buttons that save what a view shows, as the HTML report and as JSON; `question()` is what the view asked. */
export function reports(name, kind, question, complain) {
  const html = async () => save(`${name}.html`, await (await post(kind, { ...question(), output: "html" })).text(), "text/html");
  const json = async () => save(`${name}.json`, JSON.stringify(await ask(kind, question()), null, 1));
  return el("span", { class: "buttons" }, [["HTML report", html], ["JSON", json]].map(([title, saved]) =>
    el("button", { type: "button", onclick: (event) => busy(event.target, saved()).catch(complain) }, title)));
}

/** Show on a button that its work is under way, and let it not be pressed meanwhile. */
export async function busy(button, work) {
  button.disabled = true;
  button.setAttribute("aria-busy", "true");
  try {
    return await work;
  } finally {
    button.disabled = false;
    button.removeAttribute("aria-busy");
  }
}

async function post(kind, question, signal) {
  const about = asked && !("scenario" in question) && !question.scenarios ? { scenario: asked } : {};
  return request(`api/v1/${kind}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ ...about, ...question }),
    signal,
  });
}

/** Let the server keep a text; its id. */
export async function keep(text) {
  const response = await request("api/v1/kept", { method: "POST", headers: { "content-type": "text/plain" }, body: text });
  return (await response.json()).id;
}

/** A text that the server keeps. */
export async function kept(id) {
  return (await request(`api/v1/kept/${encodeURIComponent(id)}`, {})).text();
}

/** What the server says of itself, its cluster and a scenario. */
export async function overview(scenario) {
  if (!scenario) return (await request("api/v1/overview", {})).json();
  return ask("overview", { scenario });
}

async function request(address, options) {
  let response;
  try {
    response = await fetch(address, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer: it was stopped, or the network is down. What is shown may be old; try again.");
  }
  if (!response.ok) throw new Error(await saidBy(response));
  const answered = response.headers.get("podium-server");
  if (answered && server && answered !== server) {
    server = answered;
    onRestart();
  }
  server = answered ?? server;
  return response;
}

async function saidBy(response) {
  if (response.status === 401) {
    location.href = "login";
    return "log in first";
  }
  try {
    return (await response.json()).error;
  } catch {
    return `the server answered ${response.status}`;
  }
}

/** The address of a question, for links: fields that a query can say. */
export function addressOf(kind, question, output) {
  const query = new URLSearchParams();
  const scenario = asked ? { scenario: typeof asked === "string" ? asked : JSON.stringify(asked) } : {};
  for (const [name, value] of Object.entries({ ...question, ...scenario, ...(output ? { output } : {}) })) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== undefined && each !== null && each !== "") query.append(name, each);
    }
  }
  return `api/v1/${kind}?${query}`;
}
