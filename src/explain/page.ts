// An explanation as one self-contained page: the drawn graph, and for the kernel chosen what it
// computes, reads and writes, why it is a kernel of its own, and its source. Nothing is loaded from
// anywhere.

import * as arg from '../ir/arguments.ts';
import { showBytes, showCount } from '../table.ts';
import { definitions, kernelSection, kernelsTable, processesView, recordedGraph } from './details.ts';
import { cardsSvg, hueOf, nodesSvg } from './drawing.ts';
import { escapeText } from './markup.ts';
import { pageScript } from './page-script.ts';
import { pageStyle } from './page-style.ts';
import { micros } from './text.ts';
import { digits } from './text.ts';
import type { Explained } from './types.ts';

export interface PageOptions {
  /** What is explained, for the heading; the target by default. */
  readonly title?: string;
}

/** Most kernels whose nodes are drawn first; with more, they start as cards. */
const fewKernels = 4;
/** From more on, the drawing takes more of the page than what is told of a kernel. */
const manyKernels = 20;

const takesPage = arg.takes<typeof explanationPage>(
  [
    'what is explained',
    arg.kind('an explanation', (value) => typeof value === 'object' && value !== null && 'kernels' in value),
  ],
  ['options', arg.options<PageOptions>({ title: arg.text })],
);

const searchField =
  '<span class="search" role="search"><input type="search" id="search" placeholder="search  /" aria-label="search kernels"><output id="hits" for="search"></output></span>';

/** What the keys do. */
const keys: readonly (readonly [readonly string[], string])[] = [
  [['←', '→'], 'the kernel before, the next one'],
  [['↑', '↓'], 'the row above, below; the kernel before and the next one where there are no rows'],
  [['/'], 'search names, operations, values and sources'],
  [['Enter'], 'the next one found (Shift: the one before)'],
  [['f', '0'], 'fit everything into view'],
  [['+', '−'], 'larger, smaller'],
  [['?'], 'these keys'],
  [['Esc'], 'close this, end the search'],
];
const help = `<div id="help" role="dialog" aria-labelledby="help-title" hidden><h2 id="help-title">Keys</h2><dl>${keys
  .map(([list, text]) => `<dt>${list.map((key) => `<kbd>${key}</kbd>`).join(' ')}</dt><dd>${text}</dd>`)
  .join('')}</dl></div>`;

/** The page as HTML text. */
export function explanationPage(explained: Explained, options: PageOptions = {}): string {
  takesPage('explanationPage', explained, options);
  const { kernels, target, parallel } = explained;
  const title = options.title ?? `${kernels.length} kernels for ${target}`;
  const start = kernels.reduce((best, { time }, i) => (time > kernels[best]!.time ? i : best), 0);
  const view = kernels.length === 0 ? 'graph' : kernels.length <= fewKernels ? 'nodes' : 'cards';
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="sinter explain">
<title>${escapeText(title)}</title>
<style>${pageStyle}</style>
</head>
<body data-view="${view}" data-start="${start}"${kernels.length > manyKernels ? ' data-many=""' : ''}>
<header><h1>${escapeText(title)}</h1>${summary(explained)}</header>
<main>
<div class="views">
<div class="bar-of-views"><span role="tablist" aria-label="what is shown">${[
    ['cards', 'Kernels'],
    ['nodes', 'Nodes'],
    ['table', 'Table'],
    ['graph', 'Recorded graph'],
    ...(parallel === undefined ? [] : [['processes', 'Processes'] as const]),
  ]
    .map(
      ([name, text]) =>
        `<button type="button" role="tab" id="tab-${name}" data-view="${name}" aria-controls="view-${name}" aria-selected="false">${text}</button>`,
    )
    .join(
      ' ',
    )}</span><span class="gap"></span>${kernels.length === 0 ? '' : searchField}<span class="zoom" role="group" aria-label="zoom"><button type="button" data-zoom="0.8" aria-label="smaller">−</button> <button type="button" data-zoom="1.25" aria-label="larger">+</button> <button type="button" data-zoom="fit">fit</button></span><button type="button" id="ask" aria-label="keys" aria-expanded="false" aria-controls="help">?</button></div>
<div class="view" role="tabpanel" id="view-cards" aria-labelledby="tab-cards">${cardsSvg(explained)}</div>
<div class="view" role="tabpanel" id="view-nodes" aria-labelledby="tab-nodes">${nodesSvg(explained)}</div>
<div class="view table" role="tabpanel" id="view-table" aria-labelledby="tab-table">${kernelsTable(explained)}</div>
<div class="view graph" role="tabpanel" id="view-graph" aria-labelledby="tab-graph">${recordedGraph(explained)}</div>
${parallel === undefined ? '' : `<div class="view table" role="tabpanel" id="view-processes" aria-labelledby="tab-processes">${processesView(explained, parallel)}</div>`}
${legend(explained)}
</div>
<div class="panel">
${kernels.length === 0 ? '<p>Nothing is computed: there are no kernels.</p>' : kernels.map((_, i) => kernelSection(explained, i)).join('\n')}
</div>
</main>
${help}
<div id="tip" hidden></div>
<div id="spoken" class="spoken" role="status"></div>
<script>${pageScript}</script>
</body>
</html>
`;
}

function summary({ totals, memory, target, parallel }: Explained): string {
  const { kernels, pipelines, dispatches, flops, bytes, lowerBoundBytes, time, lowerBoundTime } = totals;
  const ratio = lowerBoundBytes === 0 ? '' : `, ${digits(bytes / lowerBoundBytes)}× the lower bound`;
  return definitions([
    [
      'kernels',
      `${kernels} <small>${counted(pipelines, 'pipeline', 'pipelines')}, ${counted(dispatches, 'dispatch', 'dispatches')}, ${escapeText(target)}</small>`,
    ],
    ['modelled', `${micros(time)} <small>at least ${micros(lowerBoundTime)}</small>`],
    ['moved', `${showBytes(bytes)} <small>at least ${showBytes(lowerBoundBytes)}${ratio}</small>`],
    ['flops', showCount(flops)],
    ...(parallel === undefined
      ? []
      : [
          [
            'sent',
            `${showBytes(Math.round(parallel.bytes))} <small>by each process of ${escapeText(parallel.mesh)}</small>`,
          ] as const,
        ]),
    [
      'memory',
      `${showBytes(memory.peak)} <small>${showBytes(memory.scratch)} of it intermediate values</small>`,
    ],
  ]);
}

function counted(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`;
}

function legend({ kernels }: Explained): string {
  const kinds = [...new Set(kernels.map(({ kind }) => kind))];
  const swatches = kinds.map(
    (kind) => `<span style="--hue:${hueOf(kind)}"><span class="swatch"></span>${escapeText(kind)}</span>`,
  );
  const words = [
    'rounded: read from memory',
    'bold frame: written',
    'edges: values in memory, thicker where larger',
    '∇: gradient of',
    'keys: ?',
  ];
  return `<div class="legend">${[...swatches, ...words.map((word) => `<span>${word}</span>`)].join('')}</div>`;
}
