// A session holds all state of the tensor layer: what is chosen, recorded or compiled in one does not show in another, and a fresh one
// has the defaults.

import { recorded } from '../../src/tensor/handle/recorded.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import { onNode } from '../../src/ir/origin/origin.ts';
import { isFollowing } from '../../src/tensor/anomaly.ts';
import { autocastType } from '../../src/tensor/autocast.ts';
import { matmulPrecision } from '../../src/tensor/precision.ts';
import { watching } from '../../src/tensor/debug.ts';
import { cacheSize, onNewSizes, sharedFor } from '../../src/tensor/evaluate/cache.ts';
import { evaluatePending, onRead } from '../../src/tensor/evaluate/evaluate.ts';
import { graphKeyOf } from '../../src/tensor/evaluate/graph-key.ts';
import { gradEnabled, nodeFor, pendingHandles } from '../../src/tensor/handle/recording.ts';
import { onCompile } from '../../src/tensor/report/compiles.ts';
import { currentSession, SessionPart, Session, sessions, withSession } from '../../src/tensor/session.ts';
import { autoDims } from '../../src/tensor/sizes/auto.ts';
import { expectedDevice } from '../../src/tensor/device.ts';
import type { StoredValue } from '../../src/tensor/storage/storage.ts';
import { handleOf } from '../../src/tensor/tensor.ts';
import { settledAt } from '../support/collector.ts';

beforeAll(() => sn.setDevice('interpreter'));
afterAll(() => sn.setDevice(undefined));

/** A session on the interpreter. */
function onInterpreter(): Session {
  const session = new Session();
  withSession(session, () => sn.setDevice('interpreter'));
  return session;
}

/** What a session has been told, and what it has recorded and compiled. */
function settings(): unknown {
  const limit = sn.setRetainedMemoryLimit(0);
  sn.setRetainedMemoryLimit(limit);
  return {
    device: expectedDevice(),
    autocast: autocastType(),
    precision: matmulPrecision(),
    autoDims: autoDims(),
    watching: watching(),
    anomalies: isFollowing(),
    gradients: gradEnabled(),
    limit,
    pending: pendingHandles().size,
    structures: cacheSize(),
    drawn: sn.saveRngState().counter,
  };
}

function change(device: string): void {
  sn.setDevice(device);
  sn.setMatmulPrecision('tf32');
  sn.setAutoDims(false);
  sn.setChecks(false);
  sn.setDebug(true);
  sn.detectAnomaly(true);
  sn.setRetainedMemoryLimit(7);
  sn.manualSeed(3);
  sn.rand([2]);
}

describe('a session', () => {
  test('starts with the defaults, whatever others were told', () => {
    const fresh = withSession(new Session(), settings);
    const other = new Session();
    withSession(other, () => {
      change('interpreter');
      sn.autocast(() =>
        sn.noGrad(() => {
          expect(withSession(new Session(), settings)).toEqual(fresh);
          expect(settings()).not.toEqual(fresh);
        }),
      );
    });
    expect(withSession(new Session(), settings)).toEqual(fresh);
    withSession(other, () => sn.detectAnomaly(false));
  });

  test('keeps what it was told', () => {
    const [one, two] = [new Session(), new Session()];
    withSession(one, () => change('wasm:1'));
    const before = withSession(one, settings);
    expect(before).toMatchObject({
      device: 'wasm:1',
      precision: 'tf32',
      autoDims: false,
      anomalies: true,
      limit: 7,
      pending: 1,
    });
    withSession(two, () => change('interpreter'));
    expect(withSession(two, settings)).toMatchObject({ device: 'interpreter' });
    expect(withSession(one, settings)).toEqual(before);
    for (const session of [one, two]) withSession(session, () => sn.detectAnomaly(false));
  });

  test('is left when its function throws, and by what follows its first await', async () => {
    const around = currentSession();
    const session = new Session();
    const failing = (): never => {
      throw new Error('it fails');
    };
    expect(() => withSession(session, failing)).toThrow('it fails');
    expect(currentSession()).toBe(around);
    await withSession(session, async () => {
      expect(currentSession()).toBe(session);
      await Promise.resolve();
      expect(currentSession()).toBe(around);
    });
  });

  test('goes with its values when nothing refers to it any more', async () => {
    const before = await settledAt(() => sessions().length);
    const made = Array.from({ length: 20 }, () => withSession(new Session(), () => sn.ones([4]).add(1)));
    made.length = 0;
    expect(await settledAt(() => sessions().length)).toBeLessThanOrEqual(before);
  });
});

describe('two sessions', () => {
  test('draw from generators of their own', async () => {
    const [one, two] = [onInterpreter(), onInterpreter()];
    const draw = (session: Session): Promise<unknown> =>
      withSession(session, () => sn.rand([3]).array() as Promise<unknown>);
    withSession(one, () => sn.manualSeed(1));
    withSession(two, () => sn.manualSeed(2));
    const [a, b] = [await draw(one), await draw(two)];
    const [c, d] = [await draw(one), await draw(two)];
    withSession(one, () => sn.manualSeed(1));
    withSession(two, () => sn.manualSeed(2));
    expect([await draw(two), await draw(one), await draw(one), await draw(two)]).toEqual([b, a, c, d]);
    expect(a).not.toEqual(b);
  });

  test('compute on devices of their own, and each hears of its own programs alone', async () => {
    const names = ['interpreter', 'wasm:1'];
    const made = names.map((name) => {
      const session = new Session();
      const heard = new Set<string>();
      withSession(session, () => {
        sn.setDevice(name);
        onCompile(({ device }) => heard.add(device));
      });
      return { session, heard };
    });
    // Queued beside each other while both devices are opened.
    const values = await Promise.all(
      made.map(({ session }) => withSession(session, () => sn.tensor([1, 2]).mul(3).data())),
    );
    expect(values.map((value) => [...value])).toEqual([
      [3, 6],
      [3, 6],
    ]);
    expect(made.map(({ heard }) => [...heard])).toEqual(names.map((name) => [name]));
  });

  test('have pending values, and programs, of their own', async () => {
    const [one, two] = [onInterpreter(), onInterpreter()];
    const x = withSession(one, () => sn.tensor([1, 2, 3]).exp());
    withSession(two, evaluatePending);
    expect(withSession(one, () => pendingHandles().size)).toBe(1);
    expect(withSession(two, () => [pendingHandles().size, cacheSize()])).toEqual([0, 0]);
    await withSession(one, () => x.data());
    expect(withSession(one, () => [pendingHandles().size, cacheSize()])).toEqual([0, 1]);
    expect(withSession(two, cacheSize)).toBe(0);
  });

  test('have profiles of their own', async () => {
    const [one, two] = [onInterpreter(), onInterpreter()];
    const inner = withSession(one, () =>
      sn.profile(async () => {
        const other = await withSession(two, () => sn.profile(() => sn.tensor([2]).add(1).data()));
        expect(other.counts.runs).toBe(1);
        expect(other.kernels.map(({ program }) => program)).toEqual([0]);
      }),
    );
    expect((await inner).kernels).toEqual([]);
  });

  test('tell faults to reads of their own', async () => {
    const [one, two] = [onInterpreter(), onInterpreter()];
    const wrong = (): sn.Tensor => sn.tensor([1, 2, 3]).take(sn.tensor([7], { dtype: 'i32' }));
    const read = withSession(one, wrong);
    expect(await withSession(two, () => sn.ones([1]).add(1).item())).toBe(2);
    await expect(withSession(one, () => read.data())).rejects.toThrow(/take/);
    // A function that was compiled in one session is traced again in another.
    const f = sn.compile((x: sn.Tensor, at: sn.Tensor) => x.take(at));
    const call = (session: Session, at: number): Promise<unknown> =>
      withSession(session, () =>
        f(sn.tensor([1, 2, 3]).mul(2), sn.tensor([at], { dtype: 'i32' }).add(0)).data(),
      );
    expect(await call(one, 1)).toEqual(Float32Array.of(4));
    await expect(call(two, 9)).rejects.toThrow(/take/);
    expect(await call(one, 2)).toEqual(Float32Array.of(6));
  });
});

describe('values that go from one session to another', () => {
  test('are computed where they are read', async () => {
    const [one, two] = [onInterpreter(), onInterpreter()];
    withSession(two, () => sn.setDevice('wasm:1'));
    const x = withSession(one, () => sn.tensor([1, 2]).add(1));
    const y = withSession(two, () => x.mul(10));
    expect(await withSession(two, () => y.array())).toEqual([20, 30]);
    expect(await withSession(one, () => x.array())).toEqual([2, 3]);
    expect(await withSession(one, () => y.add(x).array())).toEqual([22, 33]);
    withSession(one, evaluatePending);
    expect(withSession(one, () => pendingHandles().size)).toBe(0);
  });

  test('are kept while what waits in another one reads them', async () => {
    const [one, two] = [onInterpreter(), onInterpreter()];
    const x = withSession(one, () => sn.tensor([1, 2]));
    const y = withSession(one, () => x.exp());
    withSession(two, () => x.dispose());
    await withSession(two, () => sn.ones([2]).add(1).data());
    expect(await withSession(one, () => y.log().round().array())).toEqual([1, 2]);
  });

  test('that were set aside wait no more when another one computes them', async () => {
    const [one, two] = [onInterpreter(), onInterpreter()];
    const aside = withSession(one, () => sn.tensor([1, 2]).exp());
    await withSession(one, () => sn.tensor([5]).add(1).data());
    expect(recorded(one).aside.size).toBe(1);
    await withSession(two, () => aside.data());
    expect(recorded(one).aside.size).toBe(0);
    withSession(one, evaluatePending);
  });
});

describe('what subscribes is no longer called once it has left', () => {
  test('to reads', async () => {
    let count = 0;
    const ends = [1, 10].map((each) =>
      onRead(() => {
        count += each;
        return undefined;
      }),
    );
    const x = sn.ones([1]);
    await x.data();
    ends[0]!();
    await x.data();
    ends[1]!();
    await x.data();
    expect(count).toBe(21);
  });

  test('to reads, which it may refuse', async () => {
    const end = onRead(() => Promise.reject(new Error('not now')));
    await expect(sn.ones([1]).data()).rejects.toThrow('not now');
    end();
    expect(await sn.ones([1]).data()).toEqual(Float32Array.of(1));
  });

  test('to nodes', () => {
    const heard: string[][] = [[], []];
    const ends = heard.map((ops) => onNode(({ op }) => ops.push(op)));
    const record = (): void => void sn.ones([3, 5]).exp();
    withSession(new Session(), record);
    ends[0]!();
    withSession(new Session(), record);
    ends[1]!();
    withSession(new Session(), record);
    expect(heard[0]).toContain('exp');
    expect(heard[1]!.length).toBe(2 * heard[0]!.length);
  });

  test('to structures of new sizes', () => {
    let count = 0;
    const graphKey = graphKeyOf<StoredValue>([nodeFor(handleOf(sn.ones([3]).exp()))], () => undefined);
    const ends = [1, 10].map((each) =>
      onNewSizes({
        plan: () => {
          count += each;
          return undefined;
        },
        clear: () => undefined,
      }),
    );
    withSession(new Session(), () => {
      sharedFor(graphKey);
      ends[0]!();
      sharedFor(graphKey);
      ends[1]!();
      sharedFor(graphKey);
    });
    expect(count).toBe(21);
  });

  test('to compilations', async () => {
    const session = onInterpreter();
    const heard: string[] = [];
    const end = withSession(session, () => onCompile(({ what }) => heard.push(what)));
    const compute = (size: number): Promise<unknown> =>
      withSession(session, () => sn.ones([size]).add(1).data());
    await compute(2);
    end();
    await compute(3);
    expect(heard.length).toBe(1);
  });
});

test('a part is made once in each session that needs it', () => {
  let made = 0;
  const part = new SessionPart(() => ({ made: made++ }));
  const [one, two] = [new Session(), new Session()];
  expect(withSession(one, () => part.current)).toBe(part.of(one));
  expect(part.of(two)).toBe(part.of(two));
  expect([part.of(one).made, part.of(two).made, made]).toEqual([0, 1, 2]);
});
