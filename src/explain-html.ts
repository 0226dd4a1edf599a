// An explanation as one self-contained page: no script, no network; sources fold open, bars show where the bytes go.

import type { Explained, ExplainedKernel } from './explain.ts';
import { showBytes, showCount } from './table.ts';

const style = `
:root { color-scheme: light dark; --line: #8884; --bar: #4a8fd9; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; } dt { opacity: .7; } dd { margin: 0; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
td.n, th.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
code, pre { font: 13px/1.45 ui-monospace, monospace; } pre { overflow-x: auto; padding: .8rem; border: 1px solid var(--line); border-radius: .4rem; }
summary { cursor: pointer; } .bar { height: .35rem; background: var(--bar); border-radius: .2rem; margin-top: .3rem; min-width: 1px; }
`;

/** The page: totals, one row a kernel, sources, graph. */
export function explanationPage({ target, graph, kernels, totals, memory }: Explained): string {
  const facts: readonly (readonly [string, string])[] = [
    ['target', target],
    ['kernels', String(totals.kernels)],
    ['arithmetic', `${showCount(totals.flops)} flops`],
    ['moved', `${showBytes(totals.bytes)} (at least ${showBytes(totals.lowerBoundBytes)})`],
    ['memory', `${showBytes(memory.peak)}: ${memoryParts(memory)}`],
  ];
  const most = Math.max(1, ...kernels.map((kernel) => kernel.bytes));
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${totals.kernels} kernels for ${escape(target)}</title>
<style>${style}</style>
</head>
<body>
<h1>What this program runs</h1>
<dl>${facts.map(([name, value]) => `<dt>${name}</dt><dd>${escape(value)}</dd>`).join('')}</dl>
<h2>Kernels</h2>
<table>
<thead><tr><th class="n">#</th><th>kernel</th><th>kind</th><th>reads</th><th>writes</th><th class="n">flops</th><th class="n">bytes</th></tr></thead>
<tbody>
${kernels.map((kernel, i) => row(kernel, i, most)).join('\n')}
</tbody>
</table>
<h2>Sources</h2>
${kernels.map(source).join('\n')}
<h2>Graph</h2>
<pre>${escape(graph)}</pre>
</body>
</html>
`;
}

function memoryParts({ inputs, outputs, scratch }: Explained['memory']): string {
  return `inputs ${showBytes(inputs)}, outputs ${showBytes(outputs)}, scratch ${showBytes(scratch)}`;
}

function row(kernel: ExplainedKernel, i: number, most: number): string {
  const types = (list: readonly string[]): string =>
    list.map((type) => `<code>${escape(type)}</code>`).join('<br>');
  const share = ((100 * kernel.bytes) / most).toFixed(1);
  return (
    `<tr><td class="n">${i}</td><td><a href="#k${i}">${escape(kernel.name)}</a></td><td>${escape(kernel.kind)}</td>` +
    `<td>${types(kernel.reads)}</td><td>${types(kernel.writes)}</td><td class="n">${showCount(kernel.flops)}</td>` +
    `<td class="n">${showBytes(kernel.bytes)}<div class="bar" style="width:${share}%"></div></td></tr>`
  );
}

function source(kernel: ExplainedKernel, i: number): string {
  return (
    `<details id="k${i}"><summary><b>${escape(kernel.name)}</b> ${escape(kernel.schedule)}</summary>` +
    `<pre>${escape(kernel.source)}</pre></details>`
  );
}

function escape(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/"/g, '&quot;');
}
