// A classifier that learns, as models in C are tested with, and programs of C that call it.

import { expect } from 'vitest';
import type { EntryPoint } from '../../../src/aot/entry.ts';
import * as sn from '../../../src/index.ts';
import type { Tensor } from '../../../src/index.ts';
import type { Sequential } from '../../../src/nn/index.ts';
import { adam, type OptimizerState } from '../../../src/optim/index.ts';
import { beginning } from './folders.ts';

export function point(name: string, fn: unknown, inputs: readonly unknown[]): EntryPoint {
  return { name, fn: fn as EntryPoint['fn'], inputs };
}

export async function numbers(tensor: Tensor): Promise<number[]> {
  return Array.from((await tensor.data()) as Float32Array);
}

export function expectClose(
  found: readonly number[] | undefined,
  expected: readonly number[],
  digits = 5,
): void {
  expect(found).toHaveLength(expected.length);
  expected.forEach((value, i) => expect(found![i]).toBeCloseTo(value, digits));
}

/** A main that runs these lines after the weights are there; the arrays are outside of it. */
export function main(arrays: readonly string[], lines: readonly string[]): string {
  return `${beginning()}${arrays.join('')}
int main(void)
{
  begin();
${lines.map((line) => `  ${line}\n`).join('')}  return 0;
}
`;
}

export interface Learner {
  readonly model: Sequential;
  readonly optimizer: OptimizerState;
}
const optimizer = adam({ lr: 0.01 });
const lossOf = (model: Sequential, images: Tensor, labels: Tensor): Tensor =>
  sn.crossEntropy(model.forward(images), labels);
export function train(
  { model, optimizer: before }: Learner,
  images: Tensor,
  labels: Tensor,
  rate: Tensor,
): { state: Learner; loss: Tensor } {
  const { value, grad } = sn.valueAndGrad(lossOf)(model, images, labels);
  const [next, after] = optimizer.update(model, grad, before, { lr: rate });
  return { state: { model: next, optimizer: after }, loss: value };
}
export const predict = ({ model }: Learner, images: Tensor): { logits: Tensor; best: Tensor } => {
  const logits = model.forward(images);
  return { logits, best: sn.argmax(logits, -1) };
};

export function learner(model: Sequential): Learner {
  return { model, optimizer: optimizer.init(model) };
}

export const labels: readonly number[] = [0, 1, 2, 3, 0, 1, 2, 3];
