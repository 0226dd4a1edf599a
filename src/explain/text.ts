// An explanation as text for terminals: the recorded graph, a table of kernels, each kernel's
// parts, why kernels are separate, and the totals. Lines keep to the width given; a table that is
// wider loses its least important columns first.

import { cTarget } from '../schedule/target.ts';
import { showBytes, showCount, table } from '../table.ts';
import type { HeldValue, Sharding } from '../sharding/report.ts';
import type {
  Explained,
  ExplainedAccess,
  ExplainedCollective,
  ExplainedKernel,
  ExplainedFusionDiagnostic,
  ExplainedParallel,
  ExplainedSource,
  Recomputation,
} from './types.ts';

export interface TextOptions {
  /** Width of lines; 100 by default. */
  readonly columns?: number;
  /** The recorded graph, before the table; false by default. */
  readonly graph?: boolean;
  /** For each kernel what it computes, reads and writes; false by default. */
  readonly details?: boolean;
  /** Why kernels are separate; true by default. */
  readonly reasons?: boolean;
  /** The generated sources; false by default. */
  readonly sources?: boolean;
}

/** The whole explanation. */
export function explanationText(explained: Explained, options: TextOptions = {}): string {
  const width = Math.max(40, options.columns ?? 100);
  const { kernels } = explained;
  const parts: string[] = [];
  if (options.graph === true) parts.push(explained.graph.trimEnd());
  if (kernels.length > 0) parts.push(kernelTable(kernels, width));
  if (options.details === true) for (const i of kernels.keys()) parts.push(kernelText(explained, i, width));
  if (options.reasons !== false && explained.fusionDiagnostics.length > 0)
    parts.push(fusionDiagnosticsText(explained, explained.fusionDiagnostics, width));
  if (options.sources === true) for (const { source } of kernels) parts.push(source.trimEnd());
  if (explained.parallel !== undefined) parts.push(parallelText(explained, explained.parallel, width));
  parts.push(totalsText(explained));
  if (explained.sizes.length > 0) parts.push(sizesText(explained.sizes));
  return parts.join('\n\n');
}

/** `sizes: n ≤ 16 (compiled), n ≤ 128, n ≤ 1024`. */
function sizesText(sizes: Explained['sizes']): string {
  const shown = sizes.map(({ upTo, compiled }) => {
    const most = Object.entries(upTo).map(([name, size]) => `${name} ≤ ${size}`);
    return `${most.join(' and ')}${compiled ? ' (compiled)' : ''}`;
  });
  return `sizes: ${shown.join(', ')}`;
}

/**
 * One kernel with everything about it: its parts, why it is not one with its neighbours, its
 * source.
 */
export function kernelPage(explained: Explained, place: number, columns: number = 100): string {
  const width = Math.max(40, columns);
  const own = explained.fusionDiagnostics.filter(({ first, second }) => first === place || second === place);
  const reasons = own.length === 0 ? [] : [fusionDiagnosticsText(explained, own, width)];
  const source = explained.kernels[place]!.source.trimEnd();
  return [kernelText(explained, place, width), ...reasons, source].join('\n\n');
}

interface Column {
  readonly head: string;
  readonly cell: (kernel: ExplainedKernel, place: number) => string;
  readonly right?: true;
  /** Columns of higher numbers go first where there is no room. */
  readonly drop: number;
}

const columns: readonly Column[] = [
  { head: '#', cell: (_, place) => String(place), right: true, drop: 0 },
  { head: 'kernel', cell: ({ name }) => name, drop: 0 },
  { head: 'kind', cell: ({ kind }) => kind, drop: 4 },
  { head: 'nodes', cell: (kernel) => String(nodesOf(kernel).length), right: true, drop: 5 },
  { head: 'flops', cell: ({ flops }) => showCount(flops), right: true, drop: 2 },
  { head: 'bytes', cell: ({ bytes }) => showBytes(bytes), right: true, drop: 1 },
  { head: '/bound', cell: ({ boundShare }) => percent(boundShare), right: true, drop: 3 },
  { head: 'flops/B', cell: ({ intensity }) => digits(intensity), right: true, drop: 6 },
  { head: 'time', cell: ({ time }) => micros(time), right: true, drop: 0 },
  { head: 'share', cell: ({ timeShare }) => percent(timeShare), right: true, drop: 0 },
  { head: 'limit', cell: ({ limitedBy }) => limitedBy, drop: 7 },
];

function kernelTable(kernels: readonly ExplainedKernel[], width: number): string {
  for (let kept = columns; ;) {
    const right = [...kept.keys()].filter((i) => kept[i]!.right === true);
    const rows = kernels.map((kernel, place) => kept.map(({ cell }) => cell(kernel, place)));
    const text = table(
      kept.map(({ head }) => head),
      rows,
      right,
    );
    const dropFirst = Math.max(...kept.map(({ drop }) => drop));
    if (dropFirst === 0 || text.split('\n')[1]!.length <= width) return text;
    kept = kept.filter(({ drop }) => drop < dropFirst);
  }
}

function kernelText(explained: Explained, place: number, width: number): string {
  const kernel = explained.kernels[place]!;
  const { time, timeShare, flops, bytes, intensity, boundShare, limitedBy, pipeline } = kernel;
  const twins = explained.kernels.filter((other) => other.pipeline === pipeline).length - 1;
  const counts = [
    `${showCount(flops)} flops`,
    `${showBytes(bytes)} moved (${percent(boundShare)} of the program's lower bound)`,
    `${digits(intensity)} flops per byte`,
    `${micros(time)} modelled (${percent(timeShare)}), most of it ${limitedBy}`,
    ...(twins > 0 ? [`pipeline shared with ${twins} other ${twins === 1 ? 'kernel' : 'kernels'}`] : []),
  ];
  const rows: (readonly [string, string])[] = [
    ['schedule', kernel.schedule],
    ['counts', counts.join(', ')],
    ...(['prologue', 'body', 'epilogue'] as const).flatMap((role) =>
      nodesText(explained, kernel[role]).map((text, i) => [i === 0 ? role : '', text] as const),
    ),
    ...(['reads', 'writes'] as const).flatMap((way) =>
      accessesText(explained, way, kernel[way]).map((text, i) => [i === 0 ? way : '', text] as const),
    ),
  ];
  const lines = rows.map(([head, text]) => `  ${head.padEnd(10)}${wrap(text, width, 12)}`);
  return [`${place}  ${kernel.name}`, ...lines].join('\n');
}

/** One line per call of the user, with the nodes that come from it. */
function nodesText({ nodes }: Explained, places: readonly number[]): string[] {
  const calls = new Map<string, string[]>();
  for (const place of places) {
    const node = nodes[place]!;
    if (node.op === 'constant') continue;
    const call = sourceText(node.source);
    calls.set(call, [...(calls.get(call) ?? []), joined(`${node.name} ${node.label}`)]);
  }
  return [...calls].map(([call, list]) => {
    const text = shortened(list, (rest) => joined(`and ${rest} more`)).join(', ');
    return call === '' ? text : `${call}: ${text}`;
  });
}

/** Most items of a list that is read: kernels over many tensors have thousands. */
export const longList = 40;

/** The first items of a list, and a note of how many more there are. */
export function shortened(items: readonly string[], note: (rest: number) => string): readonly string[] {
  if (items.length <= longList) return items;
  return [...items.slice(0, longList), note(items.length - longList)];
}

/** `softmax (model.ts:3:20)`, `gradient of softmax (…)`. */
export function sourceText(source: ExplainedSource | undefined): string {
  if (source === undefined) return '';
  const { op, module, at, gradient } = source;
  const call = [module, op].filter((part) => part !== undefined).join(' ');
  const place = at === undefined ? '' : ` (${at})`;
  return `${gradient ? 'gradient of ' : ''}${call === '' ? 'code' : call}${place}`;
}

/** Keeps words on one line; `wrap` sets spaces again. */
function joined(words: string): string {
  return words.replaceAll(' ', '\u00a0');
}

function accessesText(
  explained: Explained,
  way: 'reads' | 'writes',
  list: readonly ExplainedAccess[],
): readonly string[] {
  const rest = list.slice(longList).reduce((sum, { bytes }) => sum + bytes, 0);
  const lines = list.map((access) => accessText(explained, way, access));
  return shortened(lines, (count) => `${count} more  ${showBytes(rest)}`);
}

function accessText(explained: Explained, way: 'reads' | 'writes', access: ExplainedAccess): string {
  const { node, type, bytes, role } = access;
  const { name, label } = explained.nodes[node]!;
  const writer = explained.kernels.findIndex(({ writes }) => writes.some((write) => write.node === node));
  const [meeting] = meetingsOf(explained, 'writes', node);
  const maker = writer >= 0 ? `kernel ${writer}` : meeting;
  const from = role === 'input' ? 'input' : maker === undefined ? '' : `from ${maker}`;
  const held = shardingText(explained.nodes[node]!.sharding);
  const end = way === 'reads' ? from : uses(explained, node, role);
  const parts = [joined(`${name} ${label}`), type, ...(held === '' ? [] : [held]), showBytes(bytes), end];
  return parts.join('  ');
}

/** Who needs what a kernel writes. */
function uses(explained: Explained, node: number, role: ExplainedAccess['role']): string {
  const { kernels } = explained;
  const readers = [...kernels.keys()].filter((i) => kernels[i]!.reads.some((read) => read.node === node));
  const result = role === 'output' ? ['a result'] : [];
  const many = readers.length === 1 ? 'kernel' : 'kernels';
  const own = readers.length === 0 ? [] : [`${many} ${readers.join(', ')}`];
  const all = [...own, ...meetingsOf(explained, 'reads', node)];
  return [...result, ...(all.length === 0 ? [] : [`for ${all.join(', ')}`])].join('; ');
}

function fusionDiagnosticsText(
  explained: Explained,
  list: readonly ExplainedFusionDiagnostic[],
  width: number,
): string {
  const { kernels, nodes } = explained;
  const blocks = list.map(({ relation, first, second, value, apart, kept }) => {
    const { name, label, type } = nodes[value]!;
    const [a, b] = [kernels[first]!.name, kernels[second]!.name];
    const head =
      relation === 'reads'
        ? `${a} → ${b}: ${name} ${label} ${type}`
        : `${a}, ${b}: both read ${name} ${label} ${type}`;
    const why = apart.map(({ text }) => `not one kernel: ${text}`);
    const stored = kept === undefined ? [] : [`stored: ${kept.text}`];
    return [head, ...[...why, ...stored].map((line) => `  ${wrap(line, width, 4)}`)].join('\n');
  });
  return ['why kernels are separate', ...blocks].join('\n');
}

/** How many kinds of values are named. */
const mostKinds = 6;

function recomputedText({ budget, plainPeak, savedBytes, addedFlops, values }: Recomputation): string {
  const head = `of ${showBytes(budget)} allowed; ${showBytes(plainPeak)} with everything kept`;
  if (values.length === 0) return `${head}: nothing is computed again`;
  const kinds = new Map<string, number>();
  for (const { op, type } of values) kinds.set(`${op} ${type}`, (kinds.get(`${op} ${type}`) ?? 0) + 1);
  const named = [...kinds]
    .slice(0, mostKinds)
    .map(([kind, count]) => (count === 1 ? kind : `${count} × ${kind}`));
  const rest = kinds.size > mostKinds ? ', …' : '';
  const flops =
    addedFlops < 0 ? `${showCount(-addedFlops)} flops fewer` : `${showCount(addedFlops)} flops more`;
  return `${head}: ${values.length} values computed again save ${showBytes(savedBytes)} for ${flops} (${named.join(', ')}${rest})`;
}

function totalsText({ totals, memory, target, recomputed }: Explained): string {
  const { kernels, pipelines, dispatches, flops, bytes, lowerBoundBytes, time, lowerBoundTime } = totals;
  const many = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`;
  const ratio = lowerBoundBytes === 0 ? '' : ` (${digits(bytes / lowerBoundBytes)}×)`;
  return [
    `${many(kernels, 'kernel')} for ${target}: ${many(pipelines, 'pipeline')}, ${many(dispatches, 'dispatch').replace(/hs$/, 'hes')}`,
    ...(target === cTarget.name
      ? [
          'a program runs as WebAssembly until it has run three times (once where a run takes long) and these kernels are compiled',
        ]
      : []),
    `${showCount(flops)} flops, ${showBytes(bytes)} moved, at least ${showBytes(lowerBoundBytes)}${ratio}; ` +
      `${micros(time)} modelled, at least ${micros(lowerBoundTime)}`,
    `memory ${showBytes(memory.peak)}: inputs ${showBytes(memory.inputs)}, outputs ${showBytes(memory.outputs)}, ` +
      `scratch ${showBytes(memory.scratch)}` +
      (memory.peak === memory.lowerBound ? '' : `; at least ${showBytes(memory.lowerBound)}`),
    ...(recomputed === undefined ? [] : [recomputedText(recomputed)]),
  ].join('\n');
}

/** The mesh, the arguments and results, and the collectives. */
export function parallelText(explained: Explained, parallel: ExplainedParallel, width: number): string {
  const { inputs, outputs, collectives } = parallel;
  const blocks = [
    headText(parallel),
    heldTable(inputs, 'argument'),
    heldTable(outputs, 'result'),
    [
      collectivesHead(parallel),
      ...shortened(
        collectives.map((_, place) => collectiveText(explained, parallel, place, width)),
        (rest) => `and ${rest} more`,
      ),
    ].join('\n'),
  ];
  return blocks.filter((block) => block !== '').join('\n\n');
}

/** `mesh data=2 model=2: 4 processes, this is rank 0`. */
export function headText({ mesh, rank }: ExplainedParallel): string {
  const axes = mesh.split(',');
  const processes = axes.reduce((product, axis) => product * Number(axis.split('=')[1]), 1);
  return `mesh ${axes.join(' ')}: ${processes === 1 ? '1 process' : `${processes} processes`}, this is rank ${rank}`;
}

function heldTable(values: readonly HeldValue[], what: string): string {
  if (values.length === 0) return '';
  const rows = values.map(({ name, whole, split, part }) => `${name}\n${whole}\n${split}\n${part}`);
  const shown = shortened(rows, (rest) => `and ${rest} more\n\n\n`).map((row) => row.split('\n'));
  return table([what, 'whole', 'split', 'each process'], shown, []);
}

/** `2 collectives: each process sends 1.2 kB in 12.3 µs, modelled on H100 GPUs; allReduce data 1 kB`. */
export function collectivesHead({ collectives, bytes, time, bytesByCollective }: ExplainedParallel): string {
  if (collectives.length === 0) return 'no collectives: processes send each other nothing';
  const count = collectives.length === 1 ? '1 collective' : `${collectives.length} collectives`;
  const kinds = Object.entries(bytesByCollective).map(
    ([kind, sent]) => `${kind} ${showBytes(Math.round(sent))}`,
  );
  return `${count}: each process sends ${showBytes(Math.round(bytes))} in ${micros(1e6 * time)}, modelled on H100 GPUs: ${kinds.join(', ')}`;
}

function collectiveText(
  { kernels }: Explained,
  { collectives, steps }: ExplainedParallel,
  place: number,
  width: number,
): string {
  const { kind, over, ranks, value, bytes, time, why } = collectives[place]!;
  const step = steps.find(({ collective }) => collective === place);
  const facts = [
    `${kind} ${value} over ${over.join()} (${ranks} ranks)`,
    ...(step === undefined ? [] : [whenText(step, kernels.length)]),
    `sends ${showBytes(Math.round(bytes))}`,
    micros(1e6 * time),
  ];
  return [`${place}  ${wrap(facts.join(', '), width, 4)}`, `   ${wrap(why, width, 3)}`].join('\n');
}

/** `after kernel 3`. */
export function whenText({ after }: ExplainedCollective, kernels: number): string {
  if (after === 0) return 'before all kernels';
  return after === kernels ? 'after all kernels' : `after kernel ${after - 1}`;
}

/** `[data, null] of f32[64,32], a part of the sum over model`; empty where nothing is known. */
export function shardingText(sharding: Sharding | undefined): string {
  if (sharding === undefined) return '';
  const { split, whole, partial } = sharding;
  const isWhole = !/[^[\], ]/.test(split.replaceAll('null', ''));
  const open = partial === undefined ? '' : `, a part of the ${partial}`;
  return `${split}${isWhole ? '' : ` of ${whole}`}${open}`;
}

/** The collectives that read or write a value, `allReduce 0` each. */
export function meetingsOf(
  { parallel }: Explained,
  way: 'reads' | 'writes',
  node: number,
): readonly string[] {
  const steps = parallel?.steps.filter((step) => step[way].node === node) ?? [];
  return steps.map(({ kind, collective }) => (collective === undefined ? kind : `${kind} ${collective}`));
}

function nodesOf({ prologue, body, epilogue }: ExplainedKernel): readonly number[] {
  return [...prologue, ...body, ...epilogue];
}

/** `3.2 %`, `87 %`. */
export function percent(share: number): string {
  const value = 100 * share;
  return `${value.toFixed(value >= 9.95 ? 0 : 1)} %`;
}

/** Three digits. */
export function digits(value: number): string {
  if (value === 0) return '0';
  return value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

/** Breaks a line between words; what follows the first line is indented. */
export function wrap(text: string, width: number, indent: number): string {
  const room = Math.max(20, width - indent);
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > room) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line].join(`\n${' '.repeat(indent)}`).replaceAll('\u00a0', ' ');
}

/** `12.3 µs`. */
export function micros(time: number): string {
  if (time >= 9950) return `${(time / 1000).toFixed(1)} ms`;
  return `${time.toFixed(time < 9.95 ? 2 : time < 99.5 ? 1 : 0)} µs`;
}
