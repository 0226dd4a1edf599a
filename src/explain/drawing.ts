// The drawings as SVG: kernels as cards or as boxes of nodes, values in memory as edges as thick as
// they are large. What a part stands for is in data attributes, for the page's script; what it says
// when pointed at, in `data-tip`.

import { showBytes } from '../table.ts';
import { drawKernels, drawNodes, headHeight, typeText } from './layout.ts';
import type { Drawing, PlacedEdge, PlacedGroup, PlacedKernel, PlacedNode, Point } from './rows.ts';
import { escapeText } from './markup.ts';
import { micros, percent, shardingText, sourceText } from './text.ts';
import type { Explained, ExplainedKernel } from './types.ts';

/** Hue of a kind of kernel; kinds without one get theirs from their name. */
const hues: Readonly<Record<string, number>> = {
  map: 38,
  row: 150,
  dot: 214,
  conv: 248,
  attention: 12,
  scan: 285,
  scatter: 345,
  sort: 186,
  ranks: 172,
  permuteScatter: 200,
};

export function hueOf(kind: string): number {
  let hash = 7;
  for (const character of kind) hash = (hash * 31 + character.charCodeAt(0)) % 360;
  return hues[kind] ?? hash;
}

/** Kernels as cards. */
export function cardsSvg(explained: Explained): string {
  return svg(
    'cards',
    'Kernels, and the values that pass between them',
    drawKernels(explained),
    explained,
    (box) => {
      const kernel = explained.kernels[box.kernel]!;
      const calls = callsOf(explained, kernel);
      const bar = Math.max(2, kernel.timeShare * (box.width - 20));
      return [
        text(box.x + 10, box.y + 20, clip(`${box.kernel}  ${kernel.name}`, 28), 'head'),
        text(box.x + 10, box.y + 33, clip(`${box.kernel} ${kernel.kind}`, 11), 'large'),
        text(box.x + 10, box.y + 65, micros(kernel.time), 'large small'),
        text(box.x + 10, box.y + 38, clip(calls, 31), 'calls'),
        text(box.x + 10, box.y + 56, `${micros(kernel.time)}, ${percent(kernel.timeShare)}`, 'figures'),
        text(box.x + box.width - 10, box.y + 56, showBytes(kernel.bytes), 'figures end'),
        `<rect class="rail" x="${round(box.x + 10)}" y="${round(box.y + 63)}" width="${box.width - 20}" height="4" rx="2"/>`,
        `<rect class="bar" x="${round(box.x + 10)}" y="${round(box.y + 63)}" width="${round(bar)}" height="4" rx="2"/>`,
      ];
    },
  );
}

/** Kernels as boxes around what they compute. */
export function nodesSvg(explained: Explained): string {
  return svg('nodes', 'The nodes of every kernel', drawNodes(explained), explained, (box) => {
    const kernel = explained.kernels[box.kernel]!;
    return [
      text(box.x + 12, box.y + 20, `${box.kernel}  ${kernel.name}`, 'head'),
      text(box.x + box.width - 12, box.y + 20, percent(kernel.timeShare), 'figures end'),
      `<line class="rule" x1="${round(box.x)}" x2="${round(box.x + box.width)}" y1="${round(box.y + headHeight - 2)}" y2="${round(box.y + headHeight - 2)}"/>`,
      ...box.edges.map((points) => `<path class="inner" d="${curve(points)}"/>`),
      ...box.nodes.map((node) => nodeSvg(explained, node)),
      ...(box.omitted === 0
        ? []
        : [
            text(
              box.x + 12,
              box.y + box.height - 12,
              `and ${box.omitted} more nodes, of other results`,
              'figures',
            ),
          ]),
    ];
  });
}

function svg(
  name: string,
  label: string,
  drawing: Drawing,
  explained: Explained,
  content: (box: PlacedKernel) => readonly string[],
): string {
  const [width, height] = [Math.ceil(drawing.width), Math.ceil(drawing.height)];
  const largestBytes = Math.max(
    1,
    ...drawing.edges.flatMap(({ values }) => values.map((v) => explained.nodes[v]!.bytes)),
  );
  const kernels = drawing.kernels.map((box) => {
    const { kind, time, name: title } = explained.kernels[box.kernel]!;
    const spoken = `kernel ${box.kernel}, ${title}, ${kind}, ${micros(time)}`;
    return [
      `<g class="kernel" role="button" tabindex="-1" data-kernel="${box.kernel}" aria-label="${escapeText(spoken)}" style="--hue:${hueOf(kind)}">`,
      `<rect class="box" x="${round(box.x)}" y="${round(box.y)}" width="${round(box.width)}" height="${round(box.height)}" rx="8"/>`,
      ...content(box),
      '</g>',
    ].join('');
  });
  return [
    `<svg id="${name}" class="drawing" viewBox="0 0 ${width} ${height}" data-width="${width}" data-height="${height}"${drawing.groups === undefined ? '' : ' data-rows=""'} role="group" aria-label="${label}">`,
    `<defs><marker id="arrow-${name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0.5 L8 4 L0 7.5 z"/></marker></defs>`,
    '<g class="stage">',
    ...(drawing.groups ?? []).map((group) => groupSvg(explained, group)),
    ...(name === 'cards' ? [] : kernels),
    ...drawing.edges.map((edge) => edgeSvg(explained, edge, name, largestBytes)),
    ...(name === 'cards' ? kernels : []),
    '</g></svg>',
  ].join('\n');
}

/** The names of stages. */
export const stageTitles = { forward: 'Forward', backward: 'Backward', update: 'Update' } as const;

/** A stage: its field, and in its first column its name and what its kernels come to. */
function groupSvg({ kernels }: Explained, group: PlacedGroup): string {
  const { stage, x, y, width, height, size, kernels: places } = group;
  const sum = (of: (kernel: ExplainedKernel) => number): number =>
    places.reduce((total, place) => total + of(kernels[place]!), 0);
  const told = [
    `${places.length} ${places.length === 1 ? 'kernel' : 'kernels'}`,
    `${micros(sum(({ time }) => time))}, ${percent(sum(({ timeShare }) => timeShare))}`,
    showBytes(sum(({ bytes }) => bytes)),
  ];
  const line = (content: string, place: number, part: number): string =>
    `<text class="${place === 0 ? 'title' : 'sums'}" x="${round(x + size * 0.4)}" y="${round(y + size * (1.2 + place))}" style="font-size:${round(size * part)}px">${escapeText(content)}</text>`;
  return (
    `<g class="group" data-stage="${stage}"><rect class="field" x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" rx="10"/>` +
    `${line(stageTitles[stage], 0, 1)}${told.map((content, i) => line(content, i + 1, 0.72)).join('')}</g>`
  );
}

function edgeSvg(
  explained: Explained,
  { from, to, values, points, across }: PlacedEdge,
  name: string,
  largestBytes: number,
): string {
  const { nodes, kernels } = explained;
  const bytes = values.reduce((sum, value) => sum + nodes[value]!.bytes, 0);
  const width = 1 + 2.2 * Math.sqrt(Math.min(1, bytes / largestBytes));
  const lines = values.map((value) => {
    const { name: called, label, type, bytes: own } = nodes[value]!;
    return `${called} ${label}  ${type}  ${showBytes(own)}`;
  });
  const tip = [...lines, `from ${kernels[from]!.name} to ${kernels[to]!.name}`].join('\n');
  const path = curve(points);
  return (
    `<g class="edge${across === true ? ' across' : ''}" data-from="${from}" data-to="${to}" data-values="${values.join(' ')}" data-tip="${escapeText(tip)}">` +
    `<path class="grip" d="${path}"/><path class="line" d="${path}" stroke-width="${round(width)}" marker-end="url(#arrow-${name})"/></g>`
  );
}

function nodeSvg(explained: Explained, placed: PlacedNode): string {
  const node = explained.nodes[placed.node]!;
  const { x, y, width, height, role, written } = placed;
  const source = sourceText(node.source);
  const part = role === 'read' ? 'read from memory' : role === 'scalar' ? 'a number given at each run' : role;
  const tip = [`${node.name} ${node.label}`, `${node.type}  ${showBytes(node.bytes)}`, part];
  const held = shardingText(node.sharding);
  if (held !== '') tip.push(held);
  if (written) tip.push('written to memory');
  if (source !== '') tip.push(source);
  const radius = role === 'read' || role === 'scalar' ? height / 2 : 5;
  const classes = ['node', role, node.op, ...(written ? ['written'] : [])].join(' ');
  return (
    `<g class="${classes}" data-node="${placed.node}" data-tip="${escapeText(tip.join('\n'))}">` +
    `<rect x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${height}" rx="${radius}"/>` +
    `${text(x + width / 2, y + 14, placed.text, 'op')}${text(x + width / 2, y + 27, typeText(node, written || role === 'read'), 'type')}</g>`
  );
}

/** The user's operations that a kernel computes, most nodes first. */
export function callsOf({ nodes }: Explained, kernel: ExplainedKernel): string {
  const counts = new Map<string, number>();
  for (const place of [...kernel.body, ...kernel.prologue, ...kernel.epilogue]) {
    const { source, op } = nodes[place]!;
    const name = source?.module?.replace(/\.\w+$/, '') ?? source?.op;
    if (name === undefined || op === 'constant') continue;
    const call = source?.gradient === true ? `∇${name}` : name;
    counts.set(call, (counts.get(call) ?? 0) + 1);
  }
  return [...counts]
    .sort((a, b) => b[1] - a[1])
    .map(([name]) => name)
    .join(', ');
}

/** Radius of bends. */
const bend = 22;

/**
 * Straight lines between the points, with rounded corners, so that they stay clear of the boxes.
 */
function curve(points: readonly Point[]): string {
  const [first, ...rest] = points;
  const last = rest.at(-1);
  if (first === undefined || last === undefined) return '';
  const at = ({ x, y }: Point): string => `${round(x)} ${round(y)}`;
  const towards = (from: Point, to: Point): Point => {
    const distance = Math.hypot(to.x - from.x, to.y - from.y);
    const part = distance === 0 ? 0 : Math.min(bend, distance / 2) / distance;
    return { x: from.x + (to.x - from.x) * part, y: from.y + (to.y - from.y) * part };
  };
  const corners = rest.slice(0, -1).map((corner, i) => {
    const [before, after] = [points[i]!, rest[i + 1]!];
    return `L${at(towards(corner, before))} Q${at(corner)} ${at(towards(corner, after))}`;
  });
  return [`M${at(first)}`, ...corners, `L${at(last)}`].join(' ');
}

function text(x: number, y: number, content: string, kind: string): string {
  return `<text class="${kind}" x="${round(x)}" y="${round(y)}">${escapeText(content)}</text>`;
}

function clip(content: string, length: number): string {
  return content.length <= length ? content : `${content.slice(0, length - 1)}…`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
