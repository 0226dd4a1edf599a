// The workloads whose kernels are counted, at their full sizes, as CUDA C in checked builds: nothing to complain of, and the same bits
// whichever way blocks and threads run.
//
// Runs in a process of its own: the CUDA device takes its settings once in a process.

import { expect, test } from 'vitest';
import { cudaTarget } from '../../src/schedule/target.ts';
import * as sn from '../../src/index.ts';
import { workloads } from '../../src/workloads/all.ts';
import { runOnDevice } from '../support/execute.ts';
import { isQuick } from '../support/sample.ts';
import { randomArray } from '../support/random/values.ts';
import { recorded } from '../support/recorded.ts';
import { onStandIn } from './standin/on-standin.ts';
import { strictDevice } from './standin/strict.ts';

/**
 * Half a minute and more each: their kernels are those of a block's forward pass, of random networks, of
 * `attention`, of the models of test/llm and of the loss and the recurrent layers below, at other sizes.
 */
const long = new Set([
  'rnnScan',
  'lstmTrain',
  'lmHeadLoss',
  'gptBlockTrain',
  'checkpointed',
  'convTrain',
  'decodeAttention',
  'gemv',
  'gemvHalf',
  'llamaDecodeLayer',
  'llamaPrefillLayer',
  'moeDecodeLayer',
  'llamaDecodeStep',
]);

onStandIn('workloads on the stand-in', () => {
  const names = workloads.map(({ name }) => name).filter((name) => !long.has(name));

  const check = async (fn: unknown, args: readonly unknown[]): Promise<void> => {
    const { graph } = recorded(fn as never, args as never, 1, 'parameters');
    const inputs = graph.parameters.map(({ dtype, shape }, i) =>
      randomArray(dtype, shape as number[], i + 1, 'tame'),
    );
    const checked = strictDevice({ order: 'forward' });
    const found = await runOnDevice(checked, cudaTarget, graph, inputs);
    const otherwise = strictDevice({ order: 'warpPriority', check: false });
    const again = await runOnDevice(otherwise, cudaTarget, graph, inputs);
    found.forEach(({ data }, i) => {
      const [one, other] = [data, again[i]!.data].map((x) =>
        Buffer.from(x.buffer, x.byteOffset, x.byteLength),
      );
      expect(one!.equals(other!), `result ${i}`).toBe(true);
    });
  };

  test.each(names)('%s', async (name) => {
    const { fn, args } = workloads.find((one) => one.name === name)!;
    await check(fn, args());
  });

  test('lmHeadLoss of few words', async () => {
    const { fn } = workloads.find(({ name }) => name === 'lmHeadLoss')!;
    await check(fn, [sn.zeros([70, 24]), sn.zeros([320, 24]), sn.zeros([70], { dtype: 'i32' })]);
  });

  // Inputs of a recurrent layer are [steps, batch, width]; one of 128 steps runs the same kernels more often.
  const recurrent = [
    ['rnnScan', [8, 16, 64]],
    ['lstmTrain', [8, 32, 128]],
  ] as const;
  test.each(isQuick ? [] : recurrent)('%s of few steps', async (name, shape) => {
    const { fn, args } = workloads.find((one) => one.name === name)!;
    const own = args().map((arg) =>
      arg instanceof sn.Tensor && arg.shape.length === 3 ? sn.zeros(shape) : arg,
    );
    await check(fn, own);
  });
});
