// The page's look, in light and dark.

/** CSS. */
export const pageStyle = `
:root {
  color-scheme: light dark;
  --paper: light-dark(#ffffff, #15171b); --panel: light-dark(#f6f7f9, #1c1f25); --ink: light-dark(#1b1f24, #e3e6ea);
  --soft: light-dark(#5b6470, #98a1ad); --rule: light-dark(#d9dde3, #363b44); --accent: light-dark(#0b57d0, #8ab4f8);
  --mark: light-dark(#fff3bf, #4a4013);
}
* { box-sizing: border-box; }
body { margin: 0; height: 100vh; display: flex; flex-direction: column; background: var(--paper); color: var(--ink); font: 14px/1.5 system-ui, sans-serif; }
a { color: var(--accent); text-decoration: none; } a:hover { text-decoration: underline; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
small { color: var(--soft); font-weight: normal; font-size: .86em; }
h1 { font-size: 1.05rem; margin: 0; } h2 { font-size: 1.15rem; margin: 0; } h3 { font-size: .95rem; margin: 1.3rem 0 .4rem; } h4 { font-size: .86rem; margin: .7rem 0 .1rem; }
header { display: flex; flex-wrap: wrap; gap: .3rem 1.6rem; align-items: baseline; padding: .6rem 1rem; border-bottom: 1px solid var(--rule); }
.facts { display: flex; flex-wrap: wrap; gap: .1rem 1.4rem; margin: 0; } .facts div { display: flex; gap: .45rem; } dt { color: var(--soft); } dd { margin: 0; font-variant-numeric: tabular-nums; }
.drawing .large { display: none; font-weight: 600; font-size: 32px; } .drawing .large.small { font-weight: normal; font-size: 28px; fill: var(--soft); }
.drawing.distant .large { display: initial; } .drawing.distant .kernel :is(.head, .calls, .figures, .rail, rect.bar) { display: none; }
.field { fill: var(--panel); stroke: var(--rule); } .drawing .title { font: 600 24px system-ui, sans-serif; } .drawing .sums { font-family: system-ui, sans-serif; fill: var(--soft); }
.edge.across:not(.on, .found) .line { display: none; } .edge.across:not(.on, .found) .grip { pointer-events: none; } .drawing[data-rows] .edge:not(.on, .found, :hover) .line { opacity: .38; }
.drawing.distant[data-rows] .edge:not(.on, .found, :hover) .line { stroke-width: 1; }
.edge.found .line { stroke: var(--accent); opacity: 1; stroke-width: 4; }
.kernel.dim { opacity: .25; } tr.dim { opacity: .4; } .kernel.hit .box { fill: var(--mark); }
.search { display: inline-flex; gap: .4rem; align-items: center; } .search input { font: inherit; color: inherit; background: var(--paper); border: 1px solid var(--rule); border-radius: 6px; padding: .12rem .5rem; width: 11rem; } .search output { color: var(--soft); font-size: .85rem; white-space: nowrap; }
#help { position: fixed; inset: 4rem auto auto 50%; translate: -50% 0; z-index: 3; padding: .8rem 1.2rem 1rem; border: 1px solid var(--rule); border-radius: 8px; background: var(--paper); box-shadow: 0 4px 24px #0004; } #help[hidden] { display: none; } #help h2 { margin-bottom: .5rem; } #help dl { display: grid; grid-template-columns: auto 1fr; gap: .25rem 1rem; margin: 0; } kbd { font: 12px ui-monospace, monospace; border: 1px solid var(--rule); border-radius: 4px; padding: 0 .3rem; background: var(--panel); color: var(--ink); }
.jump { display: flex; gap: .2rem .9rem; flex-wrap: wrap; align-items: center; margin: .3rem 0; } .scroll { overflow-x: auto; } tr.found td { background: var(--mark); }
main { flex: 1; min-height: 0; display: grid; grid-template-columns: minmax(20rem, 38fr) 62fr; }
body[data-many] main { grid-template-columns: minmax(20rem, 60fr) minmax(26rem, 40fr); }
.views { display: flex; flex-direction: column; min-width: 0; min-height: 0; border-right: 1px solid var(--rule); }
.bar-of-views { display: flex; flex-wrap: wrap; gap: .3rem; align-items: center; padding: .4rem .6rem; border-bottom: 1px solid var(--rule); background: var(--panel); }
.bar-of-views .gap { flex: 1; }
button { font: inherit; color: inherit; background: var(--paper); border: 1px solid var(--rule); border-radius: 6px; padding: .12rem .6rem; cursor: pointer; }
button[aria-selected="true"] { background: var(--accent); border-color: var(--accent); color: var(--paper); }
button.copy { font-size: .8rem; font-weight: normal; padding: 0 .45rem; }
.view { flex: 1; min-height: 0; overflow: auto; } .view[hidden], .about[hidden] { display: none; }
.view.table, .view.graph { padding: .6rem; } .view pre { margin: 0; }
.drawing { display: block; width: 100%; height: 100%; touch-action: none; cursor: grab; user-select: none; } .drawing.moving { cursor: grabbing; }
.drawing text { font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: var(--ink); }
.drawing .head { font-weight: 600; font-size: 12.5px; } .drawing .calls, .drawing .figures, .drawing .type { fill: var(--soft); font-size: 11px; }
.drawing .op, .drawing .type { text-fusionRoot: middle; font-size: 11px; } .drawing .type { font-size: 9.5px; } .drawing .end { text-fusionRoot: end; }
.kernel { cursor: pointer; outline: none; }
.box { fill: light-dark(hsl(var(--hue) 75% 97%), hsl(var(--hue) 22% 14%)); stroke: light-dark(hsl(var(--hue) 45% 62%), hsl(var(--hue) 35% 45%)); stroke-width: 1.2; vector-effect: non-scaling-stroke; }
.kernel:hover .box { stroke-width: 2; }
.kernel.on .box { stroke: light-dark(hsl(var(--hue) 75% 36%), hsl(var(--hue) 75% 68%)); stroke-width: 3; }
.kernel:focus-visible .box { stroke: var(--accent); stroke-width: 4; }
.rail { fill: light-dark(hsl(var(--hue) 40% 90%), hsl(var(--hue) 20% 24%)); } rect.bar { fill: light-dark(hsl(var(--hue) 60% 48%), hsl(var(--hue) 60% 60%)); }
.rule { stroke: light-dark(hsl(var(--hue) 45% 80%), hsl(var(--hue) 30% 30%)); }
.edge .line { fill: none; stroke: var(--soft); opacity: .55; vector-effect: non-scaling-stroke; } .edge .grip { fill: none; stroke: transparent; stroke-width: 14; }
.edge:hover .line, .edge.on .line { stroke: var(--accent); opacity: 1; } marker path { fill: var(--soft); }
.inner { fill: none; stroke: var(--soft); opacity: .45; }
.node rect { fill: light-dark(#ffffff, #23272f); stroke: light-dark(hsl(var(--hue) 30% 70%), hsl(var(--hue) 25% 42%)); }
.node.body rect { fill: light-dark(hsl(var(--hue) 75% 88%), hsl(var(--hue) 40% 26%)); }
.node.epilogue rect { fill: light-dark(hsl(var(--hue) 60% 94%), hsl(var(--hue) 28% 20%)); }
.node.read rect { fill: var(--panel); stroke: var(--soft); } .node.scalar rect { fill: var(--panel); stroke: var(--soft); stroke-dasharray: 3 3; }
.node.written rect { stroke: light-dark(hsl(var(--hue) 75% 36%), hsl(var(--hue) 75% 68%)); stroke-width: 2.6; }
.node.found rect { fill: var(--mark); stroke: var(--accent); stroke-width: 3; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1rem; padding: .35rem .7rem; border-top: 1px solid var(--rule); color: var(--soft); font-size: .8rem; }
.swatch { display: inline-block; width: .8rem; height: .8rem; border-radius: 3px; vertical-align: -.1rem; margin-right: .3rem; background: light-dark(hsl(var(--hue) 75% 90%), hsl(var(--hue) 40% 28%)); border: 1px solid light-dark(hsl(var(--hue) 45% 60%), hsl(var(--hue) 35% 50%)); }
.panel { min-width: 0; overflow: auto; padding: .9rem 1.1rem 3rem; container-type: inline-size; }
.about:not([hidden]) ~ .about:not([hidden]) { margin-top: 3rem; } .about .number { color: light-dark(hsl(var(--hue) 60% 36%), hsl(var(--hue) 60% 68%)); }
.schedule { margin: .1rem 0 .5rem; color: var(--soft); }
.halves { display: grid; gap: 0 1.6rem; } @container (min-width: 52rem) { .halves { grid-template-columns: minmax(0, 1fr) minmax(0, 1.1fr); } }
.halves > * { min-width: 0; }
.call { margin: .25rem 0 .1rem; font-size: .86rem; color: var(--soft); }
.chips { list-style: none; display: flex; flex-wrap: wrap; gap: .25rem; margin: 0 0 .35rem; padding: 0; } .chips li { font: 12px ui-monospace, monospace; border: 1px solid var(--rule); border-radius: 5px; padding: 0 .4rem; background: var(--panel); }
table { border-collapse: collapse; width: 100%; font-size: .9rem; } th, td { text-align: left; padding: .18rem .5rem .18rem 0; border-bottom: 1px solid var(--rule); vertical-align: top; } th { font-weight: 600; color: var(--soft); } .halves td:first-child { width: 1%; } .n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
table.kernels th:nth-child(n+4):nth-child(-n+7) { text-align: right; } table.kernels tr.on td { background: light-dark(hsl(var(--hue) 75% 94%), hsl(var(--hue) 30% 20%)); }
.share { min-width: 8rem; white-space: nowrap; } .share .bar { display: inline-block; height: .55rem; min-width: 1px; background: light-dark(hsl(var(--hue) 60% 48%), hsl(var(--hue) 60% 60%)); border-radius: 2px; }
.reasons { list-style: none; margin: 0; padding: 0; } .reasons li { border-left: 3px solid var(--rule); padding: .1rem 0 .1rem .7rem; margin: .5rem 0; } .reasons p { margin: .1rem 0; } .reasons .pair { font-family: ui-monospace, monospace; font-size: .84rem; }
code, pre { font: 12px/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
pre { position: relative; overflow: auto; margin: 0; padding: .7rem; border: 1px solid var(--rule); border-radius: 8px; background: var(--panel); } .view pre span.found { background: var(--mark); }
.code pre { max-height: 82vh; }
.c { color: var(--soft); font-style: italic; } .k { color: light-dark(#8a1f8f, #d39be6); } .t { color: light-dark(#0b6e8a, #7cc7dd); } .code .n { color: light-dark(#9a4b00, #e8b273); } .a { color: light-dark(#5c6b00, #c3cf78); } .f { color: light-dark(#0b4fbf, #8fb8ff); }
#tip { position: fixed; z-index: 2; max-width: 30rem; padding: .35rem .6rem; border: 1px solid var(--rule); border-radius: 6px; background: var(--paper); box-shadow: 0 2px 10px #0003; font: 12px/1.5 ui-monospace, monospace; white-space: pre-wrap; pointer-events: none; }
.spoken { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
@media (max-width: 60rem) { body { height: auto; } main, body[data-many] main { display: block; } .views { border-right: 0; } .view { height: 60vh; } }
@media print { body { height: auto; } main { display: block; } .about[hidden] { display: block; } .bar-of-views, .legend { display: none; } }
`;
