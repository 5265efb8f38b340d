// How long a step of a slider takes until the decision stands, and until the moved pods do, in milliseconds.
async () => {
  const slider = document.querySelector('input[data-plugin="NodeResourcesFit"]');
  const answers = () => document.querySelector(".moved").dataset.answers;
  const found = { steps: [], moved: [] };
  for (let weight = 2; weight <= 12; weight++) {
    const before = answers();
    const start = performance.now();
    slider.value = weight;
    slider.dispatchEvent(new Event("input"));
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    found.steps.push(performance.now() - start);
    while (answers() === before) await new Promise((done) => setTimeout(done, 5));
    found.moved.push(performance.now() - start);
  }
  return found;
}
