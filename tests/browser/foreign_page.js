// What a page of another origin may try against the server; null for what came to nothing.
async (url) => {
  const post = (type) => fetch(`${url}/api/v1/audit`, { method: "POST", headers: { "content-type": type }, body: "{}" });
  const loaded = (tag, source, value) => new Promise((resolve, reject) => {
    const node = document.createElement(tag);
    node.src = source;
    node.onload = () => { try { resolve(value(node)); } catch (error) { reject(error); } };
    node.onerror = () => reject(new Error("refused"));
    document.body.append(node);
    setTimeout(() => reject(new Error("nothing")), 3000);
  });
  const tries = {
    read: async () => (await fetch(`${url}/api/v1/overview`)).text(),
    json: async () => (await post("application/json")).text(),
    plain: async () => (await post("text/plain")).text(),
    blind: async () => (await fetch(`${url}/api/v1/overview`, { mode: "no-cors" })).text(),
    script: () => loaded("script", `${url}/main.js`, () => "loaded"),
    frame: () => loaded("iframe", `${url}/`, (node) => node.contentDocument.title),
  };
  const found = {};
  for (const [name, run] of Object.entries(tries)) {
    try {
      found[name] = (await run()) || null;
    } catch {
      found[name] = null;
    }
  }
  return found;
}
