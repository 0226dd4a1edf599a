// Stages of a train step, by node and by kernel; and that every sentence an explanation says is whole.

import { describe, expect, test } from 'vitest';
import { explain, explainFor } from '../../src/explain/explain.ts';
import * as sn from '../../src/index.ts';
import type { Explained } from '../../src/index.ts';
import { gpuTarget } from '../../src/schedule/target.ts';
import { workloads } from '../../src/workloads/all.ts';

const shown = new Map<string, Explained>();
function explained(name: string): Explained {
  const { fn, args } = workloads.find((workload) => workload.name === name)!;
  const known = shown.get(name) ?? explainFor(gpuTarget, fn, ...args());
  shown.set(name, known);
  return known;
}

describe('stages', () => {
  test('a program without gradients is all forward', () => {
    for (const name of ['attention', 'gptBlockForward'])
      expect(new Set(explained(name).kernels.map(({ stage }) => stage))).toEqual(new Set(['forward']));
  });

  test('what is computed before the gradients, in them, and from them', () => {
    const step = (w: sn.Tensor, m: sn.Tensor, x: sn.Tensor): sn.Tensor[] => {
      const { value, grad } = sn.valueAndGrad((at: sn.Tensor) => x.matmul(at).sin().sum())(w);
      const momentum = m.tan().add(grad);
      return [value, w.sub(momentum.exp()), momentum];
    };
    const { nodes } = explain(step, sn.zeros([8, 4]), sn.zeros([8, 4]), sn.zeros([16, 8]));
    const stages = (op: string): (string | undefined)[] => [
      ...new Set(nodes.filter((node) => node.op === op).map(({ stage }) => stage)),
    ];
    expect(stages('sin')).toEqual(['forward']);
    expect(stages('cos')).toEqual(['backward']);
    expect(stages('dot').sort()).toEqual(['backward', 'forward']);
    // The state decays without a gradient, for the update alone.
    expect(stages('tan')).toEqual(['update']);
    expect(stages('exp')).toEqual(['update']);
    expect(stages('parameter')).toEqual([undefined]);
  });

  test('gradients that are added up on the way back are part of it', () => {
    const f = sn.grad((x: sn.Tensor): sn.Tensor => {
      const y = x.exp();
      return y.sin().add(y.tanh()).add(y.sqrt()).sum();
    });
    const { nodes } = explain(f, sn.zeros([8]));
    expect(nodes.filter(({ op, stage }) => op !== 'constant' && stage === 'update')).toEqual([]);
  });

  test('a train step has its stages one after the other', () => {
    const { kernels } = explained('gptBlockTrain');
    const stages = kernels.map(({ stage }) => stage);
    expect(stages.filter((stage, i) => stage !== stages[i - 1])).toEqual(['forward', 'backward', 'update']);
  });
});

// Those of a hundred parameters say the same things a hundred times.
const told = workloads.filter(({ name }) => name !== 'adam100' && name !== 'checkpointed');

test.each(told.map(({ name }) => name))('every sentence about %s is whole', (name) => {
  const { fusionDiagnostics } = explained(name);
  const sentences = fusionDiagnostics.flatMap(({ apart, kept }) => [...apart, ...(kept ? [kept] : [])]);
  const last = /(?:^|\s)(?:a|an|and|as|at|by|for|from|in|of|on|or|over|than|the|to|with)?[\s,:;(]*$/;
  expect(
    sentences
      .map(({ text }) => text)
      .filter((text) => last.test(text) || /\s{2}|\(\s*\)|undefined|NaN/.test(text)),
  ).toEqual([]);
});
