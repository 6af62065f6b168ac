// The page at /: its table is renewed, and a picture becomes a model's input and a request. Nothing leaves for another server.
"use strict";
const forms = JSON.parse(document.getElementById("forms").textContent);
const find = (id) => document.getElementById(id);
const model = find("model"), file = find("file"), answer = find("answer"), canvas = find("seen");

for (const [i, form] of forms.entries()) model.add(new Option(form.model + ", version " + form.version, i));
find("try").hidden = forms.length === 0;

function renew() {
  fetch("/").then((r) => (r.ok ? r.text() : Promise.reject(r.status))).then((text) => {
    const fresh = new DOMParser().parseFromString(text, "text/html").getElementById("models");
    if (fresh) find("models").replaceWith(document.adoptNode(fresh));
  }).catch(() => {});  // it may be stopping; what was known stays
}
setInterval(renew, 10000);

// Draws the picture as the model sees it.
function draw(form, picture) {
  const most = 1024, whole = form.fit === "none";
  const shrink = Math.min(1, most / Math.max(picture.width, picture.height));
  canvas.width = form.width || Math.max(1, Math.round(picture.width * shrink));
  canvas.height = form.height || Math.max(1, Math.round(picture.height * shrink));
  const W = canvas.width, H = canvas.height, across = W / picture.width, down = H / picture.height;
  const context = canvas.getContext("2d", {willReadFrequently: true});
  context.imageSmoothingQuality = "high";
  context.fillStyle = `rgb(${form.pad} ${form.pad} ${form.pad})`;
  context.fillRect(0, 0, W, H);
  let w = W, h = H, x = 0, y = 0;
  if (form.fit === "letterbox") {
    const factor = Math.min(across, down);
    w = Math.max(1, Math.floor(picture.width * factor)), h = Math.max(1, Math.floor(picture.height * factor));
    if (form.centred) x = Math.floor((W - w) / 2), y = Math.floor((H - h) / 2);
  } else if (form.fit === "crop" && !whole) {
    let factor = Math.max(across, down);
    if (form.shorter_side > 0) factor *= Math.max(1, form.shorter_side / Math.min(W, H));
    w = Math.round(picture.width * factor), h = Math.round(picture.height * factor);
    x = -Math.floor((w - W) / 2), y = -Math.floor((h - H) / 2);
  }
  context.drawImage(picture, x, y, w, h);
  return context.getImageData(0, 0, W, H).data;
}

// value = (pixel * scale - mean) / std, in the order of the model's axes.
function values(form, pixels, W, H) {
  const C = form.color === "grey" ? 1 : 3, bytes = form.datatype === "UINT8";
  const to = bytes ? new Uint8Array(C * W * H) : new Float32Array(C * W * H);
  for (let c = 0; c < C; ++c)
    for (let i = 0; i < W * H; ++i) {
      const own = form.color === "bgr" ? 2 - c : c, at = 4 * i;
      const pixel = C === 1 ? 0.299 * pixels[at] + 0.587 * pixels[at + 1] + 0.114 * pixels[at + 2] : pixels[at + own];
      const value = (pixel * form.scale - form.mean[c]) / form.std[c];
      to[form.channels_last ? i * C + c : c * W * H + i] = bytes ? Math.max(0, Math.min(255, Math.round(value))) : value;
    }
  return to;
}

function body(form, data, shape) {
  const input = {name: form.input, datatype: form.datatype, shape};
  if (form.datatype === "FP16") return {text: JSON.stringify({inputs: [{...input, data: Array.from(data)}]})};
  const text = JSON.stringify({inputs: [{...input, parameters: {binary_data_size: data.byteLength}}]});
  const head = new TextEncoder().encode(text), whole = new Uint8Array(head.length + data.byteLength);
  whole.set(head), whole.set(new Uint8Array(data.buffer), head.length);
  return {text: whole, headers: {"Inference-Header-Content-Length": head.length}};
}

function row(table, ...cells) {
  const line = table.insertRow();
  for (const text of cells) line.insertCell().textContent = text;
}

// A row of classes with its five largest, else what the numbers are like.
function show(form, output) {
  const numbers = output.data.map(Number), n = numbers.length, part = document.createElement("section");
  part.append(Object.assign(document.createElement("h3"), {textContent: output.name + " [" + output.shape.join(",") + "]"}));
  const table = part.appendChild(document.createElement("table"));
  if (n > 1 && n <= 100000 && Math.max(...output.shape) === n) {
    const sum = numbers.reduce((a, b) => a + b, 0);
    let shares = numbers;
    if (Math.abs(sum - 1) > 1e-3 || numbers.some((v) => v < 0)) {
      const most = numbers.reduce((a, b) => Math.max(a, b)), powers = numbers.map((v) => Math.exp(v - most));
      const all = powers.reduce((a, b) => a + b, 0);
      shares = powers.map((v) => v / all);
    }
    table.className = "classes";
    row(table, "class", "", "probability");
    const order = [...numbers.keys()].sort((a, b) => numbers[b] - numbers[a] || a - b).slice(0, 5);
    for (const c of order) row(table, c, form.labels[c] || "", (100 * shares[c]).toFixed(2) + " %");
  } else {
    const [least, most, sum] = numbers.reduce(([a, b, s], v) => [Math.min(a, v), Math.max(b, v), s + v], [Infinity, -Infinity, 0]);
    row(table, "values", n), row(table, "least, largest, mean", [least, most, sum / n].map((v) => v.toPrecision(5)).join(", "));
    row(table, "the first", numbers.slice(0, 16).map((v) => v.toPrecision(5)).join(", "));
  }
  answer.append(part);
}

async function ask() {
  const form = forms[model.value];
  find("how").textContent = form ? form.how : "";
  if (!form || !file.files.length) return;
  answer.textContent = "...";
  try {
    const picture = await createImageBitmap(file.files[0]);
    const pixels = draw(form, picture), W = canvas.width, H = canvas.height, C = form.color === "grey" ? 1 : 3;
    const request = body(form, values(form, pixels, W, H), form.channels_last ? [1, H, W, C] : [1, C, H, W]);
    const begin = performance.now();
    const reply = await fetch(`/v2/models/${encodeURIComponent(form.model)}/versions/${form.version}/infer`,
      {method: "POST", body: request.text, headers: request.headers || {}});
    const milliseconds = performance.now() - begin, json = await reply.json();
    if (!reply.ok) throw new Error(json.error);
    answer.textContent = `Answered in ${milliseconds.toFixed(1)} ms, with the way there and back.`;
    for (const output of json.outputs) show(form, output);
  } catch (error) {
    answer.textContent = String(error.message || error);
  }
  renew();
}
model.onchange = file.onchange = ask;
ask();
