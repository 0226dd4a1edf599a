// Random valid programs with inputs, as a fast-check arbitrary. A program is a list of steps, each a kind and some dice; a
// step picks earlier nodes by index and adds a node, so dropping steps and lowering dice shrinks a failure to a few lines.

import * as fc from 'fast-check';

import { isFloat } from '../../../src/ir/dtype.ts';
import { topological, type Graph, type Node } from '../../../src/ir/graph.ts';
import { print } from '../../../src/ir/text/print.ts';
import { showShape, sizeOf } from '../../../src/ir/shape.ts';
import type { HostArray } from '../../../src/ir/value.ts';
import { Draft, Unfit, type DraftOptions } from './draft.ts';
import { stepKinds, steps, type Dice, type StepKind } from './steps.ts';

export interface Program {
  readonly graph: Graph;
  readonly inputs: readonly HostArray[];
}

export interface ProgramOptions extends DraftOptions {
  readonly maxSteps?: number;
  /** Kinds of steps to leave out, e.g. `conv` while a device cannot run it. */
  readonly without?: readonly StepKind[];
  /** Sizes of the axes of parameters; simpler ones first. */
  readonly sizes?: readonly number[];
}

/** Sizes of axes, most often small; earlier ones are simpler. */
const usualSizes = [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4, 2, 3, 7, 17, 0];

const die: fc.Arbitrary<number> = fc.nat({ max: 2 ** 20 });

/** Random programs; the counterexample of a failed property prints as IR text with its inputs. */
export function randomProgram(options: ProgramOptions = {}): fc.Arbitrary<Program> {
  const kinds = stepKinds.filter((kind) => options.without?.includes(kind) !== true);
  const sizes = options.sizes ?? usualSizes;
  const size = fc.nat({ max: sizes.length - 1 }).map((i) => sizes[i]!);
  const parameter = fc.record({
    dtype: die,
    shape: fc.array(size, { maxLength: 4 }).filter((shape) => sizeOf(shape) <= 120),
    seed: die,
  });
  const step = fc.record({
    kind: fc.nat({ max: kinds.length - 1 }),
    dice: fc.array(die, { minLength: 14, maxLength: 14 }),
  });
  // Without bias: fast-check would prefer short programs and low dice, which shrinking finds anyway.
  return fc
    .noBias(
      fc.record({
        parameters: fc.array(parameter, { minLength: 1, maxLength: 3 }),
        steps: fc.array(step, { maxLength: options.maxSteps ?? 24, size: 'max' }),
        outputs: fc.array(die, { maxLength: 3 }),
      }),
    )
    .map((recipe) => {
      const draft = new Draft(options);
      for (const { dtype, shape, seed } of recipe.parameters) {
        const type = draft.dtypes[dtype % draft.dtypes.length]!;
        draft.nodes.push(draft.parameter(draft.fill(type, shape, seed)));
      }
      for (const { kind, dice } of recipe.steps) takeStep(draft, kinds[kind]!, dice);
      const graph = { parameters: draft.parameters, outputs: chooseOutputs(draft.nodes, recipe.outputs) };
      const program = { graph, inputs: draft.inputs };
      return Object.assign(program, { [fc.toStringMethod]: () => describeProgram(program) });
    });
}

/** The latest node, and some others, of those that no node reads. */
function chooseOutputs(nodes: readonly Node[], dice: readonly number[]): Node[] {
  const read = new Set(topological(nodes).flatMap((node) => node.inputs));
  const unread = nodes.filter((node) => !read.has(node));
  return [nodes.at(-1)!, ...dice.map((at) => unread[at % unread.length]!)];
}

function takeStep(draft: Draft, kind: StepKind, numbers: readonly number[]): void {
  let at = 0;
  const dice: Dice = (sides) => (sides <= 1 ? 0 : (numbers[at++] ?? 0) % sides);
  try {
    draft.nodes.push(steps[kind](draft, dice));
  } catch (error) {
    if (!(error instanceof Unfit)) throw error;
  }
}

/** IR text and inputs, to reproduce a failure by hand. */
export function describeProgram({ graph, inputs }: Program): string {
  const lines = inputs.map((input, i) => {
    const values = Array.from(input.data as Float64Array, (x) => (Object.is(x, -0) ? '-0' : String(x)));
    return `%${i}: ${showShape(input.shape, input.dtype)} = [${values.join(', ')}]`;
  });
  return `\n${print(graph)}${lines.join('\n')}\n`;
}

/**
 * Throws unless dtypes, shapes and elements agree: floats within `tolerance`·max(1, |x|), NaN with NaN, all else exactly.
 * A tolerance of 0 also tells −0 from 0.
 */
export function expectClose(actual: HostArray, expected: HostArray, tolerance: number): void {
  const type = showShape(expected.shape, expected.dtype);
  const seen = showShape(actual.shape, actual.dtype);
  if (seen !== type) throw new Error(`expected ${type}, got ${seen}`);
  for (let i = 0; i < expected.data.length; i++) {
    const [x, y] = [expected.data[i]!, actual.data[i]!];
    const close = Object.is(x, y) || (isFloat(expected.dtype) && isClose(Number(x), Number(y), tolerance));
    if (!close) throw new Error(`element ${i} of ${type}: expected ${show(x)}, got ${show(y)}`);
  }
}

function isClose(x: number, y: number, tolerance: number): boolean {
  if (tolerance === 0) return false;
  return x === y || (Number.isFinite(x) && Math.abs(x - y) <= tolerance * Math.max(1, Math.abs(x)));
}

function show(x: number | bigint): string {
  return Object.is(x, -0) ? '-0' : String(x);
}
