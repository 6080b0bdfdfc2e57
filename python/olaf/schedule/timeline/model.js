"use strict";
// What was recorded, as objects, and questions about it. Times are nanoseconds.

const data = JSON.parse(document.getElementById("data").textContent);

const jobs = data.jobs.map(
  ([name, pattern, runs, queued, start, end, over, steps, why, uses], index) => ({
    index, name, pattern, runs, queued, start, end, over, steps, uses,
    why: data.reasons[why],
    hosts: runs.reduce((sum, [, count]) => sum + count, 0),
    trees: [],
  }));
const ran = jobs.filter((job) => job.start !== null && job.hosts > 0);

const trees = data.trees.map(([job, from, to, root, why]) => {
  const tree = { job: jobs[job], from, to, root, why: data.reasons[why], switches: [] };
  jobs[job].trees.push(tree);
  return tree;
});

const switches = data.switches.map((name, index) => {
  const [lanes, ...pairs] = data.held[index];
  const held = [];
  for (let i = 0; i < pairs.length; i += 2) {
    held.push({ tree: trees[pairs[i]], lane: pairs[i + 1] });
    trees[pairs[i]].switches.push(index);
  }
  return { name, lanes, held };
});

// Rows that stand together: a name, the first row, how many.
function groups(named) {
  let first = 0;
  return named.map(([name, count]) => ({ name, first: (first += count) - count, count }));
}
const blocks = groups(data.blocks);
const tiers = groups(switches.reduce((found, { name }) => {
  const tier = name.replace(/[\d.:/_-]+.*$/, "") || name;
  const last = found[found.length - 1];
  if (last && last[0] === tier) last[1] += 1; else found.push([tier, 1]);
  return found;
}, []));

const patterns = [...new Set(jobs.map((job) => job.pattern))].sort();

// Times at which the number of busy hosts, or of those whose job has a tree, changes.
const changes = (() => {
  const steps = [];
  for (const job of ran) {
    steps.push([job.start, job.hosts, 0], [job.end, -job.hosts, 0]);
    for (const tree of job.trees) {
      if (tree.root !== null) steps.push([tree.from, 0, job.hosts], [tree.to, 0, -job.hosts]);
    }
  }
  steps.sort((a, b) => a[0] - b[0]);
  let busy = 0, tree = 0;
  return steps.map(([at, more, moreTree]) => [at, (busy += more), (tree += moreTree)]);
})();

function jobOnHost(host, at) {
  return ran.find((job) => job.start <= at && at < job.end &&
    job.runs.some(([first, count]) => first <= host && host < first + count));
}

function treeOf(job, at) {
  return job.trees.find((tree) => tree.from <= at && at < tree.to);
}

function matching(text) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return [];
  const exact = jobs.filter((job) => job.name.toLowerCase() === wanted.replace(/^job\s+/, ""));
  return exact.length ? exact
    : jobs.filter((job) => `job ${job.name} ${job.pattern}`.toLowerCase().includes(wanted));
}

// How long the switches summed for a job between two times.
function summed(job, from, to) {
  let ns = 0;
  for (let i = firstUse(job.uses, from); i < job.uses.length && job.uses[i] < to; i += 2) {
    ns += Math.max(0, Math.min(job.uses[i + 1], to) - Math.max(job.uses[i], from));
  }
  return ns;
}

// The place of the first use that ends after a time.
function firstUse(uses, at) {
  let low = 0, high = uses.length / 2;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (uses[2 * middle + 1] <= at) low = middle + 1; else high = middle;
  }
  return 2 * low;
}

// The share of each of `width` columns between two times in which the switches summed for a job.
function coverage(job, from, to, width) {
  const share = new Float32Array(width);
  const column = (to - from) / width;
  for (let i = firstUse(job.uses, from); i < job.uses.length && job.uses[i] < to; i += 2) {
    const a = Math.max(0, (job.uses[i] - from) / column);
    const b = Math.min(width, (job.uses[i + 1] - from) / column);
    for (let x = Math.floor(a); x < b && x < width; x++) {
      share[x] += Math.min(b, x + 1) - Math.max(a, x);
    }
  }
  return share;
}

function seconds(ns, step = 0) {
  if (ns === 0) return "0 s";
  const unit = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]]
    .find(([size]) => Math.abs(ns) >= size) || [1, "ns"];
  const digits = step ? Math.max(0, Math.ceil(Math.log10(unit[0] / step) - 1e-9)) : 3;
  const text = (ns / unit[0]).toFixed(Math.min(9, digits));
  const [whole, rest] = (step ? text : text.replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "")).split(".");
  return `${whole.replace(/\B(?=(\d{3})+$)/g, ",")}${rest ? "." + rest : ""} ${unit[1]}`;
}
