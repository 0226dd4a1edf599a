// PyTorch's files (`torch.save` since 1.6): a zip archive with a pickle of the structure and a member
// of raw bytes for each storage. The pickle is read as data (pickle.ts): of Python's functions only
// those that put tensors and ordered dictionaries together are known, and done here.

import { ParseError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import { dtypeBytes, type DType } from '../ir/dtype.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { Allowance, limitTable, type LimitOptions } from './allowance.ts';
import { packedBytes, packedView, type HostTensor } from './host.ts';
import { Opaque, PickledGlobal, readPickle, type Global, type Pickled } from './pickle.ts';
import { fromHostTensor } from './tensors.ts';
import { contentOf, membersOf, type ZipMember } from './zip.ts';

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

/** Bytes of a call, of an entry of a dictionary and of a tensor by its name, about. */
const [perCall, perEntry, perName] = [48, 48, 512] as const;
/** Axes of a tensor: as many as PyTorch takes. */
const mostAxes = 64;
/** Lists in lists. */
const deepest = 200;

/** The bytes of a storage and their type. */
interface Stored {
  readonly dtype: DType;
  readonly bytes: Uint8Array;
}

function broken(problem: string): ParseError {
  return new ParseError('E_FORMAT', 'torch', problem);
}

const takesReadTorch = arg.takes<typeof readTorch>(
  ['the file', arg.bytes],
  ['options', arg.options<LimitOptions>(limitTable)],
);

/**
 * What a file of `torch.save` holds, without running anything of it. Data shares memory with `bytes`
 * where it lies so; what the file holds at several places is one value. Rejects with ParseError
 * E_FORMAT, naming what is neither a tensor nor plain data, and E_LIMIT where it becomes more than
 * `maxBytes`.
 */
export async function readTorch(bytes: Uint8Array, options: LimitOptions = {}): Promise<TorchValue> {
  takesReadTorch('readTorch', bytes, options);
  return valueOf(bytes, new Allowance('readTorch', bytes.length, options.maxBytes));
}

async function valueOf(bytes: Uint8Array, allowance: Allowance): Promise<TorchValue> {
  const members = new Map<string, ZipMember>();
  for (const member of membersOf(bytes, 'torch')) {
    if (members.has(member.name)) throw broken(`the member ${member.name} is there twice`);
    members.set(member.name, member);
  }
  const content = (member: ZipMember): Promise<Uint8Array> => contentOf(bytes, member, 'torch', allowance);
  const pickles = [...members.keys()].filter((name) => /(?:^|\/)data\.pkl$/.test(name));
  if (pickles.length !== 1)
    throw broken('the archive has no data.pkl: it is no file of torch.save, or of one before 1.6');
  const folder = pickles[0]!.slice(0, -'data.pkl'.length);
  const order = members.get(`${folder}byteorder`);
  if (order !== undefined) {
    const said = new TextDecoder().decode((await content(order)).slice());
    if (said.trim() !== 'little') throw broken(`its bytes are ${said.trim()} endian`);
  }
  const contents = new Map<string, Uint8Array>();
  for (const [name, member] of members) {
    if (name.startsWith(`${folder}data/`))
      contents.set(name.slice(`${folder}data/`.length), await content(member));
  }
  const pickle = await content(members.get(pickles[0]!)!);
  const value = readPickle(
    pickle,
    {
      knows: isKnown,
      call: (global, args) => called(global, args, allowance),
      persistent: (id) => stored(id, contents),
    },
    'torch',
    allowance,
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
function called({ module, name }: Global, args: readonly Pickled[], allowance: Allowance): Pickled {
  allowance.spend(perCall, 'its pickle');
  switch (`${module}.${name}`) {
    case 'collections.OrderedDict':
      return orderedDictionary(args, allowance);
    case 'torch._utils._rebuild_tensor_v2':
      return new Opaque(rebuilt(args, allowance));
    case 'torch.Size':
    case 'torch._utils._rebuild_parameter':
      if (args[0] === undefined) throw broken(`${module}.${name} is called with nothing`);
      return args[0];
    default:
      throw broken(`${module}.${name} is called, which makes no tensor`);
  }
}

function orderedDictionary(args: readonly Pickled[], allowance: Allowance): Pickled {
  const pairs = args[0] ?? [];
  if (!Array.isArray(pairs)) throw broken('a dictionary is made of no pairs');
  // A call takes few bytes, whatever it is given.
  allowance.spend(perEntry * pairs.length, 'its pickle');
  return new Map(
    pairs.map((pair): [Pickled, Pickled] => {
      if (!Array.isArray(pair) || pair.length !== 2) throw broken('a dictionary is made of no pairs');
      return [pair[0]!, pair[1]!];
    }),
  );
}

function counts(value: Pickled | undefined): number[] {
  if (!Array.isArray(value) || value.length > mostAxes || !value.every(isCount))
    throw broken('a tensor has sizes or strides that are no whole numbers, or too many of them');
  return [...(value as number[])];
}

function isCount(value: Pickled | undefined): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0 && !Object.is(value, -0);
}

/** A tensor from (storage, offset, sizes, strides, …), in C-order. */
function rebuilt([storage, offset, size, stride]: readonly Pickled[], allowance: Allowance): HostTensor {
  const held = storage instanceof Opaque ? (storage.value as Stored) : undefined;
  if (held === undefined || !('bytes' in held) || !('dtype' in held)) throw broken('a tensor has no storage');
  const [shape, strides] = [counts(size), counts(stride)];
  if (!isCount(offset)) throw broken('a tensor begins at no whole number of elements');
  const { dtype, bytes } = held;
  const unit = dtypeBytes(dtype);
  const total = packedBytes(dtype, shape);
  if (shape.length !== strides.length || total === undefined)
    throw broken('a tensor has strides of another rank');
  if (total === 0) return { dtype, shape, data: new Uint8Array() };
  // Axes of size 1 move nothing: without them there are at most as many as its size has bits.
  const axes = shape.flatMap((dim, axis) => (dim === 1 ? [] : [{ dim, stride: strides[axis]! }]));
  const last = axes.reduce((at, axis) => at + (axis.dim - 1) * axis.stride, offset);
  if ((last + 1) * unit > bytes.length) throw broken('a tensor reaches beyond its storage');
  let packed = 1;
  const isPacked = axes.toReversed().every((axis) => {
    const isNext = axis.stride === packed;
    packed *= axis.dim;
    return isNext;
  });
  const begin = offset * unit;
  // A tensor takes few bytes of the pickle, whatever it is a view of.
  if (isPacked) {
    const data = packedView(bytes, begin, begin + total, dtype);
    if (data.buffer !== bytes.buffer) allowance.spend(total, 'its tensors');
    return { dtype, shape, data };
  }
  if (total > bytes.length) throw broken('a tensor repeats the elements of its storage');
  allowance.spend(total, 'its tensors');
  const data = new Uint8Array(total);
  const index = axes.map(() => 0);
  for (let at = 0, place = begin; at < total; at += unit) {
    for (let i = 0; i < unit; i++) data[at + i] = bytes[place + i]!;
    for (let axis = axes.length - 1; axis >= 0; axis--) {
      const { dim, stride: step } = axes[axis]!;
      place += step * unit;
      index[axis]! += 1;
      if (index[axis]! < dim) break;
      place -= dim * step * unit;
      index[axis] = 0;
    }
  }
  return { dtype, shape, data: packedView(data, 0, total, dtype) };
}

/** The value without what only reading it needed. What is there several times stays one value. */
function plain(whole: Pickled): TorchValue {
  const done = new Map<Pickled, TorchValue>();
  const visit = (value: Pickled, depth: number): TorchValue => {
    if (value === null || typeof value !== 'object' || value instanceof Uint8Array) return value;
    if (value instanceof PickledGlobal) throw broken(`it holds ${value.module}.${value.name} itself`);
    if (value instanceof Opaque) {
      const held = value.value as HostTensor | Stored;
      if ('shape' in held) return held;
      throw broken('it holds a storage without a tensor');
    }
    const known = done.get(value);
    if (known !== undefined) return known;
    // No deeper than a stack allows; what holds itself is deeper than anything.
    if (depth > deepest) throw broken(`it is nested more than ${deepest} deep, or holds itself`);
    const made = Array.isArray(value)
      ? value.map((item) => visit(item, depth + 1))
      : new Map(
          [...value].map(([key, item]): [string | number, TorchValue] => {
            if (typeof key !== 'string' && typeof key !== 'number')
              throw broken('a key of a dictionary is neither a string nor a number');
            return [key, visit(item, depth + 1)];
          }),
        );
    done.set(value, made);
    return made;
  };
  return visit(whole, 0);
}

const takesLoadTorch = arg.takes<typeof loadTorch>(
  ['the file', arg.bytes],
  ['options', arg.options<LimitOptions>(limitTable)],
);

/**
 * The tensors of a file of `torch.save` by name: those of a state dictionary under its names; what
 * lies deeper under its path, `model.0.weight`. Other values are left out (`readTorch` has them).
 * Rejects as `readTorch` does.
 */
export async function loadTorch(
  bytes: Uint8Array,
  options: LimitOptions = {},
): Promise<Record<string, Tensor>> {
  takesLoadTorch('loadTorch', bytes, options);
  const allowance = new Allowance('loadTorch', bytes.length, options.maxBytes);
  const found = new Map<string, Tensor>();
  const add = (value: TorchValue, path: string): void => {
    if (value === null || typeof value !== 'object' || value instanceof Uint8Array) return;
    // A value at several places has as many names.
    allowance.spend(perName + 2 * path.length, 'the names of its tensors');
    if ('dtype' in value) {
      if (found.has(path)) throw broken(`two tensors are called ${path}`);
      found.set(path, fromHostTensor(value));
      return;
    }
    for (const [key, item] of value.entries()) add(item, path === '' ? String(key) : `${path}.${key}`);
  };
  add(await valueOf(bytes, allowance), '');
  // Names such as `__proto__` are names.
  return Object.fromEntries(found);
}
