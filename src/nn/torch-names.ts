// State dictionaries under PyTorch's names: `running_mean` for `runningMean`, `0.weight` for
// `layers.0.weight` of a Sequential, and the projections of attention as one tensor.

import * as arg from '../ir/arguments.ts';
import { cat } from '../tensor/ops/shape/join.ts';
import { narrow } from '../tensor/ops/shape/indexing.ts';
import { expectTensor } from '../tensor/expect.ts';
import { noGrad } from '../tensor/derivative/transform.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { MultiHeadAttention } from './attention.ts';
import { aModel, membersOf, Module } from './module.ts';
import { dictionary, loadStateDict, stateDict, type LoadOptions, type LoadReport } from './parameters.ts';
import { Sequential } from './sequential.ts';

/** Where PyTorch keeps a tensor of ours: under a name, or as one of equal parts of it. */
interface Place {
  readonly name: string;
  readonly part?: { readonly index: number; readonly count: number };
}

/** Parts of `in_proj_weight` and `in_proj_bias`, in PyTorch's order. */
const projections = ['query', 'key', 'value'];

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** PyTorch's place for our dotted name, following the modules on its way. */
function placeOf(model: unknown, name: string): Place {
  const path: string[] = [];
  let part: Place['part'];
  let at: unknown = model;
  for (const key of keysOf(model, name)) {
    const holder = at;
    at = (holder as Readonly<Record<string, unknown>>)[key];
    if (holder instanceof Sequential && key === 'layers') continue;
    if (holder instanceof MultiHeadAttention && holder.heads === holder.kvHeads) {
      const index = projections.indexOf(key);
      if (index >= 0) {
        part = { index, count: projections.length };
        path.push('in_proj_');
        continue;
      }
      path.push(key === 'output' ? 'out_proj' : key);
      continue;
    }
    path.push(holder instanceof Module ? snakeCase(key) : key);
  }
  const dotted = path.join('.').replaceAll('in_proj_.', 'in_proj_');
  return part === undefined ? { name: dotted } : { name: dotted, part };
}

/** The keys that a dotted name is made of; keys may hold dots themselves. */
function keysOf(model: unknown, name: string): string[] {
  if (name === '') return [];
  for (const key of Object.keys(model as object)) {
    if (name === key) return [key];
    const child = (model as Readonly<Record<string, unknown>>)[key];
    if (!name.startsWith(`${key}.`) || typeof child !== 'object' || child === null) continue;
    const rest = name.slice(key.length + 1);
    if ([...membersOf(child)].some((member) => member.name === rest)) return [key, ...keysOf(child, rest)];
  }
  return [name];
}

const takesTorchStateDict = arg.takes<typeof torchStateDict>(['the model', aModel]);

/**
 * Every parameter and buffer under the name that PyTorch's layers of the same kind have: what
 * `torch.load_state_dict` takes. Names of modules of your own are in snake_case.
 */
export function torchStateDict(model: unknown): Record<string, Tensor> {
  takesTorchStateDict('torchStateDict', model);
  for (const { name, tensor } of membersOf(model)) expectTensor('torchStateDict', name, tensor);
  const found: Record<string, Tensor> = {};
  const parts = new Map<string, Tensor[]>();
  for (const [name, tensor] of Object.entries(stateDict(model))) {
    const { name: theirs, part } = placeOf(model, name);
    if (part === undefined) {
      found[theirs] = tensor;
      continue;
    }
    const known = parts.get(theirs) ?? [];
    known[part.index] = tensor;
    parts.set(theirs, known);
    // Keeps its place in the order.
    found[theirs] = tensor;
  }
  noGrad(() => {
    for (const [name, list] of parts) found[name] = cat(list, 0);
  });
  return found;
}

const takesLoadTorch = arg.takes<typeof loadTorchStateDict>(
  ['the model', aModel],
  ['the dictionary', dictionary],
  ['options', arg.options<LoadOptions>({ strict: arg.flag })],
);

/**
 * `loadStateDict` of a dictionary under PyTorch's names, such as `loadTorch` of `sinter/io` reads.
 * The counts `num_batches_tracked` are passed over.
 */
export function loadTorchStateDict(
  model: unknown,
  values: Readonly<Record<string, Tensor>>,
  options: LoadOptions = {},
): LoadReport {
  takesLoadTorch('loadTorchStateDict', model, values, options);
  const own: Record<string, Tensor> = {};
  const used = new Set<string>();
  noGrad(() => {
    for (const { name, saved } of membersOf(model)) {
      if (!saved) continue;
      const { name: theirs, part } = placeOf(model, name);
      const value = Object.hasOwn(values, theirs) ? values[theirs] : undefined;
      if (value === undefined) continue;
      used.add(theirs);
      const rows = (value.shape[0] ?? 0) / (part?.count ?? 1);
      const fits = part === undefined || Number.isInteger(rows);
      own[name] = fits && part !== undefined ? narrow(value, 0, part.index * rows, rows) : value;
    }
  });
  for (const [name, value] of Object.entries(values)) {
    if (!used.has(name) && !name.endsWith('num_batches_tracked')) own[name] = value;
  }
  return loadStateDict(model, own, options);
}
