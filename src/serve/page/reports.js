// The page at /: the roofline report of each model, fetched once it is unfolded, and measured where somebody asks for that.
"use strict";
(() => {
  const element = (parent, tag, text, name) => {
    const one = parent.appendChild(document.createElement(tag));
    if (text !== undefined) one.textContent = text;
    if (name) one.className = name;
    return one;
  };

  function layers(parent, report) {
    const scroll = element(parent, "div", undefined, "scroll"), table = element(scroll, "table", undefined, "layers");
    const head = table.createTHead().insertRow(), seconds = report.measured ? "measured, ms" : "predicted, ms";
    const heads = [["layer"], ["what"], ["algorithm"], ["unit"], [seconds, "n"], ["% of time", "n"], ["% of roof", "n"], ["bound by"],
      ["why it runs so"]];
    for (const [text, name] of heads) element(head, "th", text, name);
    const time = (step) => (report.measured ? step.measured_ms : step.predicted_ms), body = table.createTBody();
    for (const step of report.steps) {
      const row = body.insertRow(), share = 100 * time(step) / (report.steps_ms || 1);
      for (const [text, name] of [[step.name], [step.what], [step.algorithm], [step.unit], [time(step).toFixed(3), "n"],
        [share.toFixed(1), "n"], [step.percent_of_roof.toFixed(1), "n"], [step.bound], [step.reason, "words"]])
        element(row, "td", text, name);
    }
  }

  function show(details, report) {
    const measured = report.measured, whole = measured ? report.measured_ms : report.predicted_ms;
    const share = (100 * report.roof_ms / (whole || 1)).toFixed(0), basis = measured ? "measured" : "predicted";
    details.querySelector(".short").textContent = `- ${whole.toPrecision(3)} ms a pass, ${share} % of the roofline, ${basis}`;
    const part = details.querySelector(".report");
    part.textContent = "";
    const shapes = report.inputs.map((i) => `${i.name} [${i.shape.join(",")}]`).join(", ");
    element(part, "p", `On ${report.device}, for ${shapes}; ${report.basis}.`, "basis");
    if (report.above_roof)
      element(part, "p", `A rate is above its roof, so something disturbed the measurement: ${report.above_roof}`);
    if (report.farthest.length) element(part, "p", "Farthest from the roof:");
    const list = element(part, "ol", undefined, "farthest");
    for (const f of report.farthest) element(list, "li", `${f.step}: ${f.sentence} ${f.above}. ${f.why}.`);
    const said = report.no_changes || (report.changes.length ? "" : "nothing.");
    element(part, "p", `What to change in the model, as 'sparkle check' says: ${said}`, "change");
    const changes = element(part, "ol", undefined, "changes");
    for (const c of report.changes)
      element(changes, "li", [c.code, c.layer, c.sentence, c.rule, c.fix, c.saved].filter(Boolean).join(" - "));
    layers(part, report);
  }

  async function ask(details, method) {
    const said = details.querySelector(".said"), way = path(details);
    said.textContent = method === "POST" ? "measuring ..." : "...";
    try {
      let reply = await fetch(way, {method});
      for (let i = 0; reply.status === 429 && method === "GET" && i < 5; ++i) {  // another one is being made
        await new Promise((done) => setTimeout(done, 1000));
        reply = await fetch(way, {method});
      }
      const report = await reply.json();
      if (!reply.ok) throw new Error(report.error);
      said.textContent = "";
      show(details, report);
      if (report.measured) details.querySelector("button").hidden = true;
    } catch (error) {
      said.textContent = String(error.message || error);
    }
  }
  const path = (details) =>
    `/v2/models/${encodeURIComponent(details.dataset.model)}/versions/${details.dataset.version}/report`;

  const all = [...document.querySelectorAll("#reports details")];
  for (const details of all) {
    const line = element(details, "p"), button = element(line, "button", "measure");
    button.type = "button", button.title = "some runs on random values, while no request is under way";
    element(line, "span", " ");
    element(line, "a", "the whole report").href = `${path(details)}.html`;
    element(line, "span", " ");
    element(line, "span", "", "said");
    element(details, "div", undefined, "report");
    button.onclick = () => ask(details, "POST");
    details.ontoggle = () => {
      if (details.open && !details.querySelector("table")) ask(details, "GET");
    };
  }
  if (all.length) all[0].open = true;
})();
