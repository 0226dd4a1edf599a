// Runs an op in parts, as its sharding rule says: operands are cut by an assignment, each process of a mesh does its part in the
// interpreter, and the parts of the result are put together again.

import { isComplex, isFloat, type DType } from '../../src/ir/dtype.ts';
import { constant } from '../../src/ir/build.ts';
import { dims, GraphBuilder, type Node, type NodeOf } from '../../src/ir/graph.ts';
import { offsetsOf } from '../../src/ir/interpret/view.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import { coordinatesOf, type Mesh } from '../../src/ir/mesh/mesh.ts';
import { combining, type BinaryOp, type Monoid } from '../../src/ir/ops.ts';
import { showShape, stridesOf, sizeOf, type FixedShape } from '../../src/ir/shape.ts';
import { emptyData, partCount, type HostArray } from '../../src/ir/value.ts';
import { verify } from '../../src/ir/verify.ts';
import type { ShardAssignment, AxisFactors, ShardPlace, ShardingRule } from '../../src/sharding/rule.ts';
import { localOf } from '../../src/sharding/rules.ts';

/** Throws unless the rule is one of the node: lists of the right lengths, sizes that divide, folds where they are needed. */
export function checkForm(node: Node, { factors, operands, result }: ShardingRule): void {
  const values: readonly (readonly [readonly (readonly number[])[], FixedShape])[] = [
    ...operands.map((axes, i) => [axes, dims(node.inputs[i]!)] as const),
    [result, dims(node)],
  ];
  if (operands.length !== node.inputs.length) throw new Error(`${operands.length} operands`);
  for (const [axes, shape] of values) {
    if (axes.length !== shape.length) throw new Error(`${axes.length} axes of ${shape.length}`);
    axes.forEach((list, axis) => {
      const size = list.reduce((product, factor) => product * factors[factor]!.size, 1);
      const divides = size === 0 ? shape[axis] === 0 : shape[axis]! % size === 0;
      if (!divides) throw new Error(`factors of ${size} in an axis of ${shape[axis]}`);
    });
    const named = axes.flat();
    if (new Set(named).size !== named.length) throw new Error('a factor stands twice in a value');
  }
  factors.forEach(({ fold }, factor) => {
    const isRead = operands.some((axes) => axes.flat().includes(factor));
    const isGiven = result.flat().includes(factor);
    if (!isRead && !isGiven) throw new Error(`nothing has the factor ${factor}`);
    const isLoose = ['barrier', 'customVjp', 'iterate'].includes(node.op);
    const fits = isGiven ? fold === undefined : isLoose || fold !== undefined;
    if (!fits) throw new Error(`factor ${factor} is folded ${fold}`);
  });
}

/** Random mesh axes at factors that they can split, some at none; at factors that are folded only where `folds` says so. */
export function drawAssignment(
  { factors, operands, result }: ShardingRule,
  mesh: Mesh,
  random: () => number,
  folds: boolean,
): ShardAssignment {
  const assigned: string[][] = factors.map(() => []);
  const parts = factors.map(() => 1);
  const axes: readonly AxisFactors[] = [...operands.flat(), ...result];
  // Those before a factor are in single steps.
  const leads = (factor: number): boolean =>
    axes.every(
      (list) =>
        !list.includes(factor) ||
        list.slice(0, list.indexOf(factor)).every((before) => factors[before]!.size === parts[before]),
    );
  for (const { name, size } of mesh.axes) {
    const fitting = factors.flatMap((factor, i) =>
      leads(i) && (folds || factor.fold === undefined) && factor.size % (parts[i]! * size) === 0 ? [i] : [],
    );
    const drawn = fitting[Math.floor(random() * fitting.length)];
    if (drawn === undefined || random() < 0.2) continue;
    assigned[drawn]!.push(name);
    parts[drawn] = parts[drawn]! * size;
  }
  return assigned;
}

/** Which part of a factor a process has, of how many. */
interface Part {
  readonly at: number;
  readonly of: number;
}

const nested = (outer: Part, inner: Part): Part => ({
  at: outer.at * inner.of + inner.at,
  of: outer.of * inner.of,
});

function partOf(mesh: Mesh, names: readonly string[], rank: number): Part {
  const coordinates = coordinatesOf(mesh, rank);
  let part: Part = { at: 0, of: 1 };
  for (const name of names) {
    const { size } = mesh.axes.find((axis) => axis.name === name)!;
    part = nested(part, { at: coordinates.get(name)!, of: size });
  }
  return part;
}

/** Where the parts of an axis lie: blocks, one behind the other. */
function blockOf(shape: FixedShape, axes: readonly AxisFactors[], parts: readonly Part[]) {
  const own = axes.map((list) =>
    list.reduce((outer: Part, factor) => nested(outer, parts[factor]!), { at: 0, of: 1 }),
  );
  const size = shape.map((dim, axis) => dim / own[axis]!.of);
  const first = own.reduce((sum, { at }, axis) => sum + at * size[axis]! * stridesOf(shape)[axis]!, 0);
  return { size, offsets: offsetsOf(size, stridesOf(shape)).map((offset) => offset + first) };
}

function cut(whole: HostArray, axes: readonly AxisFactors[], parts: readonly Part[]): HostArray {
  const { size, offsets } = blockOf(whole.shape, axes, parts);
  const data = emptyData(whole.dtype, offsets.length);
  const each = partCount(whole.dtype);
  for (let i = 0; i < data.length; i++)
    data[i] = whole.data[offsets[Math.floor(i / each)]! * each + (i % each)]!;
  return { dtype: whole.dtype, shape: size, data };
}

/** A graph of one op on two values of one type. */
export function combine(op: BinaryOp, x: HostArray, y: HostArray): HostArray {
  const b = new GraphBuilder();
  const parameters = [x, y].map(({ dtype, shape }, index) =>
    b.add('parameter', [], { index, name: `p${index}`, dtype, shape }),
  );
  const node = b.add(op, parameters as readonly Node[], {}) as Node;
  return interpret({ parameters, outputs: [node] }, [x, y])[0]!;
}

/** The values that the processes compute of their parts of the operands. */
function runParts(
  node: Node,
  inputs: readonly HostArray[],
  rule: ShardingRule,
  mesh: Mesh,
  assignment: ShardAssignment,
): { readonly value: HostArray; readonly parts: readonly Part[] }[] {
  return Array.from({ length: mesh.size }, (_, rank) => {
    const parts = assignment.map((names) => partOf(mesh, names, rank));
    const arrays = inputs.map((input, i) => cut(input, rule.operands[i]!, parts));
    const b = new GraphBuilder();
    const parameters = arrays.map(({ dtype, shape }, index): NodeOf<'parameter'> =>
      b.add('parameter', [], { index, name: `p${index}`, dtype, shape }),
    );
    const place: ShardPlace = {
      b,
      mesh,
      assignment,
      parts: (factor) => parts[factor]!.of,
      part: (factor) => {
        if (parts[factor]!.of === 1) throw new Error(`factor ${factor} is in one part`);
        return constant(b, parts[factor]!.at, 'i32');
      },
    };
    const graph = { parameters, outputs: [localOf(node, parameters as readonly Node[], place)] };
    verify(graph, 'localOf');
    return { value: interpret(graph, arrays)[0]!, parts };
  });
}

/** The whole result from those of the processes, and the largest number among these. */
export function runSplit(
  node: Node,
  inputs: readonly HostArray[],
  rule: ShardingRule,
  mesh: Mesh,
  assignment: ShardAssignment,
): { readonly value: HostArray; readonly largest: number; readonly fold: Monoid | undefined } {
  const results = runParts(node, inputs, rule, mesh, assignment);
  const folded = rule.factors.map(({ fold }, i) => (assignment[i]!.length > 0 ? fold : undefined));
  const fold = folded.find((monoid) => monoid !== undefined);
  // Processes that stand for the same steps agree; those that differ in a folded factor alone are folded.
  const same = new Map<string, HostArray>();
  for (const { value, parts } of results) {
    const key = parts.map(({ at }) => at).join();
    const known = same.get(key);
    if (known === undefined) same.set(key, value);
    else expectNear(value, known, 0);
  }
  let blocks = [...same].map(([key, value]) => ({ value, place: key.split(',').map(Number) }));
  for (const [factor, monoid] of folded.entries()) {
    // What a result has it is split by; where it has nothing to do with a factor, all processes agree.
    if (rule.result.flat().includes(factor)) continue;
    const next = new Map<string, { value: HostArray; place: number[] }>();
    for (const { value, place } of blocks) {
      const block = place.with(factor, 0);
      const known = next.get(block.join());
      if (known !== undefined && monoid === undefined) expectNear(value, known.value, 0);
      const both =
        known === undefined || monoid === undefined ? value : combine(combining[monoid], known.value, value);
      next.set(block.join(), { value: both, place: block });
    }
    blocks = [...next.values()];
  }
  const shape = dims(node);
  const data = emptyData(node.dtype, sizeOf(shape));
  const each = partCount(node.dtype);
  for (const { value, place } of blocks) {
    const parts = place.map((at, factor): Part => ({ at, of: results[0]!.parts[factor]?.of ?? 1 }));
    const { size, offsets } = blockOf(shape, rule.result, parts);
    const expected = showShape(size, node.dtype);
    const seen = showShape(value.shape, value.dtype);
    if (seen !== expected) throw new Error(`a part is ${seen}, not ${expected}`);
    for (let i = 0; i < value.data.length; i++)
      data[offsets[Math.floor(i / each)]! * each + (i % each)] = value.data[i]!;
  }
  return {
    value: { dtype: node.dtype, shape, data },
    largest: largestOf([...results, ...blocks].map(({ value }) => value)),
    fold,
  };
}

export function largestOf(arrays: readonly HostArray[]): number {
  let largest = 0;
  for (const { data } of arrays)
    for (const x of data) if (Number.isFinite(Number(x))) largest = Math.max(largest, Math.abs(Number(x)));
  return largest;
}

/** How far values may be apart that were rounded on the way, as parts of the largest of them. */
export const roundings = (dtype: DType): number =>
  dtype === 'bf16' ? 4e-2 : dtype === 'f16' ? 6e-3 : dtype === 'f64' || dtype === 'c128' ? 1e-12 : 2e-5;

/** Throws unless all elements agree: floats up to `apart`, or, at 0, to the bit; all others exactly. */
export function expectNear(actual: HostArray, expected: HostArray, apart: number): void {
  const [seen, type] = [actual, expected].map(({ shape, dtype }) => showShape(shape, dtype));
  if (seen !== type) throw new Error(`expected ${type}, got ${seen}`);
  const isRounded = isFloat(expected.dtype) || isComplex(expected.dtype);
  for (let i = 0; i < expected.data.length; i++) {
    const [x, y] = [expected.data[i]!, actual.data[i]!];
    if (Object.is(x, y)) continue;
    const near = x === y || (Number.isFinite(x) && Math.abs(Number(x) - Number(y)) <= apart);
    if (!isRounded || apart === 0 || !near)
      throw new Error(`element ${i} of ${type}: expected ${x}, got ${y}`);
  }
}
