// How long it takes until the decision about a pod stands, in milliseconds.
async (pod) => {
  const start = performance.now();
  location.hash = `#/decision?pod=${encodeURIComponent(pod)}`;
  const stands = () => document.querySelector("h1")?.textContent.includes(pod) && document.querySelectorAll(".vt-row").length > 5;
  while (!stands()) await new Promise(requestAnimationFrame);
  return performance.now() - start;
}
