// Mouse, keys, search and the story of a job.

const byId = (id) => document.getElementById(id);
const element = (name, text, kind) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
};

let pinned = null;

function show(from, to) {
  const least = 100, whole = Math.max(data.end, 1);
  let span = Math.min(Math.max(to - from, least), whole * 1.02);
  view.from = Math.min(Math.max(from, -0.01 * whole), 1.01 * whole - span);
  view.to = view.from + span;
  redraw();
}

function showRows(pane, first, shown) {
  pane.shown = Math.min(Math.max(shown, Math.min(4, pane.rows)), pane.rows);
  pane.first = Math.min(Math.max(first, 0), pane.rows - pane.shown);
  redraw();
}

function whole() {
  for (const pane of [panes.hosts, panes.switches]) showRows(pane, 0, pane.rows);
  show(0, data.end);
}

function pin(job) {
  pinned = job;
  view.focus = job ? new Set([job.index]) : new Set(matching(byId("search").value).map((j) => j.index));
  story(job);
  redraw();
}

function story(job) {
  const aside = byId("details");
  aside.hidden = !job;
  aside.replaceChildren();
  if (!job) return;
  aside.append(element("h2", `job ${job.name}`));
  const facts = element("dl");
  const fact = (name, text) => {
    if (text !== "" && text !== null) facts.append(element("dt", name), element("dd", text));
  };
  fact("pattern", job.pattern);
  fact("hosts", `${job.hosts}: ${job.runs.slice(0, 40).map(([first, count]) =>
    count === 1 ? first : `${first}-${first + count - 1}`).join(", ")}${job.runs.length > 40 ? ", .." : ""}`);
  fact("why there", job.why);
  fact("steps", job.steps === null ? "" : job.steps.toLocaleString("en"));
  if (job.start === null) {
    fact("waits since", seconds(job.queued));
  } else {
    fact("started", `${seconds(job.start)}, after waiting ${seconds(job.start - job.queued)}`);
    fact(job.over ? "ended" : "still runs at", `${seconds(job.end)}, after ${seconds(job.end - job.start)}`);
    const from = Math.max(job.start, (data.told || [job.end])[0]), to = Math.min(job.end, (data.told || [0, 0])[1]);
    if (from < to) fact("summed by switches", `${(100 * summed(job, from, to) / (to - from)).toFixed(1)} % of the time`);
  }
  aside.append(facts);
  if (job.start !== null) {
    const button = jump("show it", job.start, job.end);
    button.addEventListener("click", () => {
      around(panes.hosts, job.runs.flatMap(([first, count]) => [first, first + count]));
      around(panes.switches, job.trees.flatMap((tree) => tree.switches.flatMap((at) => [at, at + 1])));
    });
    aside.append(button);
  }
  for (const tree of job.trees) {
    const root = tree.root === null ? "no tree" : `${switches[tree.root].name}, ${tree.switches.length} switches`;
    aside.append(jump(root, tree.from, tree.to, `${seconds(tree.from)} to ${seconds(tree.to)}`, tree.why));
  }
}

function around(pane, rows) {
  if (!rows.length) return;
  const first = Math.min(...rows), last = Math.max(...rows), more = (last - first) * 0.1 + 1;
  showRows(pane, first - more, last - first + 2 * more);
}

function jump(text, from, to, ...more) {
  const button = element("button", text, "span");
  for (const line of more) if (line) button.append(element("small", line));
  button.onclick = () => show(from - (to - from) * 0.1, to + (to - from) * 0.1);
  return button;
}

function at(event) {
  const pane = panes[event.currentTarget.id];
  const box = pane.canvas.getBoundingClientRect();
  return { pane, px: event.clientX - box.left, py: event.clientY - box.top };
}

function hit(event) {
  const { pane, px, py } = at(event);
  if (px < GUTTER) return null;
  const time = timeAt(pane, px), row = rowAt(pane, py);
  if (pane === panes.hosts) {
    const job = jobOnHost(Math.floor(row), time);
    return job && { job, tree: treeOf(job, time), place: `host ${Math.floor(row)}`, time };
  }
  const found = switches[Math.floor(row)];
  if (pane !== panes.switches || !found) return null;
  const lane = Math.floor((row % 1) * found.lanes);
  const here = found.held.filter(({ tree }) => tree.from <= time && time < tree.to);
  const chosen = here.find((each) => each.lane === lane) || (here.length === 1 ? here[0] : null);
  return chosen && { job: chosen.tree.job, tree: chosen.tree, place: found.name, time };
}

function tip(event) {
  const box = byId("tip");
  const found = hit(event);
  box.hidden = !found;
  if (!found) return;
  const { job, tree, place, time } = found;
  const lines = [
    `job ${job.name}  ${job.pattern}`,
    `${place} at ${seconds(time)}`,
    `${job.hosts} hosts, ${seconds(job.start)} to ${seconds(job.end)}`,
  ];
  if (tree && tree.root !== null) {
    lines.push(`tree below ${switches[tree.root].name}, ${tree.switches.length} switches${tree.why ? `: ${tree.why}` : ""}`);
    if (data.told && data.told[0] <= time && time < data.told[1]) lines.push(summed(job, time, time + 1) > 0 ? "the switches sum" : "not summing");
  } else {
    lines.push(`no tree${tree && tree.why ? `: ${tree.why}` : ""}`);
  }
  box.textContent = lines.join("\n");
  const right = event.clientX + box.offsetWidth + 24 > window.innerWidth;
  box.style.left = `${event.clientX + (right ? -box.offsetWidth - 12 : 14)}px`;
  box.style.top = `${Math.min(event.clientY + 14, window.innerHeight - box.offsetHeight - 8)}px`;
}

let drag = null;
for (const name of ["use", "hosts", "switches", "axis"]) {
  const { canvas } = panes[name];
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const { pane, px, py } = at(event);
    const factor = 1.0015 ** (event.deltaY || event.deltaX);
    if (event.shiftKey && pane.rows > 1) {
      const row = rowAt(pane, py);
      showRows(pane, row - (row - pane.first) * factor, pane.shown * factor);
    } else {
      const time = timeAt(pane, Math.max(px, GUTTER));
      show(time - (time - view.from) * factor, time + (view.to - time) * factor);
    }
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    const { pane, px, py } = at(event);
    drag = { px, py, from: view.from, first: pane.first, moved: false };
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag) return tip(event);
    const { pane, px, py } = at(event);
    if (!drag.moved && Math.hypot(px - drag.px, py - drag.py) < 4) return undefined;
    drag.moved = true;
    byId("tip").hidden = true;
    const span = view.to - view.from;
    const from = drag.from - ((px - drag.px) / (pane.width - GUTTER)) * span;
    showRows(pane, drag.first - ((py - drag.py) / pane.height) * pane.shown, pane.shown);
    return show(from, from + span);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (drag && !drag.moved) {
      const found = hit(event);
      pin(found ? found.job : null);
    }
    drag = null;
  });
  canvas.addEventListener("pointerleave", () => { byId("tip").hidden = true; });
  canvas.addEventListener("dblclick", whole);
}

let turn = 0;
byId("search").addEventListener("input", (event) => {
  turn = 0;
  pinned = null;
  story(null);
  const found = matching(event.target.value);
  byId("found").textContent = event.target.value.trim() ? `${found.length} found` : "";
  view.focus = new Set(found.map((job) => job.index));
  redraw();
});
byId("search").addEventListener("keydown", (event) => {
  const found = matching(event.target.value);
  if (event.key !== "Enter" || !found.length) return;
  const job = found[turn++ % found.length];
  pin(job);
  if (job.start !== null) show(job.start - (job.end - job.start), job.end + (job.end - job.start));
});
byId("colours").addEventListener("change", (event) => {
  view.colours = event.target.value;
  redraw();
});
byId("fit").addEventListener("click", whole);
byId("theme").addEventListener("click", () => {
  const root = document.documentElement;
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
  theme();
  redraw();
});
window.addEventListener("resize", redraw);
window.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    byId("search").value = byId("found").textContent = "";
    return pin(null);
  }
  if (event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement) return undefined;
  const span = view.to - view.from;
  const keys = {
    "/": () => { event.preventDefault(); byId("search").focus(); },
    f: whole,
    ArrowLeft: () => show(view.from - span / 5, view.to - span / 5),
    ArrowRight: () => show(view.from + span / 5, view.to + span / 5),
    "+": () => show(view.from + span / 6, view.to - span / 6),
    "-": () => show(view.from - span / 4, view.to + span / 4),
  };
  return keys[event.key]?.();
});

// page.html#job=12&from=1.5&to=2: where to begin, in seconds.
function begin() {
  document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  theme();
  const count = (number, what) => `${number.toLocaleString("en")} ${what}`;
  byId("summary").textContent = [count(jobs.length, "jobs"), count(data.hosts, "hosts"),
    count(switches.length, "switches"), seconds(data.end)].join(", ");
  const notes = [];
  if (data.gap) notes.push(`sums less than ${seconds(data.gap)} apart are drawn as one`);
  if (data.told && (data.told[0] > 0 || data.told[1] < data.end)) {
    notes.push(`sums are told from ${seconds(data.told[0])} to ${seconds(Math.min(data.told[1], data.end))}`);
  }
  byId("merged").textContent = notes.join("; ");
  if (!data.told) for (const each of document.querySelectorAll("[data-told]")) each.hidden = true;
  whole();
  const wanted = new URLSearchParams(location.hash.slice(1));
  if (wanted.has("from") && wanted.has("to")) show(wanted.get("from") * 1e9, wanted.get("to") * 1e9);
  if (wanted.has("job")) pin(jobs.find((job) => job.name === wanted.get("job")) || null);
}

begin();
