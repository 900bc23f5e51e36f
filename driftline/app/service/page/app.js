"use strict";

// The page of a service: reads /models once, then the latest numbers as they come (/events). After
// a lost connection the browser comes back with the last event's id, and the model is read again.

const by = (id) => document.getElementById(id);
const COLOURS = ["#1f6feb", "#d9730d", "#1a9c6b", "#8e5bd6", "#c2345f", "#7a8794", "#a08a1d"];
let token = sessionStorage.getItem("driftline token") || "";
let models = new Map();   // by name, as /models has them
let shown = location.hash.slice(1);
let charts = {};
let speed = { at: 0, rows: 0, value: null };

async function get(path, options = {}) {
  const headers = { ...options.headers };
  if (token) headers.authorization = `Bearer ${token}`;
  const answer = await fetch(path, { ...options, headers });
  if (answer.status === 401) { by("token").hidden = false; throw new Error("a token is needed"); }
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error || answer.statusText);
  return body;
}

function told(state, words) {
  by("state").dataset.state = state;
  by("state").textContent = words;
}

// -- numbers

const whole = new Intl.NumberFormat("en");
const number = (value, digits = 0) =>
  value === null || value === undefined ? "—"
    : digits ? Number(value).toFixed(digits) : whole.format(Math.round(value));

function age(seconds) {
  if (seconds === null || seconds === undefined) return "—";
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

function pairs(list, entries) {
  list.replaceChildren(...entries.map(([name, value]) => {
    const box = document.createElement(list.id === "numbers" ? "div" : "template");
    const dt = document.createElement("dt"), dd = document.createElement("dd");
    dt.textContent = name; dd.textContent = value;
    if (box.tagName === "DIV") { box.append(dt, dd); return box; }
    const both = document.createDocumentFragment();
    both.append(dt, dd);
    return both;
  }));
}

function showNumbers(model) {
  const rows = model.counts.asked + model.counts.learned;
  if (model.at > speed.at) {
    if (speed.at && model.name === speed.name) {
      const now = (rows - speed.rows) / ((model.at - speed.at) / 1000);
      speed.value = speed.value === null ? now : 0.7 * speed.value + 0.3 * now;
    } else { speed.value = null; }
    speed = { at: model.at, rows, value: speed.value, name: model.name };
  }
  const first = model.learners.find((own) => own.answers);
  pairs(by("numbers"), [
    ["rows predicted", number(model.counts.asked)],
    ["labels learned", number(model.counts.told + model.counts.learned)],
    ["rows a second", speed.value === null ? "—" : number(speed.value, 1)],
    ["labels outstanding", number(model.outstanding)],
    ["mean loss", first.rounds ? number(first.paid / first.rounds, 4) : "—"],
    ["alarms", number(first.alarms_count)],
  ]);
  by("learners").tBodies[0].replaceChildren(...model.learners.map((own) => {
    const row = document.createElement("tr");
    const cells = [own.name + (own.answers ? " (answers)" : ""), number(own.rounds),
      number(own.paid, 1), own.rounds ? number(own.paid / own.rounds, 4) : "—",
      number(own.alarms_count)];
    row.append(...cells.map((text) => Object.assign(document.createElement("td"),
      { textContent: text })));
    return row;
  }));
}

// -- curves

function curves(model) {
  const series = [];
  for (const own of model.learners) series.push([own.name, own.curve, "paid"]);
  const first = model.learners.find((own) => own.answers);
  for (const name of Object.keys(first.baselines)) series.push([name, first.curve, name]);
  return series;
}

// Points of several curves over one axis of rounds.
function joined(series, value) {
  const all = [...new Set(series.flatMap(([, curve]) => curve.map((p) => p[0])))].sort((a, b) => a - b);
  const columns = series.map(([, curve, key]) => {
    const known = new Map(value(curve, key));
    return all.map((t) => known.has(t) ? known.get(t) : null);
  });
  return [all, ...columns];
}

const soFar = (curve, key) => curve.map(([t, own]) => [t, own[key] / t]);

// The slope over about a twentieth of the curve: what is paid now.
function ofLate(curve, key) {
  const made = [];
  for (let i = 1, j = 0; i < curve.length; i++) {
    const span = Math.max(1, curve[curve.length - 1][0] / 20);
    while (j + 1 < i && curve[i][0] - curve[j + 1][0] >= span) j++;
    made.push([curve[i][0], (curve[i][1][key] - curve[j][1][key]) / (curve[i][0] - curve[j][0])]);
  }
  return made;
}

function draw(place, model, value) {
  const series = curves(model), data = joined(series, value), box = by(place);
  const names = series.map(([name]) => name).join("|");
  const known = charts[place];
  const alarms = model.learners.find((own) => own.answers).alarms || [];
  if (known && known.names === names) { known.alarms = alarms; known.plot.setData(data); return; }
  if (known) known.plot.destroy();
  box.replaceChildren();
  const style = getComputedStyle(document.documentElement);
  const faint = style.getPropertyValue("--faint"), line = style.getPropertyValue("--line");
  const axis = { stroke: faint, grid: { stroke: line, width: 1 }, ticks: { stroke: line } };
  const chart = { names, alarms };
  chart.plot = new uPlot({
    width: box.clientWidth || 300, height: 240,
    scales: { x: { time: false }, y: { range: (u, low, high) => [0, Math.max(high || 0, 0.01) * 1.05] } },
    axes: [axis, { ...axis, size: 56 }],
    series: [{ label: "rounds" }, ...series.map(([name], i) => ({
      label: name, stroke: COLOURS[i % COLOURS.length], width: i ? 1.5 : 2.5, spanGaps: true,
      dash: i >= model.learners.length ? [5, 4] : undefined, points: { show: false },
      value: (u, v) => v === null ? "—" : v.toFixed(4),
    }))],
    hooks: { draw: [(u) => {
      u.ctx.save(); u.ctx.strokeStyle = "#c2345f88"; u.ctx.setLineDash([2, 3]);
      for (const t of chart.alarms) {
        const x = u.valToPos(t, "x", true);
        if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) continue;
        u.ctx.beginPath(); u.ctx.moveTo(x, u.bbox.top);
        u.ctx.lineTo(x, u.bbox.top + u.bbox.height); u.ctx.stroke();
      }
      u.ctx.restore();
    }] },
  }, data, box);
  charts[place] = chart;
}

function drawAll(model) {
  draw("loss", model, soFar);
  draw("recent", model, ofLate);
  const alarms = model.learners.find((own) => own.answers).alarms || [];
  by("alarms").textContent = alarms.length
    ? `Losses rose after rounds ${alarms.slice(-6).map((t) => whole.format(t)).join(", ")} (dotted lines).`
    : "";
}

// -- a model

function showForm(model) {
  const form = by("row");
  if (form.dataset.model === model.name) return;
  form.dataset.model = model.name;
  const inputs = (model.columns || []).slice(0, 200).map((name) => {
    const label = document.createElement("label");
    label.append(name, Object.assign(document.createElement("input"), { name }));
    return label;
  });
  form.replaceChildren(...inputs, Object.assign(document.createElement("button"),
    { textContent: "Predict" }));
  by("answer").textContent = "";
}

async function look(event) {
  event.preventDefault();
  const row = {};
  for (const input of event.target.querySelectorAll("input")) {
    const text = input.value.trim();
    if (text !== "") row[input.name] = text;
  }
  try {
    const path = `models/${encodeURIComponent(shown)}/look`;
    const answer = await get(path, { method: "POST", body: JSON.stringify({ row }) });
    const chances = Object.entries(answer.probabilities || {}).sort((a, b) => b[1] - a[1]).slice(0, 8)
      .map(([name, share]) => `${name} ${(100 * share).toFixed(1)}%`).join(", ");
    const set = answer.set ? `\nset: ${answer.set.join(", ")}` : "";
    const said = answer.prediction === null ? "no answer" : JSON.stringify(answer.prediction);
    by("answer").textContent = said + (chances ? `  (${chances})` : "") + set;
  } catch (error) { by("answer").textContent = error.message; }
}

async function showMore() {
  if (!shown || document.hidden) return;
  try {
    const made = await get(`models/${encodeURIComponent(shown)}/certificate`);
    const entries = [["paid so far", `${number(made.paid, 1)} in ${number(made.rounds)} rounds`]];
    for (const [name, paid] of Object.entries(made.baselines || {})) entries.push([name, number(paid, 1)]);
    if (made.best_member !== undefined) entries.push(["best member", number(made.best_member, 1)]);
    if (made.bound !== undefined) {
      entries.push(["bound", made.bound === null ? made.reason || "none"
        : number(made.bound, 1) + (made.vacuous ? " (vacuous: guessing is as good)" : "")]);
    }
    entries.push(["labels outstanding", number(made.outstanding)],
      ["the oldest has waited", age(made.oldest_seconds)], ["forgotten", number(made.expired)]);
    pairs(by("certificate"), entries);
    const weights = await get(`models/${encodeURIComponent(shown)}/weights`);
    const most = Math.max(1e-12, ...weights.importance.map((own) => own[1]));
    by("weights").tBodies[0].replaceChildren(...weights.importance.map(([name, value]) => {
      const row = document.createElement("tr"), bar = document.createElement("td");
      bar.className = "bar";
      bar.append(document.createElement("span"));
      bar.firstChild.style.width = `${100 * value / most}%`;
      const cells = [name, value.toFixed(3)].map((text) =>
        Object.assign(document.createElement("td"), { textContent: text }));
      row.append(cells[0], bar, cells[1]);
      return row;
    }));
  } catch (error) { console.warn(error); }
}

function show(model) {
  by("model").hidden = false;
  by("nothing").hidden = true;
  showNumbers(model);
  drawAll(model);
  showForm(model);
}

function choose(name) {
  shown = name;
  location.hash = name;
  by("models").value = name;
  if (models.has(name)) { show(models.get(name)); showMore(); }
}

async function readAll() {
  const found = await get("models"), all = found.filter((model) => !model.quarantined);
  const gone = found.filter((model) => model.quarantined);
  by("quarantined").hidden = !gone.length;
  by("quarantined").textContent =
    gone.map((model) => `${model.name} is out of service: ${model.quarantined}`).join("; ");
  models = new Map(all.map((model) => [model.name, model]));
  by("models").replaceChildren(...all.map((model) =>
    Object.assign(document.createElement("option"), { value: model.name, textContent: model.name })));
  by("nothing").hidden = all.length > 0;
  by("model").hidden = !all.length;
  if (all.length) choose(models.has(shown) ? shown : all[0].name);
}

// A new point for every curve; the whole model is read again if learners have changed.
function add(latest) {
  const known = models.get(latest.name);
  const names = (own) => own.learners.map((l) => l.name + l.answers).join("|");
  if (!known || names(known) !== names(latest)) return false;
  for (const [i, own] of latest.learners.entries()) {
    const before = known.learners[i], curve = before.curve;
    if (own.alarms_count !== before.alarms_count) return false;
    if (own.rounds && (!curve.length || curve[curve.length - 1][0] < own.rounds)) {
      curve.push([own.rounds, { paid: own.paid, ...own.baselines }]);
    }
    Object.assign(before, own);
  }
  Object.assign(known, { ...latest, learners: known.learners });
  return !known.learners.some((own) => own.curve.length > 1500);
}

async function watch() {
  // fetch in place of EventSource, which cannot send a token
  let last = "0";
  for (;;) {
    try {
      await readAll();
      const headers = { "last-event-id": last };
      if (token) headers.authorization = `Bearer ${token}`;
      const answer = await fetch("events", { headers });
      if (!answer.ok) throw new Error(answer.statusText);
      told("live", "live");
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) throw new Error("the connection has ended");
        text += value;
        const events = text.split("\n\n");
        text = events.pop();
        for (const event of events) {
          const data = event.split("\n").find((line) => line.startsWith("data: "));
          const id = event.split("\n").find((line) => line.startsWith("id: "));
          if (id) last = id.slice(4);
          if (!data) continue;
          const latest = JSON.parse(data.slice(6)).models;
          const same = latest.length === models.size && latest.map(add).every(Boolean);
          if (!same) await readAll();
          else if (models.has(shown)) show(models.get(shown));
        }
      }
    } catch (error) {
      told("lost", error.message === "a token is needed" ? error.message : "connection lost, trying again");
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  }
}

by("models").addEventListener("change", (event) => choose(event.target.value));
by("row").addEventListener("submit", look);
by("token").addEventListener("submit", (event) => {
  event.preventDefault();
  token = event.target.querySelector("input").value;
  sessionStorage.setItem("driftline token", token);
  event.target.hidden = true;
});
const redraw = () => {
  for (const chart of Object.values(charts)) chart.plot.destroy();
  charts = {};
  if (models.has(shown)) drawAll(models.get(shown));
};
addEventListener("resize", redraw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
setInterval(showMore, 5000);
watch();
