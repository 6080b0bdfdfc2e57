"""The style sheet of a report: light or dark by the system's choice, on a desk or a phone."""

CSS = """
:root { color-scheme: light dark; --paper: #fbfbfa; --ink: #1d2126; --soft: #5d6672;
  --card: #fff; --line: #e2e4e8; --good: #1a7f4b; --bad: #b3261e;
  --s0: #3b73c4; --s1: #d1622b; --s2: #2f9170; --s3: #8a5bb8; --s4: #c0392b; --s5: #8c8c2c;
  --s6: #2a8fa8; --s7: #a5527d; }
@media (prefers-color-scheme: dark) { :root { --paper: #14171b; --ink: #e4e7eb; --soft: #9aa4b1;
  --card: #1b1f25; --line: #2c323a; --good: #55c38a; --bad: #ef7a71;
  --s0: #7fb0f5; --s1: #f2955f; --s2: #5fc9a3; --s3: #bd94e8; --s4: #ef7a71; --s5: #cccc66;
  --s6: #66c7de; --s7: #e08db8; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 68rem; padding: 1.5rem 1rem 4rem; background: var(--paper);
  color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .2rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 2rem 0 .6rem; }
p { margin: .2rem 0; overflow-wrap: anywhere; }
.soft { color: var(--soft); } .good { color: var(--good); }
.bad { color: var(--bad); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(10rem, 45%), 1fr));
  gap: .6rem; margin: 1.2rem 0; }
.tile, figure { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; }
.tile { padding: .6rem .8rem; } .tile b { display: block; font-size: 1.2rem; }
.tile span { color: var(--soft); font-size: .8rem; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(26rem, 100%), 1fr));
  gap: .8rem; margin-top: .8rem; }
.plots.small { grid-template-columns: repeat(auto-fill, minmax(min(19rem, 100%), 1fr)); }
.plots + p { margin-top: .6rem; }
.alert { background: var(--card); border: 1px solid var(--bad); border-left-width: .4rem;
  border-radius: .5rem; padding: .6rem .8rem; margin: 1.2rem 0; }
.alert pre { border: 0; padding: 0; margin: .4rem 0 0; }
.alert.mild { border-color: var(--s1); }
figure { margin: 0; padding: .5rem; } svg { width: 100%; height: auto; display: block; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: .88rem; }
th, td { text-align: left; padding: .25rem 1.4rem .25rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
details { margin-top: 1rem; } summary { cursor: pointer; font-weight: 600; }
td { overflow-wrap: break-word; }
@media (min-width: 40rem) { .measures td:first-child { white-space: nowrap; } }
@media (max-width: 40rem) { th, td { padding-right: .8rem; } table { font-size: .82rem; }
  body { padding: 1rem .7rem 3rem; } }
.log td:last-child { white-space: pre-wrap; }
pre { overflow-x: auto; font-size: .8rem; background: var(--card); padding: .8rem;
  border: 1px solid var(--line); border-radius: .5rem; }
"""
