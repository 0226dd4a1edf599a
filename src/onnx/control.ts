// If, Loop and Scan. Conditions and trip counts are numbers when the walk meets them, known or read, so a branch is chosen and
// loops are written out: each round records the body again.

import { SinterError } from '../errors.ts';
import { stack } from '../tensor/ops/join.ts';
import { flip } from '../tensor/ops/movement.ts';
import { select } from '../tensor/ops/indexing.ts';
import { moveaxis } from '../tensor/ops/view.ts';
import type { Plan, Step } from './plan.ts';
import { Scope, type RunPlan, type Walk } from './scope.ts';
import { knownData, knownInts, Value } from './value.ts';

/** Rounds after which a loop counts as endless. */
const mostRounds = 65536;

export function* runControl(
  step: Step,
  bodies: ReadonlyMap<string, Plan>,
  inputs: readonly (Value | undefined)[],
  scope: Scope,
  run: RunPlan,
): Walk<readonly (Value | undefined)[]> {
  switch (step.op) {
    case 'If': {
      const condition = yield* isTrue(step, step.inputs[0]!, inputs[0]!);
      return yield* run(bodies.get(condition ? 'then_branch' : 'else_branch')!, new Scope(scope));
    }
    case 'Loop':
      return yield* loop(step, bodies.get('body')!, inputs, scope, run);
    case 'Scan':
      return yield* scan(step, bodies.get('body')!, inputs, scope, run);
    default:
      throw new SinterError('E_UNSUPPORTED', `onnx: ${step.label}: no such control flow`);
  }
}

function* isTrue(step: Step, name: string, value: Value): Walk<boolean> {
  const array = value.host() ?? (yield { name, value, step });
  return Boolean(array.data[0]);
}

/** Runs the body on values for its inputs, in their order. */
function* round(
  body: Plan,
  values: readonly (Value | undefined)[],
  scope: Scope,
  run: RunPlan,
): Walk<Value[]> {
  const inner = new Scope(scope);
  body.inputs.forEach((name, i) => {
    const value = values[i];
    if (value !== undefined) inner.set(name, value);
  });
  return yield* run(body, inner);
}

/** Inputs: the most rounds, a condition, then the values that rounds hand on. */
function* loop(
  step: Step,
  body: Plan,
  [most, condition, ...carried]: readonly (Value | undefined)[],
  scope: Scope,
  run: RunPlan,
): Walk<Value[]> {
  const limit =
    most === undefined
      ? Infinity
      : Number((most.host() ?? (yield { name: step.inputs[0]!, value: most, step })).data[0]);
  let goesOn = condition === undefined ? true : yield* isTrue(step, step.inputs[1]!, condition);
  let state = carried;
  const rows: Value[][] = [];
  for (let i = 0; goesOn && i < limit; i++) {
    if (i >= mostRounds)
      throw new SinterError('E_LIMIT', `onnx: ${step.label}: more than ${mostRounds} rounds`);
    const truth = knownData('bool', [], Uint8Array.of(1));
    const [next, ...results] = yield* round(body, [knownInts([i], []), truth, ...state], scope, run);
    // Without a condition from outside, what the body says of going on does not count.
    goesOn = condition === undefined || (yield* isTrue(step, body.outputs[0]!, next!));
    state = results.slice(0, carried.length);
    rows.push(results.slice(carried.length));
  }
  const count = body.outputs.length - 1 - carried.length;
  const stacked = Array.from({ length: count }, (_, k) =>
    joined(
      step,
      rows.map((row) => row[k]!),
      0,
    ),
  );
  return [...(state as Value[]), ...stacked];
}

function joined(step: Step, values: readonly Value[], axis: number): Value {
  const first = values[0];
  if (first === undefined) {
    // Without a round nothing tells the shape of one.
    throw new SinterError(
      'E_UNSUPPORTED',
      `onnx: ${step.label}: a loop of no rounds has results of no known shape`,
    );
  }
  return Value.of(
    stack(
      values.map(({ tensor }) => tensor),
      axis,
    ),
    first.type,
  );
}

/** Inputs: the state, then sequences that are read along an axis, one element a round. */
function* scan(
  step: Step,
  body: Plan,
  given: readonly (Value | undefined)[],
  scope: Scope,
  run: RunPlan,
): Walk<Value[]> {
  const { attributes } = step;
  const legacy = step.opset < 9;
  const inputs = (legacy ? given.slice(1) : given) as readonly Value[];
  if (legacy) return yield* batchedScan(step, body, inputs, scope, run);
  const sequences = attributes.int('num_scan_inputs', 1);
  const states = inputs.length - sequences;
  const outputs = body.outputs.length - states;
  const axes = attributes.ints('scan_input_axes') ?? [];
  const backwards = attributes.ints('scan_input_directions') ?? [];
  const lines = inputs.slice(states).map(({ tensor, type }, k) => {
    const line = moveaxis(tensor, axes[k] ?? 0, 0);
    return Value.of(backwards[k] === 1 ? flip(line, 0) : line, type);
  });
  const { state, rows } = yield* rounds(body, inputs.slice(0, states), lines, scope, run);
  const outAxes = attributes.ints('scan_output_axes') ?? [];
  const outBackwards = attributes.ints('scan_output_directions') ?? [];
  const results = Array.from({ length: outputs }, (_, k) => {
    const ordered = outBackwards[k] === 1 ? rows.toReversed() : rows;
    return joined(
      step,
      ordered.map((row) => row[k]!),
      outAxes[k] ?? 0,
    );
  });
  return [...state, ...results];
}

function* rounds(
  body: Plan,
  start: readonly Value[],
  lines: readonly Value[],
  scope: Scope,
  run: RunPlan,
): Walk<{ state: readonly Value[]; rows: Value[][] }> {
  let state = start;
  const rows: Value[][] = [];
  const length = lines[0]?.shape[0] ?? 0;
  for (let i = 0; i < length; i++) {
    const elements = lines.map(({ tensor, type }) => Value.of(select(tensor, 0, i), type));
    const results = yield* round(body, [...state, ...elements], scope, run);
    state = results.slice(0, start.length);
    rows.push(results.slice(start.length));
  }
  return { state, rows };
}

/** Opset 8: everything has a batch axis in front, and each of the batch is scanned by itself. */
function* batchedScan(
  step: Step,
  body: Plan,
  inputs: readonly Value[],
  scope: Scope,
  run: RunPlan,
): Walk<Value[]> {
  const sequences = step.attributes.int('num_scan_inputs', 1);
  const states = inputs.length - sequences;
  const batch = inputs[0]!.shape[0]!;
  const perBatch: Value[][] = [];
  for (let n = 0; n < batch; n++) {
    const own = inputs.map(({ tensor, type }) => Value.of(select(tensor, 0, n), type));
    const { state, rows } = yield* rounds(body, own.slice(0, states), own.slice(states), scope, run);
    const outputs = body.outputs.length - states;
    const results = Array.from({ length: outputs }, (_, k) =>
      joined(
        step,
        rows.map((row) => row[k]!),
        0,
      ),
    );
    perBatch.push([...state, ...results]);
  }
  return body.outputs.map((_, k) =>
    joined(
      step,
      perBatch.map((row) => row[k]!),
      0,
    ),
  );
}
