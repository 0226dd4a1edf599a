// The parts of the page that are text: what a kernel computes, what it reads and writes, why it is
// a kernel of its own, its source; the table of kernels; the recorded graph.

import { showBytes, showCount } from '../table.ts';
import { hueOf, stageTitles } from './drawing.ts';
import { colouredWgsl, escapeText } from './markup.ts';
import type { HeldValue } from '../sharding/report.ts';
import {
  collectivesHead,
  digits,
  headText,
  longList,
  meetingsOf,
  micros,
  percent,
  shardingText,
  shortened,
  sourceText,
  whenText,
} from './text.ts';
import type {
  Explained,
  ExplainedAccess,
  ExplainedFusionDiagnostic,
  ExplainedKernel,
  ExplainedParallel,
} from './types.ts';

const roles = { prologue: 'before the loops', body: 'in the loops', epilogue: 'from their results' } as const;

/** Everything about one kernel. */
export function kernelSection(explained: Explained, place: number): string {
  const kernel = explained.kernels[place]!;
  const { name, kind, schedule, source } = kernel;
  const hasLoops = kernel.prologue.length + kernel.epilogue.length > 0;
  const parts = (Object.keys(roles) as (keyof typeof roles)[]).flatMap((role) => {
    const list = nodesList(explained, kernel[role]);
    if (list === '') return [];
    return [`<h4>${role}${hasLoops ? ` <small>${roles[role]}</small>` : ''}</h4>${list}`];
  });
  return `<section class="about" id="kernel-${place}" aria-labelledby="title-${place}" style="--hue:${hueOf(kind)}">
<h2 id="title-${place}"><span class="number">${place}</span> ${escapeText(name)} <small>${escapeText(kind)}</small></h2>
<p class="schedule">${escapeText(schedule)}</p>
<p class="jump"><button type="button" class="locate">show in the graph</button> <a href="#memory-${place}">memory</a> <a href="#source-${place}">source</a></p>
${facts(explained, kernel)}
<div class="halves">
<div>
<h3>Computes</h3>
${parts.join('\n')}
<h3 id="memory-${place}">Memory</h3>
${memoryTable(explained, kernel)}
<h3>Why it is a kernel of its own</h3>
${reasons(explained, place)}
</div>
<div class="code"><h3 id="source-${place}">Source <button type="button" class="copy">copy</button></h3><pre tabindex="0" aria-label="source of ${escapeText(name)}"><code>${colouredWgsl(source.trimEnd())}</code></pre></div>
</div>
</section>`;
}

function facts(explained: Explained, kernel: ExplainedKernel): string {
  const { time, timeShare, flops, bytes, boundShare, intensity, limitedBy, pipeline } = kernel;
  const twins = explained.kernels.flatMap((other, i) =>
    other !== kernel && other.pipeline === pipeline ? [kernelLink(explained, i)] : [],
  );
  const list: (readonly [string, string])[] = [
    ['time', `${micros(time)} <small>${percent(timeShare)} of all, limited by ${limitedBy}</small>`],
    ['bytes', `${showBytes(bytes)} <small>${percent(boundShare)} of the program’s lower bound</small>`],
    ['flops', `${showCount(flops)} <small>${digits(intensity)} a byte</small>`],
    ...stageFact(explained, kernel),
    ...(twins.length === 0 ? [] : [['pipeline', `shared with ${twins.join(', ')}`] as const]),
  ];
  return definitions(list);
}

/** The stages that a kernel's nodes belong to, where the program has several; its own first. */
function stageFact({ kernels, nodes }: Explained, kernel: ExplainedKernel): (readonly [string, string])[] {
  const { stage, prologue, body, epilogue } = kernel;
  if (stage === undefined || kernels.every((other) => other.stage === 'forward')) return [];
  const all = [...prologue, ...body, ...epilogue].flatMap((place) => nodes[place]!.stage ?? []);
  const others = [...new Set(all)].filter((other) => other !== stage).map((other) => stageTitles[other]);
  const also = others.length === 0 ? '' : ` <small>and part of ${others.join(' and ').toLowerCase()}</small>`;
  return [['stage', `${stageTitles[stage].toLowerCase()}${also}`]];
}

/** Names and what they stand for (markup). */
export function definitions(list: readonly (readonly [string, string])[]): string {
  return `<dl class="facts">${list.map(([head, text]) => `<div><dt>${head}</dt><dd>${text}</dd></div>`).join('')}</dl>`;
}

/** Nodes under the calls they come from; constants are left out. */
function nodesList({ nodes }: Explained, places: readonly number[]): string {
  const calls = new Map<string, string[]>();
  for (const place of places) {
    const { op, name, label, type, source } = nodes[place]!;
    if (op === 'constant') continue;
    const call = sourceText(source);
    const chip = `<li data-node="${place}" title="${escapeText(type)}">${nodeName(name)} ${escapeText(label)}</li>`;
    calls.set(call, [...(calls.get(call) ?? []), chip]);
  }
  return [...calls]
    .map(
      ([call, chips]) =>
        `<p class="call">${escapeText(call)}</p><ul class="chips">${shortened(chips, (rest) => `<li>and ${rest} more</li>`).join('')}</ul>`,
    )
    .join('');
}

/** A node's name, as a link to its line of the recorded graph. */
function nodeName(name: string): string {
  const line = /^%(\d+)$/.exec(name)?.[1];
  return line === undefined ? escapeText(name) : `<a href="#ir-${line}">%${line}</a>`;
}

function memoryTable(explained: Explained, { reads, writes }: ExplainedKernel): string {
  const row = (way: string, access: ExplainedAccess): string => {
    const { name, label, sharding } = explained.nodes[access.node]!;
    const value = `<td>${way}</td><td>${nodeName(name)} ${escapeText(label)}</td>`;
    const held = shardingText(sharding);
    const split = held === '' ? '' : ` <small>${escapeText(held)}</small>`;
    const type = `<td><code>${escapeText(access.type)}</code>${split}</td>`;
    return `<tr data-node="${access.node}">${value}<td class="n">${showBytes(access.bytes)}</td>${type}<td>${otherEnd(explained, way, access)}</td></tr>`;
  };
  const part = (way: string, list: readonly ExplainedAccess[]): string => {
    const rest = list.slice(longList).reduce((sum, { bytes }) => sum + bytes, 0);
    const rows = list.map((access) => row(way, access));
    const note = (count: number): string =>
      `<tr><td>${way}</td><td>${count} more</td><td class="n">${showBytes(rest)}</td><td></td><td></td></tr>`;
    return shortened(rows, note).join('');
  };
  return (
    '<div class="scroll"><table class="memory"><thead><tr><th></th><th>value</th><th class="n">bytes</th><th>type</th><th></th></tr></thead><tbody>' +
    `${part('reads', reads)}${part('writes', writes)}</tbody></table></div>`
  );
}

/** Where a value comes from, or who needs it. */
function otherEnd(explained: Explained, way: string, { node, role }: ExplainedAccess): string {
  if (way === 'reads') {
    if (role === 'input') return 'input';
    const from = explained.kernels.findIndex(({ writes }) => writes.some((write) => write.node === node));
    const [meeting] = meetingsOf(explained, 'writes', node);
    if (from < 0) return meeting === undefined ? '' : `from ${meeting}`;
    return `from ${kernelLink(explained, from)}`;
  }
  const readers = explained.kernels.flatMap(({ reads }, i) =>
    reads.some((read) => read.node === node) ? [kernelLink(explained, i)] : [],
  );
  const result = role === 'output' ? ['a result'] : [];
  const all = [...readers, ...meetingsOf(explained, 'reads', node)];
  return [...result, ...(all.length === 0 ? [] : [`for ${all.join(', ')}`])].join('; ');
}

/** What processes hold and send (markup). */
export function processesView(explained: Explained, parallel: ExplainedParallel): string {
  const { inputs, outputs, collectives, steps } = parallel;
  const cells = (values: readonly string[]): string =>
    `<tr>${values.map((value) => `<td>${value}</td>`).join('')}</tr>`;
  const listed = (heads: readonly string[], rows: readonly string[]): string =>
    `<div class="scroll"><table class="memory"><thead><tr>${heads.map((head) => `<th>${head}</th>`).join('')}</tr></thead><tbody>${rows.join('')}</tbody></table></div>`;
  const held = (values: readonly HeldValue[], what: string): string =>
    listed(
      [what, 'whole', 'split', 'each process'],
      values.map(({ name, whole, split, part }) => cells([name, whole, split, part].map(escapeText))),
    );
  const rows = collectives.map(({ kind, over, ranks, value, bytes, time, why }, place) => {
    const step = steps.find(({ collective }) => collective === place);
    const when = step === undefined ? '' : whenText(step, explained.kernels.length);
    const facts = [String(place), `${kind} ${value}`, `${over.join()} (${ranks} ranks)`, when];
    return cells([...facts, showBytes(Math.round(bytes)), micros(1e6 * time), why].map(escapeText));
  });
  const heads = ['', 'collective', 'over', 'when', 'sends', 'time', 'why'];
  return `<h2>${escapeText(headText(parallel))}</h2>
${held(inputs, 'argument')}
${held(outputs, 'result')}
<p>${escapeText(collectivesHead(parallel))}</p>
${collectives.length === 0 ? '' : listed(heads, rows)}`;
}

function kernelLink({ kernels }: Explained, place: number): string {
  return `<a href="#kernel-${place}" title="${escapeText(kernels[place]!.name)}">${place}</a>`;
}

function reasons(explained: Explained, place: number): string {
  const own = explained.fusionDiagnostics.filter(({ first, second }) => first === place || second === place);
  if (explained.kernels.length === 1) return '<p>It is the only one.</p>';
  if (own.length === 0) return '<p>No other kernel reads what it writes, or much of what it reads.</p>';
  return `<ul class="reasons">${own.map((pair) => reason(explained, pair, place)).join('')}</ul>`;
}

function reason(explained: Explained, pair: ExplainedFusionDiagnostic, place: number): string {
  const { relation, first, second, value, apart, kept } = pair;
  const other = first === place ? second : first;
  const { name, label } = explained.nodes[value]!;
  const link = `${kernelLink(explained, other)} ${escapeText(explained.kernels[other]!.name)}`;
  const what = `${nodeName(name)} ${escapeText(label)}`;
  const reader = first === place ? `${link} reads its ${what}` : `reads ${what} of ${link}`;
  const head = relation === 'reads' ? reader : `reads ${what}, as ${link} does`;
  const lines = [
    ...apart.map(({ text }) => `<p><b>not one kernel:</b> ${linked(explained, text)}</p>`),
    ...(kept === undefined ? [] : [`<p><b>stored:</b> ${linked(explained, kept.text)}</p>`]),
  ];
  return `<li><p class="pair">${head}</p>${lines.join('')}</li>`;
}

/** A sentence with the kernels and nodes it names as links. */
function linked(explained: Explained, text: string): string {
  return escapeText(text)
    .replace(/kernel (\d+)\b/g, (whole, place: string) =>
      explained.kernels[Number(place)] === undefined
        ? whole
        : `kernel ${kernelLink(explained, Number(place))}`,
    )
    .replace(/%\d+\b/g, nodeName);
}

/** One row a kernel; each leads to its section. */
export function kernelsTable({ kernels }: Explained): string {
  const largestShare = Math.max(...kernels.map(({ timeShare }) => timeShare));
  const head = ['', 'kernel', 'kind', 'flops', 'bytes', 'a byte', 'time', ''];
  const rows = kernels.map((kernel, i) => {
    const { name, kind, flops, bytes, intensity, time, timeShare } = kernel;
    const figures = [showCount(flops), showBytes(bytes), digits(intensity), micros(time)];
    return (
      `<tr data-kernel="${i}" style="--hue:${hueOf(kind)}"><td class="n">${i}</td><td><a href="#kernel-${i}">${escapeText(name)}</a></td><td>${escapeText(kind)}</td>` +
      `${figures.map((figure) => `<td class="n">${figure}</td>`).join('')}` +
      `<td class="share"><span class="bar" style="width:${((60 * timeShare) / largestShare).toFixed(1)}%"></span> ${percent(timeShare)}</td></tr>`
    );
  });
  return `<table class="kernels"><thead><tr>${head.map((title) => `<th>${title}</th>`).join('')}</tr></thead><tbody>${rows.join('\n')}</tbody></table>`;
}

/** The recorded graph, every line under the name of its node. */
export function recordedGraph({ graph }: Explained): string {
  const lines = graph
    .trimEnd()
    .split('\n')
    .map((line) => {
      const name = /^\s*%(\d+) =/.exec(line)?.[1];
      return name === undefined ? escapeText(line) : `<span id="ir-${name}">${escapeText(line)}</span>`;
    });
  return `<pre tabindex="0" aria-label="the recorded graph">${lines.join('\n')}</pre>`;
}
