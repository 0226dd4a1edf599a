// `sinter demo`: a small transformer learns to write, on whatever this machine has. Shows the loss
// falling, the kernels of a train step, and what the model writes in the end.

import * as sn from '../../index.ts';
import { readFile } from 'node:fs/promises';
import type { ExplainedKernel } from '../../explain/explain.ts';
import { targetOf } from '../../schedule/target.ts';
import { showBytes, showCount, table } from '../../table.ts';
import { wholeDevice } from '../../tensor/device.ts';
import { CharacterModel, type LanguageSettings } from './language.ts';
import { text, UsageError, wholeNumber, type Command, type Output } from '../command.ts';

/** Long enough to have habits, and short enough to learn them in a minute. */
const essay: URL = new URL('../../../examples/essay.txt', import.meta.url);

const settings: LanguageSettings = {
  context: 32,
  width: 64,
  heads: 4,
  layers: 2,
  batch: 12,
  steps: 300,
  rate: 4e-3,
  warmup: 20,
};

/**
 * Steps between two looks at the loss: reading waits for the device, so it is not done at every
 * step.
 */
const glance = 10;

/** What `--json` prints. */
interface DemoResult {
  /** Before the first step, in nats per character: about ln(size of the alphabet). */
  readonly firstLoss: number;
  /** Mean of the last ten steps. */
  readonly lastLoss: number;
  readonly steps: number;
  readonly kernelsPerStep: number;
  readonly device: string;
  /** Median, without what the first steps compile. */
  readonly msPerStep: number;
}

export const demoCommand: Command = {
  name: 'demo',
  about: 'train a small transformer on text',
  details:
    'Trains a decoder-only transformer on a text, character by character, and lets it write. Everything in a\n' +
    'step (drawing the batch, forward, backward, AdamW) is one compiled program. Without a GPU it runs on\n' +
    'wasm; the run takes some seconds there.',
  options: {
    steps: { type: 'string', value: 'N', about: `train steps (default ${settings.steps})` },
    text: { type: 'string', value: 'FILE', about: 'learn this text instead of the built-in one' },
    seed: { type: 'string', value: 'N', about: 'seed of the random generator (default 1)' },
    length: { type: 'string', value: 'N', about: 'characters to write at the end (default 240)' },
    device: { type: 'string', value: 'NAME', about: 'see `sinter devices`; the best one by default' },
  },
  examples: ['sinter demo', 'sinter demo --steps 1000 --text book.txt', 'sinter demo --json'],
  run: async (values, output) => {
    const name = text(values, 'device');
    if (name !== undefined) sn.setDevice(name);
    sn.manualSeed(wholeNumber(values, 'seed', 1, 0));
    const steps = wholeNumber(values, 'steps', settings.steps, glance);
    const length = wholeNumber(values, 'length', 240, 0);
    const source = await sourceText(text(values, 'text'));
    const { facts } = await wholeDevice();
    const model = new CharacterModel(source, { ...settings, steps });
    const kernels = model.explainStep(targetOf(facts));
    const say = values['json'] === true ? output.note : output.line;
    say(`device   ${facts.name}: ${facts.description}`);
    say(`text     ${source.length} characters, ${model.alphabet.size} different ones`);
    say(
      `model    ${settings.layers} layers, width ${settings.width}, ${settings.heads} heads, ` +
        `context ${settings.context}: ${showCount(model.size)} parameters`,
    );
    say(`step     ${kernels.totals.kernels} kernels, batch ${settings.batch}`);

    const { losses, msPerStep } = await train(model, steps, output);
    const result: DemoResult = {
      firstLoss: losses[0]!,
      lastLoss: mean(losses.slice(-glance)),
      steps,
      kernelsPerStep: kernels.totals.kernels,
      device: facts.name,
      msPerStep,
    };
    say('\nloss, nats per character');
    say(plot(smoothed(losses)));
    say(
      `from ${result.firstLoss.toFixed(3)} (ln ${model.alphabet.size} = ${Math.log(model.alphabet.size).toFixed(3)}) ` +
        `to ${result.lastLoss.toFixed(3)} in ${steps} steps of ${msPerStep.toFixed(1)} ms`,
    );
    say(`\nthe kernels of a step\n${kernelTable(kernels, output.columns)}`);
    if (length > 0) say(`\nwhat it writes\n\n${await model.continue('\n', length)}`);
    if (values['json'] === true) output.line(JSON.stringify(result));
  },
};

/** The text that is learnt: the file's, or that of the essay among the package's examples. */
async function sourceText(file: string | undefined): Promise<string> {
  if (file === undefined) return readFile(essay, 'utf8');
  const source = await readFile(file, 'utf8');
  const least = 4 * settings.context;
  if (source.length >= least) return source;
  throw new UsageError(`--text: ${file} has ${source.length} characters, ${least} is the least`);
}

/** Runs the steps, saying how it goes. */
async function train(
  model: CharacterModel,
  steps: number,
  output: Output,
): Promise<{ losses: number[]; msPerStep: number }> {
  const losses: number[] = [];
  const times: number[] = [];
  let before = performance.now();
  let unread: sn.Tensor[] = [];
  output.live(`step 0/${steps}  compiling the step`);
  while (model.done < steps) {
    unread.push(model.train());
    if (model.done !== 1 && model.done % glance !== 0 && model.done !== steps) continue;
    losses.push(...((await sn.stack(unread).data()) as Float32Array));
    const now = performance.now();
    if (model.done > glance || steps <= glance) times.push((now - before) / unread.length);
    before = now;
    unread = [];
    const left = (median(times) * (steps - model.done)) / 1000;
    const line =
      `step ${model.done}/${steps}  loss ${losses.at(-1)!.toFixed(3)}` +
      (times.length === 0 ? '' : `  ${left.toFixed(0)} s left`);
    output.live(line);
    if (model.done % (10 * glance) === 0 || model.done === 1) output.mark(line);
  }
  return { losses, msPerStep: median(times) };
}

/** Means of runs of values, so that the curve shows the trend and not the batch. */
function smoothed(values: readonly number[]): number[] {
  const run = Math.max(1, Math.min(glance, Math.floor(values.length / 20)));
  return values.slice(0, values.length - run + 1).map((_, i) => mean(values.slice(i, i + run)));
}

/** Kernels of one kind and shape on one line: layers repeat. */
function kernelTable(explanation: sn.Explanation, columns: number | undefined): string {
  const rows = new Map<string, { times: number; kernel: ExplainedKernel; shapes: string }>();
  for (const kernel of explanation.kernels) {
    const shapes = `${typesOf(kernel.writes)} ← ${typesOf(kernel.reads)}`;
    const known = rows.get(`${kernel.kind} ${shapes}`);
    if (known === undefined) rows.set(`${kernel.kind} ${shapes}`, { times: 1, kernel, shapes });
    else known.times += 1;
  }
  const cells = [...rows.values()].map(({ times, kernel, shapes }) => [
    String(times),
    kernel.kind,
    showCount(kernel.flops),
    showBytes(kernel.bytes),
    shapes,
  ]);
  const lines = table(['times', 'kind', 'flops', 'bytes', 'writes ← reads'], cells, [0, 2, 3]).split('\n');
  const fit = (line: string): string => (line.length > columns! ? `${line.slice(0, columns! - 1)}…` : line);
  return (columns === undefined ? lines : lines.map(fit)).join('\n');
}

/** Types and how often each is there. */
function typesOf(accesses: ExplainedKernel['reads']): string {
  const times = new Map<string, number>();
  for (const { type } of accesses) times.set(type, (times.get(type) ?? 0) + 1);
  const shown = [...times].map(([type, count]) => (count === 1 ? type : `${type} × ${count}`));
  return shown.toSorted().join(' ');
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

// A curve drawn with characters: braille cells hold 2 × 4 dots each, so a terminal shows eight
// times its resolution.

/** Bits of a braille cell by row and column (Unicode 2800). */
const dots = [
  [0x01, 0x08],
  [0x02, 0x10],
  [0x04, 0x20],
  [0x40, 0x80],
] as const;

/** Values in order, left to right, with the highest and the lowest marked at the side. */
export function plot(values: readonly number[], width = 64, height = 12): string {
  const finite = values.filter((value) => Number.isFinite(value));
  if (finite.length === 0) return '';
  const [low, high] = [Math.min(...finite), Math.max(...finite)];
  const span = high - low || 1;
  const cells = Array.from({ length: height }, () => new Uint8Array(width));
  const put = (x: number, y: number): void => {
    const row = Math.min(height - 1, Math.floor(y / 4));
    const column = Math.min(width - 1, Math.floor(x / 2));
    cells[row]![column]! |= dots[y % 4]![(x % 2) as 0 | 1];
  };
  const [right, bottom] = [2 * width - 1, 4 * height - 1];
  const yOf = (value: number): number => Math.round((1 - (value - low) / span) * bottom);
  const last = values.length - 1;
  let before: number | undefined;
  for (let x = 0; x <= right; x++) {
    // Between two values the curve is a straight line.
    const at = last === 0 ? 0 : (x * last) / right;
    const [from, to] = [values[Math.floor(at)]!, values[Math.ceil(at)]!];
    const value = from + (to - from) * (at - Math.floor(at));
    if (!Number.isFinite(value)) {
      before = undefined;
      continue;
    }
    const y = yOf(value);
    for (let step = Math.min(y, before ?? y); step <= Math.max(y, before ?? y); step++) put(x, step);
    before = y;
  }
  const side = Math.max(high.toFixed(2).length, low.toFixed(2).length);
  const lines = cells.map((row, i) => {
    const mark = i === 0 ? high.toFixed(2) : i === height - 1 ? low.toFixed(2) : '';
    const drawn = [...row].map((bits) => String.fromCodePoint(0x2800 + bits)).join('');
    return `${mark.padStart(side)} ┤${drawn}`;
  });
  return [...lines, `${' '.repeat(side)} └${'─'.repeat(width)}`].join('\n');
}
