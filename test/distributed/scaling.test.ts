// The table of docs/design/scaling.md is what the script prints, and its model keeps the limits that follow from the papers.
// Runs on the sources: of scripts/distributed/scaling.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

import { bucketCollectives } from '../../src/sharding/buckets.ts';
import { scaledModels, scaledProgram, type ScaledModel } from '../../scripts/distributed/scaling/program.ts';
import {
  overlappedTime,
  serialTime,
  tasksOf,
  type StepTask,
} from '../../scripts/distributed/scaling/step.ts';
import { h100, scalingOf, scalingText } from '../../scripts/distributed/scaling/table.ts';
import { meshOf } from '../../src/ir/mesh/mesh.ts';
import { dims } from '../../src/ir/graph.ts';

const document = readFileSync(
  fileURLToPath(new URL('../../docs/design/scaling.md', import.meta.url)),
  'utf8',
);
/** The cells of a model's rows. */
const rowsOf = (text: string, model: string): readonly (readonly string[])[] =>
  text
    .split('\n')
    .filter((line) => line.startsWith(`${model} `))
    .map((line) => line.split(/ {2,}/));

describe('the table of the documents', () => {
  test.each(scaledModels)('has what the script prints of $name', (model) => {
    const printed = rowsOf(scalingText(scalingOf(model)), model.name);
    expect(printed.length).toBeGreaterThan(0);
    expect(rowsOf(document, model.name)).toEqual(printed);
  });
});

const small: ScaledModel = { name: 'small', layers: 2, width: 1024, heads: 16, context: 1024, texts: 8 };

describe('the model', () => {
  const counts = [8, 32, 128, 1024];
  const lines = scalingOf(small, counts);

  test('collectives beside the arithmetic are never slower, and never faster than the arithmetic', () => {
    expect(lines.length).toBe(3 * counts.length);
    for (const { serial, overlapped, ideal } of lines) {
      expect(overlapped).toBeLessThanOrEqual(serial);
      expect(overlapped).toBeGreaterThanOrEqual(ideal * (1 - 1e-9));
    }
  });

  test('one GPU is the ideal in every way', () => {
    for (const way of ['data', 'fsdp'] as const) {
      const [line] = scalingOf(small, [1]).filter((one) => one.way === way);
      expect(line!.serial).toBeCloseTo(line!.ideal, 12);
      expect(line!.overlapped).toBeCloseTo(line!.ideal, 12);
      expect(line!.sent).toBe(0);
    }
  });

  test('data parallel sends 2(n − 1)/n of the gradients and the loss', () => {
    const { graph } = scaledProgram(small, 1, 'data').program;
    const sizes = graph.outputs.map((node) => dims(node).reduce((product, size) => product * size, 1));
    const bytes = graph.outputs.reduce(
      (sum, { dtype }, i) => sum + sizes[i]! * (dtype === 'bf16' ? 2 : 4),
      0,
    );
    // Gradients of norms are added up in f32, before they are rounded: two vectors a norm.
    const norms = 2 * (2 * small.layers + 1) * small.width * 2;
    for (const gpus of counts) {
      const line = lines.find((one) => one.way === 'data' && one.gpus === gpus)!;
      expect(line.sent).toBeCloseTo((2 * (gpus - 1) * (bytes + norms)) / gpus, 3);
    }
  });

  test('the program of another number of GPUs has the same collectives', () => {
    const mesh = meshOf([{ name: 'data', size: 128 }]);
    for (const way of ['data', 'fsdp'] as const) {
      const times = [32, 128].map((gpus) => {
        const { apart } = scaledProgram(small, gpus, way).program;
        const tasks = tasksOf(bucketCollectives(apart, h100.cluster, mesh), mesh, h100);
        return [serialTime(tasks), overlappedTime(tasks)];
      });
      expect(times[0]).toEqual(times[1]);
    }
  });
});

describe('the longest path', () => {
  const work = (time: number, ...after: readonly number[]): StepTask => ({ time, after, sent: 0 });
  const sum = (time: number, ...after: readonly number[]): StepTask => ({
    time,
    after,
    sent: 0,
    over: 'data',
  });

  test('collectives run beside what does not read them, one after the other, as they become ready', () => {
    // Two sums of 5 begin at 1 and at 6, while 3 seconds are computed.
    expect(overlappedTime([work(1), sum(5, 0), work(1, 0), sum(5, 2), work(1, 2)])).toBe(11);
    // What is ready first goes first, whatever the program says.
    expect(overlappedTime([work(1), work(1, 0), sum(5, 1), sum(5, 0)])).toBe(11);
    expect(overlappedTime([work(1), sum(5, 0), work(2, 1)])).toBe(8);
    expect(serialTime([work(1), sum(5, 0), work(2, 1)])).toBe(8);
  });

  test('groups do not wait for each other', () => {
    const other: StepTask = { time: 5, after: [0], sent: 0, over: 'model' };
    expect(overlappedTime([work(1), sum(5, 0), other])).toBe(6);
  });
});
