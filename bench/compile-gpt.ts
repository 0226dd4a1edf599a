// How long the host works on a train step of a 12-layer GPT before the first kernel can run: recording forward, backward and
// Adam, scheduling, generating source. `npx tsx bench/compile-gpt.ts [vocabulary]`. Needs no device: the target is a GPU.

import { compileGraph } from '../src/compile.ts';
import * as sn from '../src/index.ts';
import { topological } from '../src/ir/graph.ts';
import { adam, type OptimizerState } from '../src/optim/index.ts';
import { gpuTarget } from '../src/schedule/target.ts';
import { traceFunction } from '../src/tensor/tracing.ts';
import {
  decoderLoss,
  initDecoder,
  type DecoderParameters,
  type DecoderSizes,
} from '../src/workloads/transformer.ts';

const [batch, length] = [2, 128];

export interface StepCompileTime {
  readonly nodes: number;
  /** Kernels that a step runs, and how many different sources they have. */
  readonly dispatches: number;
  readonly sources: number;
  readonly recordMs: number;
  readonly compileMs: number;
  readonly totalMs: number;
}

/** Records and compiles a train step; parameters are constants that take no memory. */
export function measureStep(sizes: DecoderSizes): StepCompileTime {
  const optimizer = adam({ lr: 1e-4 });
  const step = (
    params: DecoderParameters,
    state: OptimizerState,
    tokens: sn.Tensor,
    targets: sn.Tensor,
  ): unknown => {
    const loss = (p: DecoderParameters): sn.Tensor => decoderLoss(p, tokens, targets, sizes.heads);
    const { value, grad } = sn.valueAndGrad(loss)(params);
    return [value, ...optimizer.update(params, grad, state)];
  };
  const params = initDecoder(sizes);
  const tokens = (): sn.Tensor => sn.zeros([batch, length], { dtype: 'i32' });
  const state: OptimizerState = {
    step: sn.zeros([], { dtype: 'i32' }),
    slots: sn.treeLeaves(params).map(({ shape }) => ({ mean: sn.zeros(shape), meanSquare: sn.zeros(shape) })),
  };
  const args = [params, state, tokens(), tokens()] as const;
  const start = performance.now();
  const { graph } = traceFunction(step as never, args);
  const recorded = performance.now();
  const { kernels } = compileGraph(graph, gpuTarget);
  const end = performance.now();
  return {
    nodes: topological(graph.outputs).length,
    dispatches: kernels.length,
    sources: new Set(kernels.map(({ name, source }) => source.replaceAll(name, ''))).size,
    recordMs: recorded - start,
    compileMs: end - recorded,
    totalMs: end - start,
  };
}

if (import.meta.url === `file://${process.argv[1]}`) {
  const vocabulary = Number(process.argv[2] ?? 50_257);
  const sizes = { vocabulary, context: 1024, width: 768, heads: 12, layers: 12 };
  for (const round of ['first', 'second']) {
    const time = measureStep(sizes);
    const ms = (value: number): string => `${value.toFixed(0)} ms`;
    console.log(
      `${round}: ${time.nodes} nodes, ${time.dispatches} dispatches of ${time.sources} sources: ` +
        `record ${ms(time.recordMs)}, compile ${ms(time.compileMs)}, total ${ms(time.totalMs)}`,
    );
  }
}
