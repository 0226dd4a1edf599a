// If, Loop and Scan. Where bodies can be recorded once they are branches and loops of the program
// (steered.ts). Else conditions and trip counts are numbers when the walk meets them, known or read:
// a branch is chosen and loops are written out, each round recording the body again.

import { SinterError } from '../../errors.ts';
import { sizeOf } from '../../ir/shape.ts';
import type { HostArray } from '../../ir/value.ts';
import { full } from '../../tensor/ops/creation/creation.ts';
import { cat, stack } from '../../tensor/ops/shape/join.ts';
import { flip } from '../../tensor/ops/shape/movement.ts';
import { narrow, select } from '../../tensor/ops/shape/indexing.ts';
import { moveaxis, unsqueeze } from '../../tensor/ops/shape/view.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { currentBudget } from '../budget.ts';
import { explained, type GraphPlan, type GraphStep } from '../plan.ts';
import { GraphScope, type RunPlan, type Walk } from '../scope.ts';
import { flexAttention, gradient } from './modified.ts';
import { mostRounds, recordedIf, recordedLoop, recordedScan } from './steered.ts';
import { knownData, knownInts, Value } from '../value.ts';
import { commonWords, unified } from '../words.ts';

export function* runControl(
  step: GraphStep,
  bodies: ReadonlyMap<string, GraphPlan>,
  inputs: readonly (Value | undefined)[],
  scope: GraphScope,
  run: RunPlan,
): Walk<readonly (Value | undefined)[]> {
  switch (step.op) {
    case 'If': {
      const { shape } = inputs[0]!;
      if (sizeOf(shape) !== 1)
        throw new SinterError(
          'E_SHAPE',
          `onnx: ${step.label}: a condition is one element, not [${shape.join()}]`,
        );
      const branches = ['then_branch', 'else_branch'].map((name) => bodies.get(name)!);
      const recorded =
        inputs[0]!.known === undefined
          ? recordedIf(inputs[0]!, branches as [GraphPlan, GraphPlan], scope, run)
          : undefined;
      if (recorded !== undefined) return recorded;
      const condition = yield* isTrue(step, step.inputs[0]!, inputs[0]!);
      return yield* run(branches[condition ? 0 : 1]!, new GraphScope(scope));
    }
    case 'Loop':
      return yield* loop(step, bodies.get('body')!, inputs, scope, run);
    case 'Scan':
      return yield* scan(step, bodies.get('body')!, inputs, scope, run);
    case 'SequenceMap':
      return yield* sequenceMap(step, bodies.get('body')!, inputs, scope, run);
    case 'FlexAttention':
      return [explained(step, () => flexAttention(step, bodies, inputs as Value[], scope, run))];
    case 'Gradient':
      return explained(step, () => gradient(bodies.get('y')!, inputs as Value[], scope, run));
    default:
      throw new SinterError('E_UNSUPPORTED', `onnx: ${step.label}: no such control flow`);
  }
}

function* isTrue(step: GraphStep, name: string, value: Value): Walk<boolean> {
  const array = value.host() ?? (yield { name, value, step });
  return Boolean(array.data[0]);
}

/** The elements of an input, at hand or read. */
function* hostOf(step: GraphStep, place: number, value: Value): Walk<HostArray> {
  return value.host() ?? (yield { name: step.inputs[place]!, value, step });
}

/** Runs the body on values for its inputs, in their order. */
function* round(
  body: GraphPlan,
  values: readonly (Value | undefined)[],
  scope: GraphScope,
  run: RunPlan,
): Walk<Value[]> {
  // Elements of lines and what is gathered are nodes too.
  currentBudget().spend(1 + values.length, 'a round of a loop');
  const inner = new GraphScope(scope);
  body.inputs.forEach((name, i) => {
    const value = values[i];
    if (value !== undefined) inner.set(name, value);
  });
  return yield* run(body, inner);
}

/** The body on each value of the first sequence, with the values of the others at its place. */
function* sequenceMap(
  step: GraphStep,
  body: GraphPlan,
  inputs: readonly (Value | undefined)[],
  scope: GraphScope,
  run: RunPlan,
): Walk<Value[]> {
  const count = inputs[0]?.items?.length;
  const odd = inputs.find((value) => value?.items !== undefined && value.items.length !== count);
  if (count === undefined || odd !== undefined) {
    const problem =
      count === undefined ? 'input 0 is no sequence' : `sequences of other lengths than ${count}`;
    throw new SinterError('E_VALUE', `onnx: ${step.label}: ${problem}`);
  }
  const rows: Value[][] = [];
  for (let i = 0; i < count; i++) {
    const own = inputs.map((value) => (value?.items === undefined ? value : value.items[i]));
    rows.push(yield* round(body, own, scope, run));
  }
  return body.outputs.map((_, k) => {
    const items = rows.map((row) => row[k]!);
    return Value.sequence(items, items[0]?.type ?? inputs[0]?.type ?? 'float');
  });
}

/** Inputs: the most rounds, a condition, then the values that rounds hand on. */
function* loop(
  step: GraphStep,
  body: GraphPlan,
  [maxTrips, condition, ...carried]: readonly (Value | undefined)[],
  scope: GraphScope,
  run: RunPlan,
): Walk<Value[]> {
  const limitOf = ({ known }: Value): number | Value | undefined =>
    known === undefined ? maxTrips : Number(known.data[0]);
  const recorded = carried.some((value) => value === undefined)
    ? undefined
    : recordedLoop(
        { body, limit: maxTrips && limitOf(maxTrips), condition, carried: carried as Value[] },
        scope,
        run,
      );
  if (recorded !== undefined) return recorded;
  const limit = maxTrips === undefined ? Infinity : Number((yield* hostOf(step, 0, maxTrips)).data[0]);
  let goesOn = condition === undefined ? true : yield* isTrue(step, step.inputs[1]!, condition);
  let state = carried;
  const rows: Value[][] = [];
  for (let i = 0; goesOn && i < limit; i++) {
    if (i >= mostRounds)
      throw new SinterError('E_LIMIT', `onnx: ${step.label}: more than ${mostRounds} rounds`);
    const truth = knownData('bool', [], Uint8Array.of(1));
    const [next, ...results] = yield* round(body, [knownInts([i], []), truth, ...state], scope, run);
    // Where no condition is given as an input, the condition that the body gives is ignored.
    goesOn = condition === undefined || (yield* isTrue(step, body.outputs[0]!, next!));
    state = results.slice(0, carried.length);
    rows.push(results.slice(carried.length));
  }
  const count = body.outputs.length - 1 - carried.length;
  if (rows.length > 0 || count === 0) {
    return [
      ...(state as Value[]),
      ...explained(step, () => Array.from({ length: count }, (_, k) => joined(rows, k, 0))),
    ];
  }
  // A round whose values are not read gives the shape of what is gathered.
  const truth = knownData('bool', [], Uint8Array.of(1));
  const [, ...sample] = yield* round(body, [knownInts([0], []), truth, ...state], scope, run);
  return [...(state as Value[]), ...sample.slice(carried.length).map((value) => none(value, 0))];
}

/** What rounds gave at a place, one after the other along an axis. */
function joined(rows: readonly (readonly Value[])[], place: number, axis: number): Value {
  const values = unified(rows.map((row) => row[place]!)) as Value[];
  const tensors = values.map(({ tensor }) => tensor);
  return Value.of(stack(tensors, axis), values[0]!.type, undefined, commonWords(values));
}

/** An empty tensor of rows of this shape. */
function none({ tensor, type, words }: Value, axis: number): Value {
  return Value.of(narrow(unsqueeze(tensor, axis), axis, 0, 0), type, undefined, words);
}

/** Inputs: the state, then sequences that are read along an axis, one element a round. */
function* scan(
  step: GraphStep,
  body: GraphPlan,
  given: readonly (Value | undefined)[],
  scope: GraphScope,
  run: RunPlan,
): Walk<Value[]> {
  const { attributes } = step;
  const legacy = step.opset < 9;
  const inputs = (legacy ? given.slice(1) : given) as readonly Value[];
  if (legacy) return yield* batchedScan(step, body, inputs, given[0], scope, run);
  const sequences = attributes.int('num_scan_inputs', 1);
  const states = inputs.length - sequences;
  const outputs = body.outputs.length - states;
  const axes = attributes.ints('scan_input_axes') ?? [];
  const backwards = attributes.ints('scan_input_directions') ?? [];
  const lines = inputs.slice(states).map(({ tensor, type }, k) => {
    const line = moveaxis(tensor, axes[k] ?? 0, 0);
    return Value.of(backwards[k] === 1 ? flip(line, 0) : line, type);
  });
  const odd = lines.find(({ shape }) => shape[0] !== lines[0]!.shape[0]);
  if (odd !== undefined) {
    const problem = `sequences of ${lines[0]!.shape[0]} and of ${odd.shape[0]} elements`;
    throw new SinterError('E_SHAPE', `onnx: ${step.label}: ${problem}`);
  }
  const outAxes = attributes.ints('scan_output_axes') ?? [];
  const outBackwards = attributes.ints('scan_output_directions') ?? [];
  const recorded = recordedScan(body, inputs.slice(0, states), lines, scope, run);
  if (recorded !== undefined) {
    const placed = recorded.stacks.map(({ tensor, type }, k) => {
      const line = outBackwards[k] === 1 ? flip(tensor, 0) : tensor;
      const axis = outAxes[k] ?? 0;
      return Value.of(moveaxis(line, 0, axis), type);
    });
    return [...recorded.state, ...placed];
  }
  const { state, rows } = yield* rounds(body, inputs.slice(0, states), lines, scope, run);
  if (rows.length === 0 && outputs > 0) {
    const zeros = lines.map(({ tensor, type }) => Value.of(sizedZeros(tensor), type));
    const sample = yield* round(body, [...state, ...zeros], scope, run);
    return [...state, ...sample.slice(states).map((value, k) => none(value, outAxes[k] ?? 0))];
  }
  const results = explained(step, () =>
    Array.from({ length: outputs }, (_, k) =>
      joined(outBackwards[k] === 1 ? rows.toReversed() : rows, k, outAxes[k] ?? 0),
    ),
  );
  return [...state, ...results];
}

/** An element of a line that has none. */
function sizedZeros(line: Tensor): Tensor {
  return full(line.shape.slice(1), 0, { dtype: line.dtype });
}

function* rounds(
  body: GraphPlan,
  start: readonly Value[],
  lines: readonly Value[],
  scope: GraphScope,
  run: RunPlan,
  length: number = lines[0]?.shape[0] ?? 0,
): Walk<{ state: readonly Value[]; rows: Value[][] }> {
  let state = start;
  const rows: Value[][] = [];
  for (let i = 0; i < length; i++) {
    const elements = lines.map(({ tensor, type }) => Value.of(select(tensor, 0, i), type));
    const results = yield* round(body, [...state, ...elements], scope, run);
    state = results.slice(0, start.length);
    rows.push(results.slice(start.length));
  }
  return { state, rows };
}

/**
 * Opset 8: everything has a batch axis in front, and each of the batch is scanned by itself, as far
 * as its length goes.
 */
function* batchedScan(
  step: GraphStep,
  body: GraphPlan,
  inputs: readonly Value[],
  lengths: Value | undefined,
  scope: GraphScope,
  run: RunPlan,
): Walk<Value[]> {
  const sequences = step.attributes.int('num_scan_inputs', 1);
  const states = inputs.length - sequences;
  const [batch, longest] = inputs.at(-1)!.shape as readonly [number, number];
  const backwards = step.attributes.ints('directions') ?? [];
  const counts =
    lengths === undefined
      ? new Array<number>(batch).fill(longest)
      : Array.from((yield* hostOf(step, 0, lengths)).data as BigInt64Array, Number);
  const perBatch: Value[][] = [];
  for (let n = 0; n < batch; n++) {
    const own = inputs.map(({ tensor, type }) => Value.of(select(tensor, 0, n), type));
    const count = counts[n]!;
    const lines = own.slice(states).map(({ tensor, type }, k) => {
      const line = narrow(tensor, 0, 0, count);
      return Value.of(backwards[k] === 1 ? flip(line, 0) : line, type);
    });
    const { state, rows } = yield* rounds(body, own.slice(0, states), lines, scope, run, count);
    const outputs = body.outputs.length - states;
    const results = Array.from({ length: outputs }, (_, k) => filled(joined(rows, k, 0), longest));
    perBatch.push([...state, ...results]);
  }
  return body.outputs.map((_, k) => joined(perBatch, k, 0));
}

/** Zeros behind, up to as many rows. */
function filled({ tensor, type }: Value, rows: number): Value {
  const missing = rows - tensor.shape[0]!;
  if (missing === 0) return Value.of(tensor, type);
  const rest = full([missing, ...tensor.shape.slice(1)], 0, { dtype: tensor.dtype });
  return Value.of(cat([tensor, rest], 0), type);
}
