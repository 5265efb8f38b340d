// Questions to the server. What it says about a question that cannot be answered is the message of the error.
import { el, save } from "./dom.js";

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
    el("button", { type: "button", onclick: () => saved().catch(complain) }, title)));
}

async function post(kind, question, signal) {
  const response = await fetch(`/api/v1/${kind}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(question),
    signal,
  });
  return checked(response);
}

/** What the server says of itself and its cluster. */
export async function overview() {
  return (await checked(await fetch("/api/v1/overview"))).json();
}

async function checked(response) {
  if (response.ok) return response;
  if (response.status === 401) {
    location.href = "/login";
    throw new Error("log in first");
  }
  let said = `the server answered ${response.status}`;
  try {
    said = (await response.json()).error ?? said;
  } catch {
    // Not JSON: the number has to do.
  }
  throw new Error(said);
}

/** The address of a question, for links: fields that a query can say. */
export function addressOf(kind, question, output) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...question, ...(output ? { output } : {}) })) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== undefined && each !== null && each !== "") query.append(name, each);
    }
  }
  return `/api/v1/${kind}?${query}`;
}
