// The time between frames while the table is scrolled quickly, that 95 % of them stay within, in milliseconds.
async () => {
  const table = document.querySelector(".vt");
  const gaps = [];
  let last = performance.now();
  for (let step = 0; step < 120; step++) {
    table.scrollTop += 900;
    await new Promise(requestAnimationFrame);
    gaps.push(performance.now() - last);
    last = performance.now();
  }
  gaps.sort((a, b) => a - b);
  return gaps[Math.floor(gaps.length * 0.95)];
}
