// What a page does not load for a graph would have changed nothing of it: the questions that are asked first are as good as the
// passes, orders and plans that they stand before.

import { describe, expect, test } from 'vitest';
import { hasWideVectors } from '../../src/codegen/emit/wasm/needed.ts';
import { halveVectors } from '../../src/codegen/emit/wasm/rewrite/halves.ts';
import type { Loop } from '../../src/codegen/loop/loop.ts';
import { blocksOf } from '../../src/codegen/template/map/block.ts';
import { rowsOf } from '../../src/codegen/template/map/cpu/rows.ts';
import { isStraight } from '../../src/codegen/template/map/map.ts';
import { compileGraph } from '../../src/compile.ts';
import type { CompileStage } from '../../src/dump/stage.ts';
import { topological, type Graph } from '../../src/ir/graph.ts';
import { isFoldable } from '../../src/ir/passes/foldable.ts';
import { foldConstants } from '../../src/ir/passes/fold.ts';
import { print } from '../../src/ir/text/print.ts';
import type { KernelSchedule } from '../../src/schedule/schedule.ts';
import { planMemory, shareMemory } from '../../src/schedule/memory/memory.ts';
import { unsharedMemory } from '../../src/schedule/memory/plan.ts';
import { gpuTarget, softwareTarget, wasmTarget } from '../../src/schedule/target.ts';
import { checkLaw } from '../support/property.ts';
import { randomProgram } from '../support/random/graph.ts';

const programs = randomProgram({ dtypes: ['f32', 'i32', 'i64', 'f64', 'bool'] });

test('a graph in which nothing is foldable is left as it is by folding', () => {
  let [plain, folded] = [0, 0];
  checkLaw(400, programs, ({ graph }) => {
    const isLeft = print(foldConstants(graph)) === print(graph);
    const isPlain = !topological(graph.outputs).some(isFoldable);
    if (isPlain) expect(isLeft, print(graph)).toBe(true);
    plain += Number(isPlain);
    folded += Number(!isLeft);
  });
  expect([plain > 20, folded > 20]).toEqual([true, true]);
});

/** What a compilation went through. */
function compiled(
  graph: Graph,
  target: typeof wasmTarget,
): { readonly schedule: KernelSchedule; readonly loops: Loop[] } {
  const loops: Loop[] = [];
  let schedule: KernelSchedule | undefined;
  const observe = (stage: CompileStage): void => {
    if (stage.kind === 'schedule') ({ schedule } = stage);
    if (stage.kind === 'loop') loops.push(stage.loop);
  };
  compileGraph(graph, target, { observe });
  return { schedule: schedule!, loops };
}

describe.each([wasmTarget, gpuTarget, softwareTarget].map((target) => [target.name, target] as const))(
  'for %s',
  (_, target) => {
    const fitting = randomProgram({
      dtypes: ['f32', 'i32', 'i64', 'f64', 'bool'].filter((dtype) =>
        (target.dtypes as readonly string[]).includes(dtype),
      ) as never,
    });

    test('straight maps have no better order, plain programs share no memory, narrow loops have no halves', () => {
      const seen = { straight: 0, bent: 0, plain: 0, shared: 0, narrow: 0 };
      checkLaw(120, fitting, ({ graph }) => {
        const { schedule, loops } = compiled(graph, target);
        for (const kernel of schedule.kernels) {
          if (kernel.body.kind !== 'map') continue;
          const { axis, shape } = kernel.body;
          const writes = kernel.writes.filter(({ index }) => index.kind !== 'const');
          const isBent = !isStraight(kernel, axis, writes);
          if (isBent) seen.bent += 1;
          else {
            seen.straight += 1;
            expect(blocksOf(kernel, axis, writes, target)).toBeUndefined();
            expect(rowsOf(kernel, axis, writes, target, shape)).toBeUndefined();
          }
        }
        const outputs = new Set(schedule.storage.stored);
        for (const demanded of [new Set(graph.outputs), outputs]) {
          const demand = {
            outputs: demanded,
            donations: new Map(),
            bytesOf: () => 256,
            loops: new Map(),
            largestArena: 2 ** 20,
          };
          const plan = planMemory(schedule.kernels, schedule.packs, demand);
          if (plan !== unsharedMemory) {
            seen.shared += 1;
            continue;
          }
          seen.plain += 1;
          const { homeOf, ...real } = shareMemory(schedule.kernels, schedule.packs, demand);
          const { homeOf: own, ...none } = unsharedMemory;
          expect(real).toEqual(none);
          for (const { reads, writes } of schedule.kernels)
            for (const node of [...reads, ...writes.map((write) => write.node)])
              expect(homeOf(node)).toBe(own(node));
        }
        for (const loop of loops) {
          if (hasWideVectors(loop)) continue;
          seen.narrow += 1;
          expect(halveVectors(loop)).toEqual(loop);
        }
      });
      expect(
        Object.values(seen).every((count) => count > 0),
        JSON.stringify(seen),
      ).toBe(true);
    });
  },
);
