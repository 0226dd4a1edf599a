// A run of a plan: nodes one after the other, each recorded by its row. Nodes whose inputs are
// known and small are computed on the host at once, so that shapes are numbers when a row wants
// them. Where a row wants numbers that only a device can tell, the walk yields the value: its
// driver reads it (model.ts), or says that it cannot.

import { SinterError } from '../errors.ts';
import { isInexact } from '../ir/dtype.ts';
import { recordedAt } from '../ir/origin/call-site.ts';
import { onHost } from '../tensor/host-function.ts';
import { Tensor } from '../tensor/tensor.ts';
import { Budget, currentBudget, withBudget } from './budget.ts';
import { Call, type Result, type Row } from './call.ts';
import { runControl } from './control/control.ts';
import { hostType, typeOf, withDoubles, type ElementType } from './element.ts';
import { explained, type GraphPlan, type GraphStep, type Meaning } from './plan.ts';
import { GraphScope, type Walk } from './scope.ts';
import { followingSizes } from './following.ts';
import { Value } from './value.ts';
import { commonWords, unified } from './words.ts';

/** Elements up to which known values are computed ahead, on the host. */
const foldLimit = 4096;
/** Results that each node keeps for known integers, elements that these have in all, and integers that it looks at. */
const [mostFolds, mostKept, mostKeyed] = [64, 16384, 512];

/** Runs a plan whose inputs stand in `scope`; gives its outputs. */
export function* runPlan(plan: GraphPlan, scope: GraphScope): Walk<Value[]> {
  for (const [name, stored] of plan.stored) {
    if (!scope.hasOwn(name)) scope.set(name, Value.known(stored.type, stored.array, stored.words));
  }
  for (const step of plan.steps) {
    const results = yield* runStep(step, scope);
    step.outputs.forEach((name, i) => {
      const value = results[i];
      if (name !== '' && value !== undefined) scope.set(name, value);
    });
  }
  return plan.outputs.map((name) => {
    const value = scope.get(name);
    if (value === undefined) throw new SinterError('E_FORMAT', `onnx: no node gave '${name}'`);
    return value;
  });
}

/** Runs one node of a plan; gives its results in order. */
export function* runStep(step: GraphStep, scope: GraphScope): Walk<readonly (Value | undefined)[]> {
  const { meaning } = step;
  currentBudget().spend(1, `onnx: ${step.label}`);
  const inputs = step.inputs.map((name) => {
    const value = name === '' ? undefined : scope.get(name);
    if (name !== '' && value === undefined && !scope.isLeftOut(name)) {
      throw new SinterError('E_FORMAT', `onnx: ${step.label}: input '${name}' was given no value`);
    }
    return value;
  });
  switch (meaning.kind) {
    case 'row':
      return yield* runRow(step, meaning, inputs, scope);
    case 'function': {
      const inner = new GraphScope();
      meaning.body.inputs.forEach((name, i) => {
        const value = inputs[i];
        if (value === undefined) inner.leaveOut(name);
        else inner.set(name, value);
      });
      return yield* runPlan(meaning.body, inner);
    }
    case 'control':
      return yield* runControl(step, meaning.bodies, inputs, scope, runPlan);
    default:
      return meaning satisfies never;
  }
}

function* runRow(
  step: GraphStep,
  { row, folds }: Extract<Meaning, { kind: 'row' }>,
  inputs: (Value | undefined)[],
  scope: GraphScope,
): Walk<readonly (Value | undefined)[]> {
  for (const place of hostPlaces(step, row, inputs)) {
    const value = inputs[place];
    if (value === undefined || !value.isTensor || value.host() !== undefined) continue;
    const name = step.inputs[place]!;
    inputs[place] = Value.known(value.type, yield { name, value, step }, value.words);
    scope.set(name, inputs[place]);
  }
  return explained(step, () => {
    inputs = unified(inputs);
    if (row.text !== true && commonWords(inputs) !== undefined)
      throw new SinterError('E_DTYPE', 'it takes no strings');
    checkTypes(row, inputs);
    // What is known may be computed in doubles, whatever a device has. Counted separately: what
    // cannot be computed ahead is recorded once more.
    const own = new Budget(currentBudget().limits);
    const key = foldKey(inputs);
    // Values hold tensors of the recording that asks for them, so each recording has its own.
    const before = key === undefined ? undefined : folds.get(key);
    const ahead =
      before?.map((value) => value && Value.known(value.type, value.known!, value.words)) ??
      withBudget(own, () => withDoubles(true, () => folded(step, row, inputs)));
    if (key !== undefined && before === undefined && ahead !== undefined && folds.size < mostFolds) {
      const size = ahead.reduce((sum, value) => sum + (value?.size ?? 0), 0);
      if (size * folds.size <= mostKept) folds.set(key, ahead);
    }
    const results = ahead ?? recorded(step, row, inputs);
    return followingSizes(step, row, inputs, results, recorded);
  });
}

/** The results of a row, as it records them. */
function recorded(step: GraphStep, row: Row, inputs: readonly (Value | undefined)[]): (Value | undefined)[] {
  return toValues(called(step, row, inputs), inputs);
}

/** Throws E_DTYPE where inputs that must have one type have two. */
function checkTypes({ alike }: Row, inputs: readonly (Value | undefined)[]): void {
  if (alike === undefined) return;
  const types = inputs.slice(alike).flatMap((input) => (input?.isTensor === true ? [input.type] : []));
  const isOdd = (type: ElementType): boolean =>
    hostType(type) !== hostType(types[0]!) || (type === 'string') !== (types[0] === 'string');
  const odd = types.find(isOdd);
  if (odd !== undefined)
    throw new SinterError('E_DTYPE', `inputs of one type are expected, got ${types[0]} and ${odd}`);
}

/** The inputs whose elements a row needs on the host. */
function hostPlaces(
  { attributes }: GraphStep,
  { host = [] }: Row,
  inputs: readonly (Value | undefined)[],
): readonly number[] {
  if (host === 'all') return inputs.map((_, i) => i);
  return typeof host === 'function' ? host(attributes, inputs) : host;
}

function called(
  step: GraphStep,
  row: Row,
  inputs: readonly (Value | undefined)[],
): readonly (Tensor | Value | undefined)[] {
  const call = new Call(step.op, step.opset, step.attributes, inputs, step.outputs);
  const result: Result = recordedAt(`${step.label} of the model`, () => row.run(call));
  return Array.isArray(result)
    ? (result as (Tensor | Value | undefined)[])
    : [result as Tensor | Value | undefined];
}

/** Results as values: a tensor has the type of the first input that is carried in its dtype. */
function toValues(
  results: readonly (Tensor | Value | undefined)[],
  inputs: readonly (Value | undefined)[],
): (Value | undefined)[] {
  const words = commonWords(inputs);
  return results.map((result) => {
    const own = result instanceof Tensor ? Value.of(result, resultType(result, inputs)) : result;
    const value = words === undefined ? own : own && worded(own, words);
    if (value?.isTensor === true) currentBudget().room(value.shape, hostType(value.type), 'a result');
    return value;
  });
}

/** Elements of text that a row moved stand for the words of its inputs. */
function worded(value: Value, words: readonly string[]): Value {
  const { items, type } = value;
  if (type !== 'string' || value.words !== undefined || value.isAbsent) return value;
  if (items === undefined) return value.worded(words);
  return Value.sequence(
    items.map((item) => worded(item, words)),
    type,
  );
}

function resultType(result: Tensor, inputs: readonly (Value | undefined)[]): ElementType {
  const like = inputs.find((input) => input !== undefined && hostType(input.type) === result.dtype);
  return like?.type ?? typeOf(result.dtype);
}

/** The elements of a few known integers, as text; undefined for others. Floats depend on how products are cast. */
function foldKey(inputs: readonly (Value | undefined)[]): string | undefined {
  let size = 0;
  for (const input of inputs) {
    if (input === undefined) continue;
    const { known, words } = input;
    size += input.size;
    if (known === undefined || words !== undefined || isInexact(known.dtype) || size > mostKeyed)
      return undefined;
  }
  return inputs
    .map((input) => input && `${input.type}[${input.shape.join()}]${input.known!.data.join()}`)
    .join(';');
}

/**
 * The results of a row on known inputs, where they are small: traced and interpreted; undefined
 * otherwise.
 */
function folded(
  step: GraphStep,
  row: Row,
  inputs: readonly (Value | undefined)[],
): (Value | undefined)[] | undefined {
  const present = inputs.filter((input) => input !== undefined);
  if (present.some((input) => !input.isTensor)) return undefined;
  const size = present.reduce((sum, value) => sum + value.size, 0);
  const isComputed = row.random !== true && row.sequence !== true;
  if (!isComputed || size > foldLimit || !present.every(({ known }) => known !== undefined)) return undefined;
  let results: (Value | undefined)[] = [];
  const arrays = onHost(
    (...tensors) => {
      let next = 0;
      const standIns = inputs.map(
        (input) => input && Value.knownAs(input.type, input.known!, tensors[next++]!, input.words),
      );
      results = toValues(called(step, row, standIns), standIns);
      return results.flatMap((value) =>
        value === undefined || value.known !== undefined ? [] : [value.tensor],
      );
    },
    present.map(({ known }) => known!),
    foldLimit,
  );
  if (arrays === undefined) return undefined;
  let next = 0;
  return results.map((value) => {
    if (value === undefined) return undefined;
    return Value.known(value.type, value.known ?? arrays[next++]!, value.words);
  });
}
