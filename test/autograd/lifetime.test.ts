// Derivatives that users give live as long as the nodes that name them, or as what may make more of these: registries do not grow.

import { expect, test } from 'vitest';
import { derivativeBy } from '../../src/autograd/custom.ts';
import { GraphBuilder, type Node } from '../../src/ir/graph.ts';
import { NamedRule, ruleCount, ruleNamed } from '../../src/ir/named/rule.ts';
import { WeakValues } from '../../src/ir/named/weak-values.ts';
import * as sn from '../../src/index.ts';
import { nodeOf } from '../../src/tensor/record.ts';
import { Session, withSession } from '../../src/tensor/session.ts';
import { finalized, settledAt } from '../support/collector.ts';

/** Runs something in a session that is dropped with all that it recorded. */
function apart<T>(run: () => T): T {
  return withSession(new Session(), () => {
    sn.setDevice('interpreter');
    return run();
  });
}

/** A function that no one else has, with the derivative 10 of everything. */
function tenfold(): (x: sn.Tensor) => sn.Tensor {
  return sn.customVjp(
    (x) => x.mul(2),
    (g) => [g.mul(10)],
  );
}

/** Which number the next rule has; it takes it. */
function nextNumber(): number {
  return new NamedRule(1).numbers[0]!;
}

const start = (): sn.Tensor => sn.tensor([1, 2]).requiresGrad_();

const steps: Readonly<Record<string, () => unknown>> = {
  'of a function made anew at each step': () => {
    const x = start();
    tenfold()(x).sum().backward();
    return x.grad!.data();
  },
  'of functions of several results': () => {
    const both = sn.customVjp<sn.Tensor[]>(
      (x) => [x.mul(2), x.add(1)],
      ([g, h]) => [g!.add(h!)],
    );
    return sn.grad((x: sn.Tensor) => both(x)[0]!.mul(both(x)[1]!).sum())(start());
  },
  'of tangents': () => {
    const f = sn.customJvp(
      (x) => x.mul(2),
      (_, [t]) => t!.mul(10),
    );
    return sn.grad((x: sn.Tensor) => f(x).sum())(start());
  },
  'of batches of every size': () => {
    const f = tenfold();
    return [2, 3, 4].map((size) => sn.vmap(sn.grad((x: sn.Tensor) => f(x).sum()))(sn.ones([size, 2])));
  },
  'of checkpoints with policies and names of their own': () => {
    const name = `name ${Math.random()}`;
    const policies = [[name], (): boolean => false] as const;
    return policies.map((policy) => {
      const f = sn.checkpoint((x: sn.Tensor) => sn.checkpointName(x.exp(), name).sin(), { policy });
      return sn.grad((x: sn.Tensor) => f(x).sum())(start());
    });
  },
};

test.each(Object.keys(steps))('rules %s go with what used them', async (name) => {
  const step = async (): Promise<void> => void (await apart(steps[name]!));
  await step();
  const before = await settledAt(ruleCount);
  const first = nextNumber();
  for (let i = 0; i < 10; i++) await step();
  expect(nextNumber()).toBeGreaterThan(first + 10);
  expect(await settledAt(ruleCount)).toBeLessThanOrEqual(before);
});

test('a value keeps the rule that it was recorded with, and so does what is made of its graph', async () => {
  sn.setDevice('interpreter');
  const x = start();
  const y = tenfold()(x);
  const copies = apart(() => new GraphBuilder().copy(nodeOf(y), nodeOf(y).inputs));
  await finalized();
  y.sum().backward();
  expect(await x.grad!.array()).toEqual([10, 10]);
  expect(copies.op === 'customVjp' && ruleNamed(copies.attrs.rule)).toBeTruthy();
  sn.setDevice(undefined);
});

test('a copy of a node keeps its rule when the node is gone', async () => {
  const make = (): Node => {
    const b = new GraphBuilder();
    const [x, y] = [0, 1].map(
      (index) => b.add('parameter', [], { index, name: `p${index}`, dtype: 'f32', shape: [] }) as Node,
    );
    return new GraphBuilder().copy(derivativeBy((_b, _args, _value, g) => [g]).node(b, [x!, x!]), [y!, y!]);
  };
  const copy = make();
  await finalized();
  expect(copy.op === 'customVjp' && ruleNamed(copy.attrs.rule)).toBeTruthy();
});

test('a function that may be called again keeps its rules', async () => {
  const f = tenfold();
  const slopes = (): Promise<unknown> =>
    apart(() =>
      sn
        .grad((x: sn.Tensor) => f(x).sum())(start())
        .array(),
    );
  expect(await slopes()).toEqual([10, 10]);
  await finalized();
  expect(await slopes()).toEqual([10, 10]);
});

test('a key is free again once its value is gone', async () => {
  const values = new WeakValues<string, object>();
  const kept = values.getOrMake('kept', () => ({}));
  values.set('dropped', {});
  expect(values.size).toBe(2);
  await finalized();
  expect(values.get('kept')).toBe(kept);
  expect(values.get('dropped')).toBeUndefined();
  expect(values.size).toBe(1);
});
