// Brings the generated parts of the documents up to date (`npm run docs`): docs/figures/softmax.svg, docs/api.md, docs/names.md,
// docs/ops.md with docs/ops/, in docs/pytorch.md the list of methods, what the examples of README.md and of the guides print, the
// tables of docs/kernels.md, and README.md's table of other libraries. A test compares them with what the code says now.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { budget } from '../src/cli/bench/budget.ts';
import { showBytes } from '../src/table.ts';
import { workloads } from '../src/workloads/all.ts';
import { apiReference } from './api.ts';
import { comparisonSection, measurements } from '../bench/compare/readme.ts';
import { operations } from './operations/declared.ts';
import { examplesOf, runExamples, withOutputs } from './examples.ts';
import { softmaxFigure } from './figure.ts';
import { operationPages } from './operations/pages.ts';
import { namesPage } from './operations/peers.ts';
import { modelColumns } from './sass/section.ts';

/** The pages whose programs are run, besides README.md. */
export const guides = [
  'docs/guide.md',
  'docs/pytorch.md',
  'docs/jax.md',
  'docs/tensorflow.md',
  'docs/nn.md',
  'docs/training.md',
  'docs/models/llm-new-model.md',
  'docs/functions/transforms.md',
  'docs/functions/control-flow.md',
] as const;

const place = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url));

/** A table of Markdown, with columns as wide as their widest cell; `isText` says which are text, all others are to the right. */
export function markdownTable(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  isText: (column: number) => boolean,
): string {
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column]!.length)));
  const line = (row: readonly string[]): string =>
    `| ${row.map((cell, i) => (isText(i) ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!))).join(' | ')} |`;
  const rule = widths.map((width, i) => (isText(i) ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`));
  return [line(head), `| ${rule.join(' | ')} |`, ...rows.map(line)].join('\n');
}

/** What kernels could reach on a GPU, by the committed figures. */
export function modelTable(): string {
  const { head, rows, isText } = modelColumns();
  return markdownTable(head, rows, isText);
}

/** The lines of `sinter budget` as a Markdown table, with what each workload computes. */
export function budgetTable(): string {
  const head = ['workload', 'what it computes', 'kernels', 'bytes moved', 'at least'];
  const rows = budget().map(({ workload, kernels, bytes, lowerBoundBytes }, i) => [
    `\`${workload}\``,
    workloads[i]!.about,
    String(kernels),
    showBytes(bytes),
    showBytes(lowerBoundBytes),
  ]);
  return markdownTable(head, rows, (column) => column < 2);
}

/** The names of methods, in lines. */
export function methodNames(): string {
  const lines = [''];
  const names = operations().flatMap(({ method }) => method ?? []);
  for (const name of names.toSorted()) {
    const line = lines.at(-1)!;
    if (line.length + name.length > 132) lines.push(`\`${name}\``);
    else lines[lines.length - 1] = `${line} \`${name}\``.trim();
  }
  return lines.join('\n');
}

/** The text with what stands between `<!-- NAME -->` and `<!-- /NAME -->` replaced. Throws when the marks are missing. */
export function withSection(text: string, name: string, content: string): string {
  const [open, close] = [`<!-- ${name} -->`, `<!-- /${name} -->`];
  const [start, end] = [text.indexOf(open), text.indexOf(close)];
  if (start < 0 || end < start) throw new Error(`no section ${open} … ${close}`);
  return `${text.slice(0, start + open.length)}\n\n${content}\n\n${text.slice(end)}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(place('docs/figures/softmax.svg'), softmaxFigure());
  writeFileSync(place('docs/api.md'), apiReference());
  for (const path of guides) {
    const guide = readFileSync(place(path), 'utf8');
    writeFileSync(place(path), withOutputs(guide, await runExamples(examplesOf(guide))));
  }
  mkdirSync(place('docs/ops'), { recursive: true });
  for (const [path, text] of await operationPages()) writeFileSync(place(path), text);
  writeFileSync(place('docs/names.md'), namesPage());
  const migration = readFileSync(place('docs/pytorch.md'), 'utf8');
  writeFileSync(place('docs/pytorch.md'), withSection(migration, 'methods', methodNames()));
  const kernels = readFileSync(place('docs/kernels.md'), 'utf8');
  const counted = withSection(kernels, 'budget', budgetTable());
  writeFileSync(place('docs/kernels.md'), withSection(counted, 'model', modelTable()));
  const readme = readFileSync(place('README.md'), 'utf8');
  const outputs = await runExamples(examplesOf(readme));
  const compared = withSection(readme, 'comparison', comparisonSection(measurements()));
  writeFileSync(place('README.md'), withOutputs(compared, outputs));
}
