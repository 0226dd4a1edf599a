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

/** The table, by columns. */
export function modelColumns(): {
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
  readonly isText: (column: number) => boolean;
} {
  const { rows: code } = committedCode();
  const { wgsl } = committedLoops();
  const rows = shown.split(' ').map((name) => {
    const [h100, a100] = [slowest(code.sm_90a[name]!), slowest(code.sm_80[name]!)];
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
  return { head, rows, isText: (column) => [0, 1, 8, 10].includes(column) };
}

const worth = (model: { readonly arithmetic: number; readonly memory: number } | undefined): number =>
  model === undefined ? 0 : Math.max(model.arithmetic, model.memory);
