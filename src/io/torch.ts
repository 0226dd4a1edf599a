// PyTorch's files (`torch.save` since 1.6): a zip archive with a pickle of the structure and a member
// of raw bytes for each storage. The pickle is read as data (pickle.ts): of Python's functions only
// those that put tensors and ordered dictionaries together are known, and done here.

import { ParseError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import { dtypeBytes, type DType } from '../ir/dtype.ts';
import { sizeOf } from '../ir/shape.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { packedBytes, packedView, type HostTensor } from './host.ts';
import { Opaque, PickledGlobal, readPickle, type Global, type Pickled } from './pickle.ts';
import { fromHostTensor } from './tensors.ts';
import { contentOf, membersOf } from './zip.ts';

/** What a file of PyTorch's holds: tensors, numbers, strings, lists and dictionaries of them. */
export type TorchValue =
  | HostTensor
  | null
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | readonly TorchValue[]
  | ReadonlyMap<string | number, TorchValue>;

const storages: Readonly<Record<string, DType>> = {
  BoolStorage: 'bool',
  CharStorage: 'i8',
  ByteStorage: 'u8',
  ShortStorage: 'i16',
  IntStorage: 'i32',
  LongStorage: 'i64',
  HalfStorage: 'f16',
  BFloat16Storage: 'bf16',
  FloatStorage: 'f32',
  DoubleStorage: 'f64',
};

const functions: ReadonlySet<string> = new Set([
  'collections.OrderedDict',
  'torch._utils._rebuild_tensor_v2',
  'torch._utils._rebuild_parameter',
  'torch.Size',
]);

function isKnown({ module, name }: Global): boolean {
  return functions.has(`${module}.${name}`) || (module === 'torch' && Object.hasOwn(storages, name));
}

/** The bytes of a storage and their type. */
interface Stored {
  readonly dtype: DType;
  readonly bytes: Uint8Array;
}

function broken(problem: string): ParseError {
  return new ParseError('E_FORMAT', 'torch', problem);
}

const takesReadTorch = arg.takes<typeof readTorch>(['the file', arg.bytes]);

/**
 * What a file of `torch.save` holds, without running anything of it. Data shares memory with `bytes`
 * where it lies so. Rejects with ParseError E_FORMAT, naming what is neither a tensor nor plain data.
 */
export async function readTorch(bytes: Uint8Array): Promise<TorchValue> {
  takesReadTorch('readTorch', bytes);
  const members = new Map(membersOf(bytes, 'torch').map((member) => [member.name, member]));
  const pickles = [...members.keys()].filter((name) => /(?:^|\/)data\.pkl$/.test(name));
  if (pickles.length !== 1)
    throw broken('the archive has no data.pkl: it is no file of torch.save, or of one before 1.6');
  const folder = pickles[0]!.slice(0, -'data.pkl'.length);
  const order = members.get(`${folder}byteorder`);
  if (order !== undefined) {
    const said = new TextDecoder().decode((await contentOf(bytes, order, 'torch')).slice());
    if (said.trim() !== 'little') throw broken(`its bytes are ${said.trim()} endian`);
  }
  const contents = new Map<string, Uint8Array>();
  for (const [name, member] of members) {
    if (name.startsWith(`${folder}data/`))
      contents.set(name.slice(`${folder}data/`.length), await contentOf(bytes, member, 'torch'));
  }
  const pickle = await contentOf(bytes, members.get(pickles[0]!)!, 'torch');
  const value = readPickle(
    pickle,
    { knows: isKnown, call: called, persistent: (id) => stored(id, contents) },
    'torch',
  );
  return plain(value);
}

/** ('storage', its class, key, device, elements) as the bytes of the archive. */
function stored(id: Pickled, contents: ReadonlyMap<string, Uint8Array>): Pickled {
  const [kind, type, key] = Array.isArray(id) ? id : [];
  const dtype = type instanceof PickledGlobal && type.module === 'torch' ? storages[type.name] : undefined;
  if (kind !== 'storage' || dtype === undefined || typeof key !== 'string')
    throw broken('it refers to something that is no storage of tensors');
  const bytes = contents.get(key);
  if (bytes === undefined) throw broken(`the storage ${key} is not there`);
  return new Opaque({ dtype, bytes } satisfies Stored);
}

/** What the known functions give. */
function called({ module, name }: Global, args: readonly Pickled[]): Pickled {
  switch (`${module}.${name}`) {
    case 'collections.OrderedDict':
      return orderedDictionary(args);
    case 'torch.Size':
      return args[0]!;
    case 'torch._utils._rebuild_tensor_v2':
      return new Opaque(rebuilt(args));
    case 'torch._utils._rebuild_parameter':
      return args[0]!;
    default:
      throw broken(`${module}.${name} is called, which makes no tensor`);
  }
}

function orderedDictionary(args: readonly Pickled[]): Pickled {
  const pairs = args[0] ?? [];
  if (!Array.isArray(pairs)) throw broken('a dictionary is made of no pairs');
  return new Map(
    pairs.map((pair): [Pickled, Pickled] => {
      if (!Array.isArray(pair) || pair.length !== 2) throw broken('a dictionary is made of no pairs');
      return [pair[0]!, pair[1]!];
    }),
  );
}

function counts(value: Pickled | undefined): number[] {
  if (!Array.isArray(value) || !value.every((at) => Number.isSafeInteger(at) && Number(at) >= 0))
    throw broken('a tensor has sizes or strides that are no whole numbers');
  return value.map(Number);
}

/** A tensor from (storage, offset, sizes, strides, …), in C-order. */
function rebuilt([storage, offset, size, stride]: readonly Pickled[]): HostTensor {
  const held = storage instanceof Opaque ? (storage.value as Stored) : undefined;
  if (held === undefined || !('bytes' in held) || !('dtype' in held)) throw broken('a tensor has no storage');
  const [shape, strides] = [counts(size), counts(stride)];
  const [start] = counts([offset ?? null]) as [number];
  const { dtype, bytes } = held;
  const unit = dtypeBytes(dtype);
  const total = packedBytes(dtype, shape);
  if (shape.length !== strides.length || total === undefined)
    throw broken('a tensor has strides of another rank');
  if (total === 0) return { dtype, shape, data: new Uint8Array() };
  const last = shape.reduce((at, dim, axis) => at + (dim - 1) * strides[axis]!, start);
  if ((last + 1) * unit > bytes.length) throw broken('a tensor reaches beyond its storage');
  const isPacked = shape.every((dim, axis) => dim === 1 || strides[axis] === sizeOf(shape.slice(axis + 1)));
  if (isPacked) return { dtype, shape, data: packedView(bytes, start * unit, start * unit + total, dtype) };
  if (total > bytes.length) throw broken('a tensor repeats the elements of its storage');
  const data = new Uint8Array(total);
  const index = shape.map(() => 0);
  for (let at = 0; at < total; at += unit) {
    const place = (start + index.reduce((sum, i, axis) => sum + i * strides[axis]!, 0)) * unit;
    data.set(bytes.subarray(place, place + unit), at);
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      index[axis]! += 1;
      if (index[axis]! < shape[axis]!) break;
      index[axis] = 0;
    }
  }
  return { dtype, shape, data };
}

/** The value without what only reading it needed; nested at most as deep as a stack allows. */
function plain(value: Pickled, depth = 0): TorchValue {
  if (depth > 200) throw broken('it is nested more than 200 deep, or holds itself');
  if (value instanceof Opaque) {
    const held = value.value as HostTensor | Stored;
    if ('shape' in held) return held;
    throw broken('it holds a storage without a tensor');
  }
  if (value instanceof PickledGlobal) throw broken(`it holds ${value.module}.${value.name} itself`);
  if (Array.isArray(value)) return value.map((item) => plain(item, depth + 1));
  if (!(value instanceof Map)) return value;
  return new Map(
    [...value].map(([key, item]): [string | number, TorchValue] => {
      if (typeof key !== 'string' && typeof key !== 'number')
        throw broken('a key of a dictionary is neither a string nor a number');
      return [key, plain(item, depth + 1)];
    }),
  );
}

const takesLoadTorch = arg.takes<typeof loadTorch>(['the file', arg.bytes]);

/**
 * The tensors of a file of `torch.save` by name: those of a state dictionary under its names; what
 * lies deeper under its path, `model.0.weight`. Other values are left out (`readTorch` has them).
 */
export async function loadTorch(bytes: Uint8Array): Promise<Record<string, Tensor>> {
  takesLoadTorch('loadTorch', bytes);
  const found: Record<string, Tensor> = {};
  const add = (value: TorchValue, path: string): void => {
    if (value === null || typeof value !== 'object' || value instanceof Uint8Array) return;
    if ('dtype' in value) {
      if (Object.hasOwn(found, path)) throw broken(`two tensors are called ${path}`);
      found[path] = fromHostTensor(value);
      return;
    }
    for (const [key, item] of value.entries()) add(item, path === '' ? String(key) : `${path}.${key}`);
  };
  add(await readTorch(bytes), '');
  return found;
}
