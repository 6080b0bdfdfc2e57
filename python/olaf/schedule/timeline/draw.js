// From the view to pixels. A pane's rows are drawn at any height: many rows in a pixel blend.

const GUTTER = 84;
const SOLID = 1, BARE = 0.38, HELD = 0.3, UNTOLD = 0.65, DIM = 0.12;

const view = { from: 0, to: data.end || 1, focus: new Set(), colours: "job" };
const panes = {};
for (const [name, rows] of [["use", 1], ["hosts", data.hosts], ["switches", switches.length], ["axis", 1]]) {
  const canvas = document.getElementById(name);
  panes[name] = { canvas, paint: canvas.getContext("2d"), rows, first: 0, shown: rows || 1 };
}
let paper = {};

function theme() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["ink", "soft", "line", "band", "busy", "tree", "sums", "paper"]) {
    paper[name] = style.getPropertyValue(`--${name}`).trim();
  }
  paper.dark = document.documentElement.dataset.theme === "dark";
}

function colour(job) {
  const byPattern = view.colours === "pattern";
  const index = byPattern ? patterns.indexOf(job.pattern) : job.index;
  const hue = byPattern ? (index * 360) / patterns.length + 210 : index * 137.508 + 210;
  const light = paper.dark ? 62 : 50;
  return `hsl(${hue % 360} 48% ${light + (byPattern ? 0 : (index % 3) * 5 - 5)}%)`;
}

const dimmed = (job) => view.focus.size > 0 && !view.focus.has(job.index);
const x = (pane, ns) => GUTTER + ((ns - view.from) / (view.to - view.from)) * (pane.width - GUTTER);
const timeAt = (pane, px) => view.from + ((px - GUTTER) / (pane.width - GUTTER)) * (view.to - view.from);
const y = (pane, row) => ((row - pane.first) / pane.shown) * pane.height;
const rowAt = (pane, py) => pane.first + (py / pane.height) * pane.shown;

function size(pane) {
  const box = pane.canvas.getBoundingClientRect();
  const dots = window.devicePixelRatio || 1;
  pane.width = box.width;
  pane.height = box.height;
  pane.canvas.width = Math.round(box.width * dots);
  pane.canvas.height = Math.round(box.height * dots);
  pane.paint.setTransform(dots, 0, 0, dots, 0, 0);
}

function inside(pane, work) {
  const { paint } = pane;
  paint.save();
  paint.beginPath();
  paint.rect(GUTTER, 0, pane.width - GUTTER, pane.height);
  paint.clip();
  work(paint);
  paint.restore();
}

function bar(pane, paint, from, to, top, height) {
  const left = x(pane, from);
  paint.fillRect(left, top, Math.max(x(pane, to) - left, 0.6), height);
}

const visible = (from, to) => from < view.to && to > view.from;

// Groups of rows: bands behind them, and names where there is room.
function ground(pane, grouped, nameOf) {
  const { paint } = pane;
  const tall = pane.height / pane.shown;
  paint.font = "11px system-ui, sans-serif";
  paint.textBaseline = "middle";
  paint.textAlign = "right";
  let free = -Infinity;
  grouped.forEach((group, number) => {
    const top = y(pane, group.first), bottom = y(pane, group.first + group.count);
    if (bottom < 0 || top > pane.height) return;
    if (number % 2 === 0) {
      paint.fillStyle = paper.band;
      paint.fillRect(GUTTER, top, pane.width - GUTTER, bottom - top);
    }
    if (tall >= 11) return;
    const middle = (Math.max(0, top) + Math.min(pane.height, bottom)) / 2;
    if (middle < free + 12 || middle < 6 || middle > pane.height - 5) return;
    free = middle;
    paint.fillStyle = paper.soft;
    paint.fillText(short(paint, group.name), GUTTER - 6, middle);
  });
  if (tall < 11) return;
  paint.fillStyle = paper.soft;
  const last = Math.min(pane.rows, Math.ceil(pane.first + pane.shown));
  for (let row = Math.max(0, Math.floor(pane.first)); row < last; row++) {
    const middle = y(pane, row + 0.5);
    if (middle > 5 && middle < pane.height - 4) paint.fillText(short(paint, nameOf(row)), GUTTER - 6, middle);
  }
}

function short(paint, text) {
  if (paint.measureText(text).width <= GUTTER - 10) return text;
  while (text.length > 1 && paint.measureText(text + "…").width > GUTTER - 10) text = text.slice(0, -1);
  return text + "…";
}

function label(pane, paint, text, from, to, top, height) {
  const left = Math.max(x(pane, from), GUTTER) + 4, right = Math.min(x(pane, to), pane.width) - 4;
  if (height < 12 || right - left < 24 || paint.measureText(text).width > right - left) return;
  paint.fillStyle = paper.dark ? "#10131a" : "#fff";
  paint.fillText(text, left, top + height / 2);
}

function drawHosts() {
  const pane = panes.hosts;
  const tall = pane.height / pane.shown;
  const gap = tall >= 6 ? 1 : 0;
  ground(pane, blocks, (host) => `host ${host}`);
  inside(pane, (paint) => {
    paint.textAlign = "left";
    for (const job of ran) {
      if (!visible(job.start, job.end)) continue;
      const strength = dimmed(job) ? DIM : 1;
      for (const [first, count] of job.runs) {
        const top = y(pane, first), height = count * tall - gap;
        if (top > pane.height || top + height < 0) continue;
        paint.fillStyle = colour(job);
        paint.globalAlpha = BARE * strength;
        bar(pane, paint, job.start, job.end, top, height);
        paint.globalAlpha = SOLID * strength;
        for (const tree of job.trees) {
          if (tree.root === null || !visible(tree.from, tree.to)) continue;
          // One bar over the other would blend: the colour is that of a tree alone.
          bar(pane, paint, tree.from, tree.to, top, height);
        }
        if (strength === 1) label(pane, paint, `${job.name} ${job.pattern}`, job.start, job.end, top, height);
      }
    }
    paint.globalAlpha = 1;
  });
}

// A job's sums as an image one pixel high, to be drawn on each of its switches.
const strips = new Map();
function strip(pane, job, from, to) {
  const width = Math.max(1, Math.ceil(x(pane, to) - x(pane, from)));
  const share = coverage(job, from, to, width);
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = 1;
  const paint = canvas.getContext("2d");
  paint.fillStyle = colour(job);
  for (let column = 0; column < width; column++) {
    if (share[column] <= 0) continue;
    paint.globalAlpha = Math.min(1, share[column]);
    paint.fillRect(column, 0, 1, 1);
  }
  return { canvas, share, from, to };
}

function stripsOfView(pane) {
  strips.clear();
  if (!data.told) return;
  for (const job of ran) {
    if (!visible(job.start, job.end) || !job.uses.length) continue;
    strips.set(job, strip(pane, job, Math.max(job.start, view.from), Math.min(job.end, view.to)));
  }
}

function drawSwitches() {
  const pane = panes.switches;
  const tall = pane.height / pane.shown;
  ground(pane, tiers, (row) => switches[row].name);
  inside(pane, (paint) => {
    paint.textAlign = "left";
    paint.imageSmoothingEnabled = false;
    const last = Math.min(switches.length, Math.ceil(pane.first + pane.shown));
    for (let row = Math.max(0, Math.floor(pane.first)); row < last; row++) {
      const { lanes, held } = switches[row];
      const thick = (tall - (tall >= 6 ? 2 : 0)) / lanes;
      for (const { tree, lane } of held) {
        if (!visible(tree.from, tree.to)) continue;
        drawTree(pane, paint, tree, row, y(pane, row) + lane * thick, thick - (thick >= 5 ? 1 : 0));
      }
    }
    paint.globalAlpha = 1;
  });
}

function drawTree(pane, paint, tree, row, top, height) {
  const strength = dimmed(tree.job) ? DIM : 1;
  paint.fillStyle = colour(tree.job);
  const [told, untold] = data.told || [tree.to, tree.to];
  for (const [from, to, alpha] of [[tree.from, Math.min(tree.to, told), UNTOLD],
    [Math.max(tree.from, told), Math.min(tree.to, untold), HELD], [Math.max(tree.from, untold), tree.to, UNTOLD]]) {
    paint.globalAlpha = alpha * strength;
    if (from < to && visible(from, to)) bar(pane, paint, from, to, top, height);
  }
  paint.globalAlpha = strength;
  const drawn = strips.get(tree.job);
  if (drawn) {
    const from = Math.max(tree.from, drawn.from), to = Math.min(tree.to, drawn.to);
    const scale = drawn.canvas.width / (drawn.to - drawn.from);
    const left = (from - drawn.from) * scale, wide = (to - from) * scale;
    if (wide > 0) paint.drawImage(drawn.canvas, left, 0, wide, 1, x(pane, from), top, x(pane, to) - x(pane, from), height);
  }
  if (tree.root === row && height >= 4) {
    paint.fillStyle = paper.ink;
    bar(pane, paint, tree.from, tree.to, top, Math.min(2, height / 4));
  }
  if (strength === 1) label(pane, paint, `${tree.job.name} ${tree.job.pattern}`, tree.from, tree.to, top, height);
}

// Hosts that run jobs, those whose job has a tree, those for whom switches sum, as areas.
function drawUse() {
  const pane = panes.use;
  const width = Math.max(1, Math.floor(pane.width - GUTTER));
  const busy = new Float32Array(width), tree = new Float32Array(width), sums = new Float32Array(width);
  const column = (view.to - view.from) / width;
  const add = (from, to, isBusy, isTree) => {
    const a = Math.max(0, (from - view.from) / column), b = Math.min(width, (to - view.from) / column);
    for (let at = Math.floor(a); at < b; at++) {
      const share = Math.min(b, at + 1) - Math.max(a, at);
      busy[at] += share * isBusy;
      tree[at] += share * isTree;
    }
  };
  changes.forEach(([at, isBusy, isTree], i) => {
    if (i + 1 < changes.length && visible(at, changes[i + 1][0])) add(at, changes[i + 1][0], isBusy, isTree);
  });
  for (const [job, { share, from }] of strips) {
    const shift = Math.round((from - view.from) / column);
    share.forEach((part, at) => { if (at + shift < width) sums[at + shift] += Math.min(1, part) * job.hosts; });
  }
  const { paint } = pane;
  const top = 8, high = pane.height - top - 2;
  for (const [series, fill] of [[busy, paper.busy], [tree, paper.tree], [sums, paper.sums]]) {
    paint.fillStyle = fill;
    paint.beginPath();
    paint.moveTo(GUTTER, top + high);
    series.forEach((value, at) => paint.lineTo(GUTTER + at + 0.5, top + high - (value / data.hosts) * high));
    paint.lineTo(GUTTER + width, top + high);
    paint.fill();
  }
  paint.font = "11px system-ui, sans-serif";
  paint.textAlign = "right";
  paint.textBaseline = "middle";
  const names = [["busy", paper.busy], ["with a tree", paper.tree]];
  if (data.told) names.push(["summed for", paper.sums]);
  names.forEach(([name, fill], number) => {
    const middle = top + 6 + number * 15;
    paint.fillStyle = fill;
    paint.fillRect(GUTTER - 12, middle - 4, 7, 8);
    paint.fillStyle = paper.soft;
    paint.fillText(name, GUTTER - 16, middle);
  });
  paint.fillStyle = paper.line;
  paint.fillRect(GUTTER, top, pane.width - GUTTER, 1);
}

function ticks(pane) {
  const wanted = Math.max(2, (pane.width - GUTTER) / 110);
  const rough = (view.to - view.from) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough));
  const marks = [];
  for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) marks.push(at);
  return { step, marks };
}

function drawAxis() {
  const pane = panes.axis;
  const { step, marks } = ticks(pane);
  for (const each of [panes.hosts, panes.switches, panes.use]) {
    each.paint.fillStyle = paper.line;
    each.paint.globalAlpha = 0.7;
    for (const at of marks) each.paint.fillRect(Math.round(x(each, at)), 0, 1, each.height);
    each.paint.globalAlpha = 1;
  }
  const { paint } = pane;
  paint.font = "11px system-ui, sans-serif";
  paint.textBaseline = "middle";
  paint.textAlign = "center";
  paint.fillStyle = paper.soft;
  for (const at of marks) {
    const place = Math.min(Math.max(x(pane, at), GUTTER), pane.width - 24);
    paint.fillText(seconds(at, step), place, pane.height / 2);
  }
}

let asked = false;
function redraw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    Object.values(panes).forEach(size);
    stripsOfView(panes.hosts);
    drawHosts();
    drawSwitches();
    drawUse();
    drawAxis();
  });
}
