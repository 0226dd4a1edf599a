// Recordings of one function at several sizes as one structure: the same operations over one
// another, whose numbers (sizes, attributes, constants) may vary.

import { sameAttrs, type Node } from '../graph.ts';
import type { Op } from '../ops.ts';
import type { Shape } from '../shape.ts';
import { Region } from '../region.ts';
import { recordingOf, RegionStructure, type RegionParameter } from './region.ts';
import { isVarying, VaryingSizes, type Num, type SizeValues } from './size.ts';
import type { VaryingAttrs, StructurePart, RecordedPart, SizeRecording, SizeStructure } from './structure.ts';

/** Two recordings that are not one structure: the nodes that differ, for messages. */
export interface Difference {
  readonly node: Node;
  readonly other: Node | undefined;
}

/** What of a node may vary, with what may not. */
function fieldsOf({ kind, node, number }: RecordedPart, constants: readonly number[]): VaryingAttrs {
  if (kind === 'constant') return { value: constants[number]! };
  return kind === 'leaf' ? {} : (node.attrs as VaryingAttrs);
}

/** The structure of recordings that are the same but for numbers, or where they differ. */
export function generalise(
  recordings: readonly SizeRecording[],
  sizes: VaryingSizes,
): SizeStructure | Difference {
  const [first, ...others] = recordings as readonly [SizeRecording, ...SizeRecording[]];
  const parts: StructurePart[] = [];
  let leaves = 0;
  /** Where bodies of loops differ. */
  let inside: Difference | undefined;
  const ofRegions = (regions: readonly Region[]): { readonly value: unknown } | undefined => {
    const made = generalisedRegions(regions, sizes);
    if ('parameters' in made) return { value: made };
    inside = made;
    return undefined;
  };
  for (const [i, { kind, node, inputs, number }] of first.parts.entries()) {
    const all = recordings.map((recording) => recording.parts[i]);
    const odd = all.find(
      (other) =>
        other === undefined ||
        plainKind(other.kind) !== plainKind(kind) ||
        other.node.dtype !== node.dtype ||
        (kind !== 'leaf' && other.node.op !== node.op) ||
        other.inputs.length !== inputs.length ||
        other.inputs.some((input, k) => input !== inputs[k]) ||
        (kind === 'leaf' && other.number !== number),
    );
    const isOdd = all.some((other) => other === undefined) || odd !== undefined;
    const fields = isOdd
      ? undefined
      : vary(
          all.map((other, k) => fieldsOf(other!, recordings[k]!.constants)),
          sizes,
          ofRegions,
        );
    const shape = isOdd
      ? undefined
      : vary(
          all.map((other) => other!.node.shape),
          sizes,
        );
    if (fields === undefined && inside !== undefined) return inside;
    if (fields === undefined || shape === undefined) return { node, other: odd?.node ?? all.at(-1)?.node };
    if (kind === 'leaf') leaves += 1;
    parts.push({
      kind: plainKind(kind),
      op: node.op,
      dtype: node.dtype,
      shape: shape.value as readonly Num[],
      attrs: fields.value as VaryingAttrs,
      inputs,
      leaf: kind === 'leaf' ? number : -1,
      node,
    });
  }
  const odd = others.find(
    ({ parts: theirs, outputs }) =>
      theirs.length !== first.parts.length ||
      outputs.length !== first.outputs.length ||
      outputs.some((output, i) => output !== first.outputs[i]),
  );
  if (odd !== undefined) return { node: first.parts.at(-1)!.node, other: odd.parts.at(-1)?.node };
  return { parts, outputs: first.outputs, leaves };
}

/** What recordings of one structure have in common, as text: operations over one another, without numbers. */
export function outlineOf({ parts, outputs }: SizeRecording): string {
  const lines = parts.map(({ kind, node, inputs, number }) =>
    [plainKind(kind), kind === 'leaf' ? number : node.op, node.dtype, ...inputs].join(' '),
  );
  return [...lines, outputs.join(' ')].join('\n');
}

function plainKind(kind: RecordedPart['kind']): StructurePart['kind'] {
  return kind === 'moved' ? 'op' : kind;
}

/** Values that are equal but for numbers as one; undefined where they are not. */
function vary(
  values: readonly unknown[],
  sizes: VaryingSizes,
  ofRegions?: (regions: readonly Region[]) => { readonly value: unknown } | undefined,
): { readonly value: unknown } | undefined {
  const [first] = values;
  if (first instanceof Region && ofRegions !== undefined && values.every((value) => value instanceof Region))
    return values.every(({ key }) => key === first.key) ? { value: first } : ofRegions(values);
  if (values.every((value) => typeof value === 'number')) return { value: sizes.of(values) };
  if (values.every((value) => typeof value === 'bigint')) {
    const numbers = values.map(Number);
    const num = numbers.every(Number.isSafeInteger) ? sizes.of(numbers) : undefined;
    if (isVarying(num)) return { value: num };
    return values.every((value) => value === first) ? { value: first } : undefined;
  }
  if (Array.isArray(first)) {
    if (!values.every((value) => Array.isArray(value) && value.length === first.length)) return undefined;
    const items = first.map((_, i) =>
      vary(
        values.map((value) => (value as readonly unknown[])[i]),
        sizes,
      ),
    );
    return items.includes(undefined) ? undefined : { value: items.map((item) => item!.value) };
  }
  if (typeof first !== 'object' || first === null || Object.getPrototypeOf(first) !== Object.prototype)
    return values.every((value) => sameAttrs(first, value)) ? { value: first } : undefined;
  const fields: [string, unknown][] = [];
  for (const key of Object.keys(first)) {
    const field = vary(
      values.map((value) => (value as VaryingAttrs)[key]),
      sizes,
      ofRegions,
    );
    if (field === undefined) return undefined;
    fields.push([key, field.value]);
  }
  return { value: Object.fromEntries(fields) };
}

/** Bodies of loops as one, or where they differ. */
function generalisedRegions(regions: readonly Region[], sizes: VaryingSizes): RegionStructure | Difference {
  const key = regions.map((region) => region.key).join('\0');
  const known = sizes.bodies.get(key) as RegionStructure | undefined;
  if (known !== undefined) return known;
  const structure = generalise(regions.map(recordingOf), sizes);
  if (!('parts' in structure)) return structure;
  const parameters = regions[0]!.graph.parameters.map(({ dtype }, i): RegionParameter => {
    const shape = vary(
      regions.map(({ graph }) => graph.parameters[i]!.shape),
      sizes,
    );
    return { name: `p${i}`, dtype, shape: shape!.value as readonly Num[] };
  });
  const made = new RegionStructure(parameters, structure);
  sizes.bodies.set(key, made);
  return made;
}

/** What a recording is to a structure. */
export interface Matched {
  readonly values: SizeValues;
  /** By leaf of the structure: the recording's leaf. */
  readonly leaves: readonly number[];
}

/**
 * Lays a structure over a recording at other sizes: each of its nodes stands for one node of the
 * recording, with the same operands. At some sizes a recording has fewer nodes, since equal nodes
 * are one and views that change nothing are left out. Undefined where the recording is another
 * computation, or its numbers do not agree.
 */
export function match(
  structure: SizeStructure,
  recording: SizeRecording,
  sizes: VaryingSizes,
): Matched | undefined {
  const values: SizeValues = new Map();
  const leftOut: LeftOut[] = [];
  const leaves = laidOver(structure, recording, values, leftOut);
  if (leaves === undefined) return undefined;
  // A view that was left out gives its operand back: so its sizes are the operand's.
  for (const { part, operand } of leftOut.reverse()) {
    const { shape: target = [], size = [] } = part.attrs as {
      readonly [name in 'shape' | 'size']?: readonly Num[];
    };
    for (const sizesOfPart of [part.shape, target, size])
      for (const [axis, num] of sizesOfPart.entries()) {
        const from = operand.shape[axis];
        const value = isVarying(from) ? values.get(from) : from;
        if (isVarying(num) && !values.has(num) && value !== undefined) values.set(num, value);
      }
  }
  const all = sizes.complete(values);
  if (all === undefined || !leftOut.every(({ part, operand }) => changesNothing(part, operand, all)))
    return undefined;
  return { values: all, leaves };
}

/**
 * The structure of recordings that are the same but for numbers, and of others that it can be laid over when each of its numbers
 * stands for itself. Numbers that a limit holds in the others only are equal in the former, and there views may change nothing.
 * Undefined where no other fits, or where bodies of loops differ.
 */
export function generaliseOver(
  recordings: readonly SizeRecording[],
  others: readonly SizeRecording[],
  sizes: VaryingSizes,
): SizeStructure | undefined {
  const free = new FreeSizes();
  const structure = generalise(recordings, free);
  if (!('parts' in structure) || free.bodies.size > 0) return undefined;
  const all = others.flatMap((other) => {
    const matched = match(structure, other, free);
    return matched?.leaves.every((leaf, i) => leaf === i) ? [matched.values] : [];
  });
  if (all.length === 0) return undefined;
  let isWhole = true;
  /** What a pattern of numbers is for all; `own` is what the first recording has there. */
  const renamed = (pattern: unknown, own: unknown): unknown => {
    if (isVarying(pattern)) {
      const [first] = pattern.values as readonly [number];
      // What nothing says is what it is everywhere else.
      const fallback = pattern.values.every((value) => Object.is(value, first)) ? first : undefined;
      const values = all.map((one) => one.get(pattern) ?? fallback);
      if (values.includes(undefined)) isWhole = false;
      const num = sizes.of([...pattern.values, ...(values as number[])]);
      return isVarying(num) ? num : own;
    }
    if (Array.isArray(pattern)) return pattern.map((item, i) => renamed(item, (own as unknown[])[i]));
    if (
      typeof pattern !== 'object' ||
      pattern === null ||
      Object.getPrototypeOf(pattern) !== Object.prototype
    )
      return pattern;
    const fields = own as VaryingAttrs;
    return Object.fromEntries(
      Object.entries(pattern).map(([key, item]) => [key, renamed(item, fields[key])]),
    );
  };
  const [first] = recordings as readonly [SizeRecording];
  const parts = structure.parts.map((part, i): StructurePart => {
    const fields = fieldsOf(first.parts[i]!, first.constants);
    return {
      ...part,
      shape: renamed(part.shape, part.node.shape) as readonly Num[],
      attrs: renamed(part.attrs, fields) as VaryingAttrs,
    };
  });
  return isWhole ? { ...structure, parts } : undefined;
}

/** Numbers of which each stands for itself, also those that have the same values. */
class FreeSizes extends VaryingSizes {
  override of(values: readonly number[]): Num {
    return { values, derivations: [] };
  }
}

/** A view that a recording has not, and its operand. */
interface LeftOut {
  readonly part: StructurePart;
  readonly operand: StructurePart;
}

/** Binds the structure's nodes to a recording's, adding the numbers that it says; gives its leaves. */
function laidOver(
  structure: SizeStructure,
  recording: SizeRecording,
  values: SizeValues,
  leftOut: LeftOut[],
): readonly number[] | undefined {
  const { parts } = structure;
  if (structure.outputs.length !== recording.outputs.length) return undefined;
  const found = new Array<number | undefined>(parts.length);
  const leaves = new Array<number>(structure.leaves);
  const bind = (part: number, to: number): boolean => (found[part] ??= to) === to;
  if (!structure.outputs.every((output, i) => bind(output, recording.outputs[i]!))) return undefined;
  for (let i = parts.length - 1; i >= 0; i--) {
    const [part, at] = [parts[i]!, found[i]];
    if (at === undefined) return undefined;
    const here = recording.parts[at]!;
    const said = sayings(part, here, recording.constants, values, leftOut);
    if (said !== undefined) {
      for (const [num, value] of said) {
        if (!Object.is(values.get(num) ?? value, value)) return undefined;
        values.set(num, value);
      }
      if (part.kind === 'leaf') leaves[part.leaf] = here.number;
      if (!part.inputs.every((input, k) => bind(input, here.inputs[k]!))) return undefined;
    } else if (mayBeLeftOut(part, values)) {
      leftOut.push({ part, operand: parts[part.inputs[0]!]! });
      if (!bind(part.inputs[0]!, at)) return undefined;
    } else return undefined;
  }
  return leaves;
}

/** Lays the body of a loop over another, whose parameters are the same ones. */
function isBody(body: RegionStructure, region: Region, values: SizeValues, leftOut: LeftOut[]): boolean {
  const { structure, parameters } = body;
  if (parameters.length !== region.graph.parameters.length) return false;
  const leaves = laidOver(structure, recordingOf(region), values, leftOut);
  return leaves?.every((leaf, i) => leaf === i) === true;
}

/** The numbers that a node of a recording says, where it is the same operation. */
function sayings(
  part: StructurePart,
  here: RecordedPart,
  constants: readonly number[],
  known: SizeValues,
  leftOut: LeftOut[],
): SizeValues | undefined {
  if (part.kind !== plainKind(here.kind) || part.dtype !== here.node.dtype) return undefined;
  if (part.kind !== 'leaf' && part.op !== here.node.op) return undefined;
  if (part.inputs.length !== here.inputs.length) return undefined;
  const said: SizeValues = new Map();
  const agrees = (pattern: unknown, value: unknown): boolean => {
    if (isVarying(pattern)) {
      if (typeof value !== 'number' && typeof value !== 'bigint') return false;
      const before = known.get(pattern) ?? said.get(pattern);
      said.set(pattern, Number(value));
      return before === undefined || Object.is(before, Number(value));
    }
    if (pattern instanceof RegionStructure)
      return value instanceof Region && isBody(pattern, value, known, leftOut);
    // Texts name nodes in the order in which they were recorded. At a size that is one of the constants, that is another order.
    if (pattern instanceof Region && value instanceof Region && pattern.key !== value.key) {
      const body = generalisedRegions([pattern], new VaryingSizes());
      return 'parameters' in body && isBody(body, value, known, leftOut);
    }
    if (Array.isArray(pattern)) {
      return (
        Array.isArray(value) &&
        value.length === pattern.length &&
        pattern.every((item, i) => agrees(item, value[i]))
      );
    }
    return sameAttrs(pattern, value);
  };
  const fields = fieldsOf(here, constants);
  const names = Object.keys(part.attrs);
  const isSame =
    agrees(part.shape, here.node.shape as Shape) &&
    names.every((name) => agrees(part.attrs[name], fields[name]));
  return isSame ? said : undefined;
}

/** Attributes of views, and the number that each of them has where the view changes nothing. */
const placesOf: { readonly [O in Op]?: Readonly<Record<string, number>> } = {
  reshape: {},
  broadcast: {},
  slice: { start: 0, step: 1 },
  pad: { low: 0, high: 0, interior: 0 },
};

/** Whether a part may be one that changes nothing. Its places that vary are added to the numbers. */
function mayBeLeftOut({ kind, op, attrs }: StructurePart, values: SizeValues): boolean {
  const places = kind === 'op' ? placesOf[op] : undefined;
  if (places === undefined) return false;
  const all = Object.entries(places).flatMap(([name, neutral]) =>
    (attrs[name] as readonly Num[]).map((num) => [num, neutral] as const),
  );
  const isNeutral = all.every(
    ([num, neutral]) => (isVarying(num) ? (values.get(num) ?? neutral) : num) === neutral,
  );
  if (isNeutral) for (const [num, neutral] of all) if (isVarying(num)) values.set(num, neutral);
  return isNeutral;
}

/** Whether a view gives its operand back at these sizes. */
function changesNothing(part: StructurePart, operand: StructurePart, values: SizeValues): boolean {
  const at = (num: Num): number | undefined => (isVarying(num) ? values.get(num) : num);
  return (
    part.shape.length === operand.shape.length &&
    part.shape.every((num, axis) => at(num) === at(operand.shape[axis]!))
  );
}
