// What a CUDA device does while ranks meet: kernels run beside the sums of gradients, and beside gathers of the parameters that come next.

import { expect, test } from 'vitest';

import { compileGraph } from '../../src/compile.ts';
import { sharedProgram } from '../../src/distributed/explain.ts';
import { fullySharded, mesh, type ShardPlan } from '../../src/distributed/index.ts';
import { valueAndGrad, zeros, type Tensor } from '../../src/index.ts';
import { runStepsOf, withWaits } from '../../src/runtime/cuda/run-steps.ts';
import { cudaTarget } from '../../src/schedule/target.ts';

type Layer = Readonly<Record<'up' | 'down', Tensor>>;

const grid = mesh({ data: 8 });
const layers = 4;

function trainStep(params: readonly Layer[], x: Tensor): unknown {
  const loss = (own: readonly Layer[]): Tensor =>
    own
      .reduce((h, { up, down }) => h.matmul(up).tanh().matmul(down), x)
      .square()
      .mean() as Tensor;
  const { value, grad } = valueAndGrad(loss)(params);
  const moved = params.map(({ up, down }, i) => ({
    up: up.sub(grad[i]!.up.mul(0.1)),
    down: down.sub(grad[i]!.down.mul(0.1)),
  }));
  return [value, moved];
}

/** The collectives of the step by one of eight ranks, with how many kernels are launched before each is waited for. */
function kernelsBeside(plan: ShardPlan | undefined): (readonly [kind: string, kernels: number])[] {
  const params = Array.from({ length: layers }, () => ({
    up: zeros([2048, 8192]),
    down: zeros([8192, 2048]),
  }));
  const plans = [plan, (): readonly ['data', null] => ['data', null]];
  const { graph } = sharedProgram(trainStep as never, grid, plans, [params, zeros([32768, 2048])]);
  const { program } = compileGraph(graph, cudaTarget, { rank: 0 });
  const copied = program.outputs.map(() => false);
  const met: [string, number][] = [];
  let open: [string, number][] = [];
  for (const step of withWaits(program, runStepsOf(program, copied), false)) {
    if (step.kind === 'collective') {
      const one: [string, number] = [step.meeting.action.kind, 0];
      met.push(one);
      open.push(one);
    } else if (step.kind === 'await') open = open.slice(open.length - step.but);
    else for (const one of open) one[1] += 1;
  }
  return met;
}

/** How many kernels run beside each collective of a kind. */
function besideEach(plan: ShardPlan | undefined, name: string): number[] {
  return kernelsBeside(plan)
    .filter(([kind]) => kind === name)
    .map(([, kernels]) => kernels);
}

const busy = (counts: readonly number[]): number => counts.filter((kernels) => kernels > 0).length;

test('while a gradient is added up, the gradients of the layers before it are computed', () => {
  const sums = besideEach(undefined, 'allReduce');
  // The loss is a sum too. The last ones have nothing left to run beside.
  expect(sums.length).toBe(2 * layers + 1);
  expect(busy(sums)).toBeGreaterThan(layers);
});

test('while a layer is computed, the parameters of the next one are gathered', () => {
  const gathers = besideEach(fullySharded(grid, 'data'), 'allGather');
  expect(gathers.length).toBe(2 * layers);
  expect(busy(gathers.slice(1))).toBe(2 * layers - 1);
});

test('while the sum of a gradient is scattered, the gradients of the layers before it are computed', () => {
  const scatters = besideEach(fullySharded(grid, 'data'), 'reduceScatter');
  expect(scatters.length).toBe(2 * layers);
  expect(busy(scatters)).toBeGreaterThan(layers);
});
