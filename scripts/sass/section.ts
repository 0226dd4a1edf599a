// The table of docs/kernels.md of what kernels could reach, from the committed figures (`npm run docs`).

import { committedCode, committedLoops, type CodeRow } from './figures.ts';
import { counted } from './programs.ts';

/** The programs of the table. Of several kernels, the one that takes longest stands for the program. */
const shown =
  'gelu addHalf softmax softmaxWide layerNormWide matmulHalf matmulLarge convHalf attentionHalf attentionGradHalf ' +
  'decodeAttention gemv gemvHalf gemvQ8 adam100';

const timeOf = ({ issue, memory, times }: CodeRow): number => times * Math.max(issue, memory);

const slowest = (rows: readonly CodeRow[]): CodeRow => rows.reduce((a, b) => (timeOf(b) > timeOf(a) ? b : a));

const percent = (share: number): string => `${(100 * share).toFixed(0)} %`;

/** The lines of the table. */
export function modelTable(): string {
  const { rows } = committedCode();
  const { wgsl } = committedLoops();
  const lines = shown.split(' ').map((name) => {
    const [h100, a100] = [slowest(rows.sm_90a[name]!), slowest(rows.sm_80[name]!)];
    const loops = wgsl[name]!.toSorted((a, b) => worth(b.model) - worth(a.model));
    return [
      `\`${name}\``,
      counted.find((one) => one.name === name)!.about,
      String(h100.registers),
      `${h100.held} × ${h100.threads}`,
      String(h100.hottest.instructions),
      `${h100.inFlight.bytes} B`,
      String(h100.divisions),
      percent(h100.share),
      h100.bound,
      percent(a100.share),
      a100.bound,
      percent(loops[0]!.model!.share),
    ];
  });
  const head = [
    'program',
    'what it computes',
    'registers',
    'held',
    'hottest loop',
    'in flight',
    'divisions',
    'H100',
    'limited by',
    'A100',
    'limited by',
    'WGSL',
  ];
  const isText = (column: number): boolean => [0, 1, 8, 10].includes(column);
  const widths = head.map((_, column) => Math.max(...[head, ...lines].map((row) => row[column]!.length)));
  const line = (row: readonly string[]): string =>
    `| ${row.map((cell, i) => (isText(i) ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!))).join(' | ')} |`;
  const rule = widths.map((width, i) => (isText(i) ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`));
  return [line(head), `| ${rule.join(' | ')} |`, ...lines.map(line)].join('\n');
}

const worth = (model: { readonly arithmetic: number; readonly memory: number } | undefined): number =>
  model === undefined ? 0 : Math.max(model.arithmetic, model.memory);
