// Differential testing: random programs over special values and awkward sizes, each run by every device that is given and compared with
// the reference interpreter. Programs run in batches, merged into one graph: that is faster than one by one, and lets the compiler
// share kernels among parts that know nothing of each other. A batch that differs is run program by program, and what differs there
// is shrunk.

import * as fc from 'fast-check';
import { GraphBuilder, topological, type Node, type NodeOf } from '../../../src/ir/graph.ts';
import { interpret } from '../../../src/ir/interpret/interpret.ts';
import type { HostArray } from '../../../src/ir/value.ts';
import { realDTypes, type DType } from '../../../src/ir/dtype.ts';
import type { Device } from '../../../src/runtime/device.ts';
import { targetOf } from '../../../src/schedule/target.ts';
import { runOnDevice } from '../execute.ts';
import { describeProgram, expectClose, randomProgram, type Program } from './graph.ts';

/** Sizes 0, 1 and 2³ ± 1, beside the usual small ones. */
const awkwardSizes = [1, 2, 3, 8, 7, 9, 1, 2, 3, 4, 8, 7, 9, 5, 1, 2, 0, 17];

const everywhere: readonly DType[] = realDTypes.filter((dtype) => dtype !== 'f64');

/** Random programs of special values, in the dtypes that the device computes in. */
export function awkwardPrograms(device: Device): fc.Arbitrary<Program> {
  const dtypes = targetOf(device.facts).dtypes.includes('f64') ? realDTypes : everywhere;
  return randomProgram({ dtypes, values: 'edges', sizes: awkwardSizes, maxSteps: 16 });
}

/** f16 keeps 11 bits: two roundings apart is 2e-3. */
const tolerance = (dtype: DType): number => (dtype === 'bf16' ? 2e-2 : dtype === 'f16' ? 4e-3 : 1e-3);

/** Several programs as one, with their parameters and outputs behind each other. */
export function merged(programs: readonly Program[]): Program {
  const b = new GraphBuilder();
  const parameters: NodeOf<'parameter'>[] = [];
  const outputs: Node[] = [];
  for (const { graph } of programs) {
    const made = new Map<Node, Node>();
    for (const parameter of graph.parameters) {
      const index = parameters.length;
      const copy = b.add('parameter', [], { ...parameter.attrs, index, name: `p${index}` });
      parameters.push(copy);
      made.set(parameter, copy as Node);
    }
    const known = (node: Node): Node => {
      const copy = made.get(node);
      if (copy === undefined) throw new Error(`${node.op} stands before its operands`);
      return copy;
    };
    for (const node of topological(graph.outputs))
      if (!made.has(node)) made.set(node, b.copy(node, node.inputs.map(known)));
    outputs.push(...graph.outputs.map(known));
  }
  return { graph: { parameters, outputs }, inputs: programs.flatMap(({ inputs }) => inputs) };
}

/** Why the device disagrees with the interpreter on a program; undefined where it does not. */
export async function disagreement(device: Device, { graph, inputs }: Program): Promise<string | undefined> {
  const expected = interpret(graph, inputs);
  try {
    const actual = await runOnDevice(device, targetOf(device.facts), graph, inputs);
    actual.forEach((got, i) => expectClose(got, expected[i] as HostArray, tolerance(got.dtype)));
    const failure = await device.finish();
    return failure === undefined ? undefined : String(failure);
  } catch (error) {
    return error instanceof Error ? (error.stack ?? error.message) : String(error);
  }
}

/** A program on which a device disagrees with the interpreter, as small as shrinking made it. */
export interface Difference {
  readonly seed: number;
  readonly reason: string;
  readonly program: string;
}

/** What the batch of programs drawn from `seed` shows; empty where all agree. */
export async function differencesOf(device: Device, seed: number, count: number): Promise<Difference[]> {
  const programs = awkwardPrograms(device);
  const drawn = fc.sample(programs, { numRuns: count, seed });
  if ((await disagreement(device, merged(drawn))) === undefined) return [];
  let smallest: Program | undefined;
  const result = await fc.check(
    fc.asyncProperty(programs, async (program) => {
      const reason = await disagreement(device, program);
      if (reason === undefined) return;
      smallest = program;
      throw new Error(reason);
    }),
    { numRuns: count, seed },
  );
  if (smallest !== undefined) {
    const reason = result.errorInstance instanceof Error ? result.errorInstance.message : 'unknown';
    return [{ seed, reason, program: describeProgram(smallest) }];
  }
  const together = await disagreement(device, merged(drawn));
  if (together === undefined) return [{ seed, reason: 'differed once, and never again', program: '' }];
  return [
    { seed, reason: `only merged: ${together}`, program: describeProgram(await lessOf(device, drawn)) },
  ];
}

/** The fewest of these programs, found by halving, that differ when they are merged. */
async function lessOf(device: Device, programs: readonly Program[]): Promise<Program> {
  let kept = [...programs];
  for (let part = Math.ceil(kept.length / 2); part >= 1; part = part === 1 ? 0 : Math.ceil(part / 2)) {
    for (let at = 0; at < kept.length;) {
      const rest = [...kept.slice(0, at), ...kept.slice(at + part)];
      if (rest.length > 0 && (await disagreement(device, merged(rest))) !== undefined) kept = rest;
      else at += part;
    }
  }
  return merged(kept);
}
