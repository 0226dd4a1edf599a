// The states in a value's life (src/tensor/handle/state.ts): whatever a program does, a value is in one of them, goes from one to another
// only where the diagram has an arrow, and has the value that plain numbers say.
//
// Its tests follow one another: the last one asks which transitions were seen.

import * as fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { CompilerBug } from '../../src/errors.ts';
import { compile, ones, setDevice, tensor, type Tensor } from '../../src/index.ts';
import { Handle } from '../../src/tensor/handle/handle.ts';
import { pendingHandles } from '../../src/tensor/handle/recording.ts';
import {
  disposed,
  donated,
  donating,
  moved,
  pending,
  transitions,
  type StateKind,
  type HandleState,
  type Transition,
} from '../../src/tensor/handle/state.ts';
import { handleOf } from '../../src/tensor/tensor.ts';
import { StoredValue } from '../../src/tensor/storage/storage.ts';
import { checkLawAsync } from '../support/property.ts';
import { collect } from '../support/collector.ts';
import { casesOf } from '../support/sample.ts';

const names = Object.keys(transitions) as Transition[];
const arrows = names.flatMap((by) =>
  Object.entries(transitions[by]).map(([from, to]) => `${from} ${by} ${to}`),
);

/** Arrows that were taken, and what was not as drawn. */
const taken = new Set<string>();
const wrong: string[] = [];
/** The state that a handle was left in by the last transition. */
const last = new WeakMap<Handle, StateKind>();

const originals = names.map(
  (name) => [name, Object.getOwnPropertyDescriptor(Handle.prototype, name)!] as const,
);

beforeAll(() => {
  setDevice('interpreter');
  for (const [name, descriptor] of originals) {
    const own = descriptor.value as (this: Handle, ...args: unknown[]) => unknown;
    const watched = function (this: Handle, ...args: unknown[]): unknown {
      const from = this.state.kind;
      if ((last.get(this) ?? from) !== from) wrong.push(`${last.get(this)} became ${from} by nothing`);
      const result = own.apply(this, args);
      const to = this.state.kind;
      last.set(this, to);
      const arrow = `${from} ${name} ${to}`;
      taken.add(arrow);
      if (!arrows.includes(arrow)) wrong.push(arrow);
      return result;
    };
    Object.defineProperty(Handle.prototype, name, { ...descriptor, value: watched });
  }
});

afterAll(() => {
  for (const [name, descriptor] of originals) Object.defineProperty(Handle.prototype, name, descriptor);
  setDevice(undefined);
});

afterEach(() => expect(wrong).toEqual([]));

/** What a tensor is to be: two elements, each of which depends on leaves by the same factors. */
interface Model {
  readonly elements: readonly number[];
  readonly factors: ReadonlyMap<Variable, number>;
  readonly from: readonly Model[];
  tracking: 'none' | 'history' | 'released' | 'leaf';
  /** Shared by values that are the same one. */
  readonly memory: { isDonated: boolean };
}

interface Variable {
  readonly tensor: Tensor;
  value: Model;
  grad: number | undefined;
}

const constant = (elements: readonly number[]): Model => ({
  elements,
  factors: new Map(),
  from: [],
  tracking: 'none',
  memory: { isDonated: false },
});

/** What operations make of values: a sum with factors. */
function combined(terms: readonly (readonly [Model, number])[]): Model {
  const factors = new Map<Variable, number>();
  for (const [{ factors: of }, times] of terms)
    for (const [leaf, factor] of of) factors.set(leaf, (factors.get(leaf) ?? 0) + factor * times);
  const isTracked = terms.some(([{ tracking }]) => tracking !== 'none');
  return {
    elements: [0, 1].map((i) => terms.reduce((sum, [{ elements }, times]) => sum + elements[i]! * times, 0)),
    factors,
    from: terms.map(([model]) => model),
    tracking: isTracked ? 'history' : 'none',
    memory: { isDonated: false },
  };
}

/** Whether a history leads through a value whose history was released, which may have been dropped by now. */
function leadsThroughReleased(model: Model): boolean {
  const seen = new Set([model]);
  for (const each of seen) {
    if (each.tracking === 'released') return true;
    if (each.tracking === 'history') for (const other of each.from) seen.add(other);
  }
  return false;
}

/**
 * Whether a value was computed from one that was donated since: one that was passed over before that cannot be computed
 * again, and says so.
 */
function isFromDonated(model: Model): boolean {
  const seen = new Set([model]);
  for (const each of seen) {
    if (each.memory.isDonated) return true;
    for (const other of each.from) seen.add(other);
  }
  return false;
}

const half = (x: Tensor, y: Tensor): Tensor => x.add(y).mul(0.5);
const takes = compile((x: Tensor, y: Tensor): Tensor => half(x, y), { donate: [0] });
const replaces = compile(
  (x: Tensor, y: Tensor): Tensor => {
    x.assign(half(x, y));
    return y.mul(0.5);
  },
  { donate: [0] },
);

const seed = (): Tensor => tensor([1, 1]);

const actions = [
  'make',
  'add',
  'average',
  'negate',
  'read',
  'check',
  'require',
  'detach',
  'backward',
  'assign',
  'dispose',
  'take',
  'replace',
  'drop',
  'collect',
] as const;

interface Action {
  readonly kind: (typeof actions)[number];
  readonly a: number;
  readonly b: number;
}

class Program {
  readonly #variables: Variable[] = [];

  async run(program: readonly Action[]): Promise<void> {
    this.#make(constant([1, -2]), tensor([1, -2]));
    this.#make(constant([3, 5]), tensor([3, 5]));
    for (const action of program) {
      await this.#act(action);
      this.#checkStates();
    }
    for (const variable of this.#variables) await this.#check(variable);
  }

  #make(value: Model, made: Tensor): void {
    this.#variables.push({ tensor: made, value, grad: undefined });
  }

  #give(variable: Variable): void {
    this.#variables.splice(this.#variables.indexOf(variable), 1);
  }

  async #act({ kind, a, b }: Action): Promise<void> {
    const variables = this.#variables;
    const x = variables[a % variables.length]!;
    const y = variables[b % variables.length]!;
    const isLastTwo = variables.length < 3;
    switch (kind) {
      case 'make':
        return this.#make(constant([a, b]), tensor([a, b]));
      case 'add':
        return this.#make(
          combined([
            [x.value, 0.5],
            [y.value, 1],
          ]),
          x.tensor.mul(0.5).add(y.tensor),
        );
      case 'average':
        return this.#make(
          combined([
            [x.value, 0.5],
            [y.value, 0.5],
          ]),
          half(x.tensor, y.tensor),
        );
      case 'negate':
        return this.#make(combined([[x.value, -1]]), x.tensor.neg());
      case 'read':
        return this.#checkElements(x);
      case 'check':
        return this.#check(x);
      case 'require':
        return this.#require(x);
      case 'detach':
        x.tensor.requiresGrad_(false);
        x.value = { ...x.value, factors: new Map(), from: [x.value], tracking: 'none' };
        return;
      case 'backward':
        return this.#backward(x, b % 2 === 0);
      case 'assign':
        x.tensor.assign(y.tensor);
        return this.#assigned(x, { ...combined([[y.value, 1]]), memory: y.value.memory });
      case 'replace': {
        if (x === y) return;
        const [value, result] = [
          combined([
            [x.value, 0.5],
            [y.value, 0.5],
          ]),
          combined([[y.value, 0.5]]),
        ];
        x.value.memory.isDonated = true;
        this.#make(result, replaces(x.tensor, y.tensor));
        return this.#assigned(x, value);
      }
      case 'take':
        if (x === y || isLastTwo) return;
        this.#give(x);
        x.value.memory.isDonated = true;
        this.#make(
          combined([
            [x.value, 0.5],
            [y.value, 0.5],
          ]),
          takes(x.tensor, y.tensor),
        );
        return void expect(() => x.tensor.neg()).toThrow('was donated');
      case 'dispose':
        if (isLastTwo) return;
        this.#give(x);
        x.tensor.dispose();
        return void expect(() => x.tensor.neg()).toThrow('was disposed');
      case 'drop':
        return isLastTwo ? undefined : this.#give(x);
      case 'collect':
        collect();
        return new Promise((resolve) => void setImmediate(resolve));
      default:
        return kind satisfies never;
    }
  }

  #require(x: Variable): void {
    x.tensor.requiresGrad_();
    if (x.value.tracking !== 'none') return;
    x.value = {
      ...x.value,
      factors: new Map([[x, 1]]),
      from: [x.value],
      tracking: 'leaf',
    };
  }

  #assigned(x: Variable, value: Model): void {
    if (x.value.tracking !== 'leaf') x.value = value;
    else x.value = { ...value, factors: x.value.factors, from: [value], tracking: 'leaf' };
  }

  #backward({ tensor: from, value }: Variable, retainGraph: boolean): void {
    if (value.tracking === 'none' || value.tracking === 'released')
      return void expect(() => from.backward(seed())).toThrow(
        value.tracking === 'none' ? 'does not depend on any tensor that requires gradients' : 'was released',
      );
    try {
      from.backward(seed(), { retainGraph });
    } catch (error) {
      if (!(leadsThroughReleased(value) && String(error).includes('was released'))) throw error;
      return;
    }
    for (const [leaf, factor] of value.factors) {
      if (!this.#variables.includes(leaf)) continue;
      leaf.grad = (leaf.grad ?? 0) + factor;
    }
    if (!retainGraph && value.tracking === 'history') value.tracking = 'released';
  }

  async #check(variable: Variable): Promise<void> {
    const { tensor: is, value, grad } = variable;
    expect(is.requiresGrad).toBe(value.tracking !== 'none');
    expect(await is.grad?.array()).toEqual(grad === undefined ? undefined : [grad, grad]);
    await this.#checkElements(variable);
  }

  /** Zeros have no sign here. */
  async #checkElements({ tensor: is, value }: Variable): Promise<void> {
    try {
      const elements = (await is.array()) as number[];
      expect(elements.map((each) => each + 0)).toEqual(value.elements.map((each) => each + 0));
    } catch (error) {
      if (!(isFromDonated(value) && String(error).includes('which was donated'))) throw error;
    }
  }

  #checkStates(): void {
    for (const handle of pendingHandles()) expect(handle.state.kind).toBe('pending');
    for (const { tensor: is, value } of this.#variables) {
      const handle = handleOf(is);
      expect(last.get(handle) ?? handle.state.kind).toBe(handle.state.kind);
      expect(['pending', 'passed', 'aside', 'evaluated']).toContain(handle.state.kind);
      expect(handle.tracking).toBe(value.tracking);
    }
  }
}

describe('a program', () => {
  test('has the values of plain numbers, and takes arrows of the diagram only', async () => {
    const step = fc.record({ kind: fc.constantFrom(...actions), a: fc.nat(12), b: fc.nat(12) });
    const programs = fc.array(step, { minLength: 1, maxLength: 24 });
    await checkLawAsync(casesOf(200, 40), programs, (program) => new Program().run(program));
  });

  test('takes every arrow', async () => {
    const x = tensor([1, 2]);
    const other = tensor([5]);
    // Pending values, and what ends or replaces them.
    x.neg().dispose();
    const leaf = x.neg().requiresGrad_();
    expect(await x.neg().assign(x.mul(2)).array()).toEqual([2, 4]);
    expect(await leaf.array()).toEqual([-1, -2]);
    // Passed over: asked for again, assigned to, disposed, computed for another of the same node. Each has a
    // structure of its own, because a structure keeps what was asked for again.
    const passed = async (op: (x: Tensor) => Tensor): Promise<[Tensor, Tensor]> => {
      const twins: [Tensor, Tensor] = [op(x), op(x)];
      expect(await twins[0].add(1).array()).toHaveLength(2);
      for (const twin of twins) expect(handleOf(twin).state.kind).toBe('passed');
      return twins;
    };
    const [again, same] = await passed((of) => of.abs());
    expect(await again.sub(1).array()).toEqual([0, 1]);
    expect(handleOf(again).state.kind).toBe('evaluated');
    expect(await same.array()).toEqual([1, 2]);
    const kept = x.abs();
    await kept.add(1).array();
    expect(await kept.array()).toEqual([1, 2]);
    const [assigned, given] = await passed((of) => of.square());
    assigned.assign(other.add(x));
    expect(await assigned.array()).toEqual([6, 7]);
    given.dispose();
    // Aside: read, assigned to, disposed, computed for another of the same node.
    const constant = ones([2]);
    const twin = tensor([0, 0]);
    twin.assign(constant);
    const aside = [1, 2, 3].map((factor) => other.mul(factor));
    await x.add(1).array();
    for (const each of [twin, ...aside]) expect(handleOf(each).state.kind).toBe('aside');
    aside[0]!.assign(tensor([9]));
    expect(await aside[0]!.array()).toEqual([9]);
    aside[1]!.dispose();
    expect(await aside[2]!.array()).toEqual([15]);
    expect(await constant.array()).toEqual([1, 1]);
    expect(await twin.array()).toEqual([1, 1]);
    // Donated to a call that gives another value, gives none, or fails.
    const value = tensor([8, 8]);
    expect(await replaces(value, x).array()).toEqual([0.5, 1]);
    expect(await value.array()).toEqual([4.5, 5]);
    expect(await takes(value, x).array()).toEqual([2.75, 3.5]);
    const elsewhere = tensor([1, 1]);
    const fails = compile(
      (of: Tensor): Tensor => {
        elsewhere.grad = of.mul(2);
        return of.mul(3);
      },
      { donate: [0] },
    );
    expect(await fails(tensor([1, 1])).array()).toEqual([3, 3]);
    elsewhere.dispose();
    const unharmed = tensor([2, 2]);
    expect(() => fails(unharmed)).toThrow('was disposed');
    expect(await unharmed.array()).toEqual([2, 2]);
    expect(arrows.filter((arrow) => !taken.has(arrow))).toEqual([]);
  });
});

test('no other transition is possible', () => {
  const storage = StoredValue.ofHost('f32', [1], new Uint8Array(4));
  const held = { leave: (): void => undefined };
  const structure = { want: (): void => undefined };
  const states: readonly HandleState[] = [
    pending.fusible,
    { kind: 'passed', structure, position: 0 },
    { kind: 'aside', held, wanted: 'fusible' },
    { kind: 'evaluated', storage },
    donating,
    disposed,
    donated,
  ];
  for (const by of names)
    for (const from of states)
      for (const to of states) {
        if (transitions[by][from.kind] === to.kind) expect(moved(by, from, to)).toBe(to);
        else expect(() => moved(by, from, to)).toThrow(CompilerBug);
      }
});
