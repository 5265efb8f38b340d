// Elements out of plain values. Text is always text: nothing here, or anywhere else in the page, parses HTML.

/** An element with properties, listeners (`on...`), attributes (the rest) and children (text or nodes). */
export function el(tag, props = {}, ...children) {
  const node = tag === "svg" || props.xmlns ? document.createElementNS("http://www.w3.org/2000/svg", tag)
    : document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false || name === "xmlns") continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.setAttribute("class", value);
    else if (name === "value" || name === "checked" || name === "selected" || name === "disabled") node[name] = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** An element of an SVG drawing. */
export const svg = (tag, props = {}, ...children) => el(tag, { ...props, xmlns: true }, ...children);

/** A label with the control it names. */
export function labelled(text, control) {
  return el("label", { class: "field" }, el("span", {}, text), control);
}

/** A drop-down list of [value, text] pairs. */
export function select(pairs, chosen, onchange, props = {}) {
  const options = pairs.map(([value, text]) => el("option", { value, selected: value === chosen }, text));
  return el("select", { ...props, onchange: (event) => onchange(event.target.value) }, options);
}

const numbers = new Intl.NumberFormat("en");

/** A number with separators. */
export const number = (value) => numbers.format(value);

/** "1 pod", "2 pods". */
export const counted = (count, what) => `${number(count)} ${what}${count === 1 ? "" : "s"}`;

/** How much of a resource: cores for cpu, GiB for memory and storage, else a number. */
export function amount(resource, value) {
  if (resource === "cpu") return `${number(value / 1000)} cores`;
  if (/memory|storage|hugepages/.test(resource)) return `${number(Math.round(value / 2 ** 20 / 102.4) / 10)} GiB`;
  return number(value);
}

/** How much of 0..1, as one of the eleven shades of the style sheet. */
export const shade = (share) => `s${Math.max(0, Math.min(10, Math.round(share * 10)))}`;

/** Let the browser save text as a file. */
export function save(name, text, type = "application/json") {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = el("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** A table under a heading, of text, nodes and {text, class}; nothing without rows. */
export function table(title, heads, rows) {
  if (!rows.length) return null;
  return el("div", { class: "wide" }, el("h3", {}, title), el("table", {},
    el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col", class: parts(head).class }, parts(head).text)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell) => el("td", { class: parts(cell).class }, parts(cell).text)))))));
}

const parts = (cell) => (typeof cell === "object" && cell !== null && !(cell instanceof Node) ? cell : { text: cell ?? "" });
