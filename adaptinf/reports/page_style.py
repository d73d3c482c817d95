"""Style of a report: on wide screens and phones, in dark mode, and in print, where it is always light."""

STYLE = """
:root { color-scheme: light; --ink: #1a1a1a; --ground: #fff; --soft: #f3f3f3; --quiet: #595959;
  --rule: #c8c8c8; --link: #004b87; --bar: #00588c; --warn: #8a1c1c; --ask: #fff3cd; }
@media screen and (prefers-color-scheme: dark) {
  :root { color-scheme: dark; --ink: #e8e8e8; --ground: #15171a; --soft: #23262b; --quiet: #b0b0b0;
    --rule: #4a4e55; --link: #8fc1ef; --bar: #6cb8ee; --warn: #f2a3a3; --ask: #4a3d10; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; max-width: 60rem; padding: 1rem 1rem 3rem; background: var(--ground);
  color: var(--ink);
  font: 1rem/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.05rem; line-height: 1.3; margin: 0 0 .4rem; font-weight: 600; color: var(--quiet); }
h2 { font-size: 1.25rem; margin: 2rem 0 .6rem; padding-top: .6rem; border-top: 1px solid var(--quiet); }
h3 { font-size: 1rem; margin: 1.2rem 0 .4rem; }
p, li, dd { max-width: 46rem; }
p { margin: .6rem 0; }
.meta p { margin: 0; }
a { color: var(--link); }
.lead { font-size: 1.3rem; line-height: 1.35; margin: .5rem 0 .7rem; font-weight: 600; max-width: none; }
.lead.long { font-size: 1.1rem; }
.meta { font-size: .85rem; color: var(--quiet); margin: .3rem 0; }
.caution { border-left: 4px solid var(--warn); padding: 0 0 0 .7rem; margin: .5rem 0; font-size: .95rem; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
nav ul { padding-left: 1.2rem; columns: 16rem; margin: .8rem 0 0; font-size: .9rem; }
dl { display: grid; grid-template-columns: minmax(7rem, max-content) 1fr; gap: .2rem 1rem; margin: .6rem 0; }
dt { font-weight: 600; }
dd { margin: 0; min-width: 0; }
dl.stacked { display: block; } dl.stacked dd { margin: 0 0 .6rem; }
.wide { overflow-x: auto; margin: .8rem 0; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding-bottom: .3rem; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--rule); text-align: left; vertical-align: top;
  overflow-wrap: normal; }
thead th { border-bottom: 2px solid var(--ink); vertical-align: bottom; }
th[scope=row] { font-weight: 600; overflow-wrap: break-word; min-width: 5.5rem; }
.number { text-align: right; white-space: nowrap; }
.forest { width: 100%; margin: .2rem 0 .4rem; font-size: .95rem; table-layout: fixed; }
.forest caption { font-weight: 400; color: var(--quiet); font-size: .9rem; }
.forest tr { border-bottom: 1px solid var(--soft); }
.forest thead tr, .forest tbody tr:last-child { border-bottom: 1px solid var(--quiet); }
.forest tfoot tr { border: 0; }
.forest th, .forest td { padding: .1rem .4rem; vertical-align: middle; border: 0; }
.forest thead th { font-weight: 400; font-size: .8rem; color: var(--quiet); padding-bottom: 0;
  white-space: nowrap; }
.forest th:first-child { width: calc(1.15 * var(--w0) + 1rem); min-width: 4rem; padding-left: 0;
  overflow-wrap: anywhere; line-height: 1.3; }
.forest th:nth-child(3) { width: max(4.6rem, calc(var(--w1) + .8rem)); }
.forest th:nth-child(4) { width: max(6rem, calc(var(--w2) + .8rem)); }
.forest td:last-child, .forest th:last-child { padding-right: 0; }
.forest .drawn { padding: 0; }
.forest thead .drawn { text-align: center; }
.forest tbody .drawn {
  background: linear-gradient(var(--quiet), var(--quiet)) no-repeat var(--zero, -9px) 0 / 1px 100%;
  -webkit-print-color-adjust: exact; print-color-adjust: exact; }
.forest svg { display: block; stroke: var(--bar); stroke-width: 2; fill: var(--bar); overflow: visible; }
.forest :is(thead, tfoot) svg { stroke: var(--quiet); stroke-width: 1; }
.forest text { stroke: none; fill: var(--quiet); font-size: .75rem; }
.fill table { width: 100%; table-layout: fixed; }
.fill th:nth-child(1) { width: 3.2rem; min-width: 0; }
.fill th:nth-child(2) { width: 6rem; }
.fill th[scope=col]:nth-child(3) { width: 36%; }
.halves th:nth-child(1) { width: 60%; }
.halves th:nth-child(2) { width: auto; }
.fill td, .fill th { padding: .25rem .3rem; overflow-wrap: anywhere; }
.fill th[scope=row] { font-weight: 400; }
details { margin: .6rem 0; }
summary { cursor: pointer; color: var(--link); }
figure { margin: 1rem 0; }
figure img { width: 100%; max-width: 38rem; height: auto; display: block;
  background: #fff; border-radius: 4px; }
figcaption { font-size: .9rem; max-width: 46rem; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--soft); padding: .6rem .8rem;
  font-size: .85rem; }
.box { border: 2px solid var(--warn); padding: .5rem .8rem; margin: 0 0 1rem; }
.box > .warning { font-weight: 600; font-size: .9rem; line-height: 1.35; margin: 0 0 .5rem; }
.ask { background: var(--ask); color: var(--ink); padding: 0 .25rem; }
.notes { font-size: .9rem; padding-left: 1.6rem; }
.digest { overflow-wrap: anywhere; }
@media (max-width: 40rem) { body { padding: .7rem .8rem 2rem; }
  .lead { font-size: 1.1rem; } .lead.long { font-size: .95rem; }
  .fill table { font-size: .8rem; }
  .fill thead th { font-size: .66rem; } .fill th:nth-child(1) { width: 2.2rem; }
  .fill th:nth-child(2) { width: 4.4rem; } .fill th[scope=col]:nth-child(3) { width: 33%; }
  .halves th:nth-child(1) { width: 55%; } .halves th:nth-child(2) { width: auto; }
  .forest { font-size: .85rem; }
  .forest th, .forest td { padding: .1rem .2rem; }
  .forest th:first-child { width: calc(1.15 * var(--w0) + .3rem); min-width: 0; }
  .forest th:nth-child(3) { width: max(3.6rem, calc(var(--w1) + .3rem)); }
  .forest th:nth-child(4) { width: max(5rem, calc(var(--w2) + .3rem)); }
  .forest.stacked, .forest.stacked :is(thead, tbody, tfoot, caption) { display: block; }
  .forest.stacked tr { display: grid; align-items: center; grid-template-columns:
    1fr max(3.6rem, calc(var(--w1) + .3rem)) max(5rem, calc(var(--w2) + .3rem)); }
  .forest.stacked :is(th, td) { width: auto; }
  .forest.stacked tbody th { grid-column: 1 / -1; line-height: 1.2; padding-top: .2rem; font-size: .8rem; }
  .forest.stacked :is(thead th:first-child, tfoot td:first-child) { display: none; }
  dl { grid-template-columns: 1fr; gap: 0; } dd { margin: 0 0 .5rem; } }
@page { size: A4; margin: 14mm 15mm; }
@media print { html { font-size: 10pt; } body { max-width: none; padding: 0; line-height: 1.4; }
  nav { display: none; } p, li, dd { max-width: none; }
  .wide { overflow: visible; } .wide table { font-size: .8rem; width: 100%; }
  .wide th, .wide td { padding: 1pt 3pt; } .wide td:not(.number) { overflow-wrap: anywhere; }
  .wide th[scope=row] { min-width: 20mm; overflow-wrap: anywhere; }
  h2 { font-size: 1.2rem; margin: 1.2rem 0 .4rem; } h2, h3, summary, caption { break-after: avoid; }
  figure, tr, .caution { break-inside: avoid; } p, li { orphans: 3; widows: 3; }
  figure img { max-width: 120mm; } thead { display: table-header-group; } tfoot { display: table-row-group; }
  a { color: inherit; text-decoration: none; } summary { color: inherit; list-style: none; font-weight: 600; }
  details::details-content { content-visibility: visible; display: block; height: auto; }
  html:has(.brief) { font-size: 9pt; } html:has(.tight) { font-size: 7.6pt; }
  .brief { line-height: 1.3; } .brief p { margin: .3rem 0; } .brief .notes { margin: .2rem 0; }
  .brief h2 { font-size: 1.1rem; margin: .6rem 0 .2rem; padding-top: .3rem; } }
"""
