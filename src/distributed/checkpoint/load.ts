// Loads what `saveSharded` saved, or Hugging Face's programs: each rank reads the bytes that its parts need, whatever ranks have written them.

import { ParseError, SinterError, TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import { dtypeBytes } from '../../ir/dtype.ts';
import type { Mesh } from '../../ir/mesh/mesh.ts';
import { whole, type Split } from '../../ir/mesh/split.ts';
import { showShape, sizeOf } from '../../ir/shape.ts';
import { placesInSafetensors, type PlacedTensor } from '../../io/safetensors.ts';
import { unbroken, type ByteSource } from '../../io/source/bytes.ts';
import { nodeFiles, openSource } from '../../io/source/source.ts';
import type { FileLocation } from '../../platform.ts';
import { partIn } from '../../sharding/part.ts';
import { restoreRngState } from '../../tensor/generator.ts';
import { fromBytes } from '../../tensor/record.ts';
import { Tensor } from '../../tensor/tensor.ts';
import { unflatten } from '../../tensor/tree.ts';
import { partOf, tensorOfPart } from '../../tensor/values.ts';
import { unpack } from '../../train/packed.ts';
import { splitOf } from '../mesh.ts';
import type { ShardPlan } from '../parallel.ts';
import { currentWorld, type World } from '../world.ts';
import { agree, expectSame, outcomeOf } from './agree.ts';
import {
  damaged,
  indexName,
  readIndex,
  type CheckpointIndex,
  type CutTensor,
  type StoredPiece,
} from './index-file.ts';
import { aFolder, checkMesh, namedLeaves } from './named.ts';
import { readRegion } from './read.ts';
import { piecesProblem, regionOf, showRegion, wholeRegion, type TensorRegion } from './region.ts';

export interface LoadShardedOptions {
  /** The mesh whose processes hold the tensors; by default each is held as the tensor that it is loaded for. */
  readonly mesh?: Mesh;
  /** How they hold them, with a mesh; by default each has all of them. */
  readonly plan?: ShardPlan;
  /** Whether the random generator goes on from the state that was saved, if one was; true by default. */
  readonly rng?: boolean;
}

/** What was loaded. */
export interface LoadedSharded<T> {
  readonly tree: T;
  /** The plain data that went along; undefined where none did. */
  readonly values: unknown;
}

/** What a folder holds. */
export interface ShardedContents {
  /** Of all tensors, in the order of their names. */
  readonly names: readonly string[];
  /** The plain data that went along; undefined where none did. */
  readonly values: unknown;
}

const op = 'loadSharded';
const aMesh: arg.Kind<Mesh> = arg.kind(
  'a mesh',
  (value) => arg.isPlainObject(value) && 'axes' in value && 'text' in value,
);
const takesLoad = arg.takes<(folder: FileLocation, like: unknown, options?: LoadShardedOptions) => unknown>(
  ['the folder', aFolder],
  ['the tree', arg.anything<unknown>()],
  [
    'options',
    arg.options<LoadShardedOptions>({ mesh: aMesh, plan: arg.callable<ShardPlan>(), rng: arg.flag }),
  ],
);

/**
 * Loads a tree from a folder; all ranks call it. `like` is a tree of the shapes and dtypes that were saved, whose values are not looked at: each
 * tensor is loaded for the one in its place, and held as it is held, or as `plan` says. The mesh and the number of ranks may be others than those
 * that saved. Each rank reads the bytes that its parts need. What the checkpoint has besides is left. Where one rank fails, all do.
 * Rejects with E_IO where there is none, E_VALUE, E_SHAPE or E_DTYPE where it is of another tree, ParseError E_FORMAT where it is damaged.
 */
export async function loadSharded<T>(
  folder: FileLocation,
  like: T,
  options: LoadShardedOptions = {},
): Promise<LoadedSharded<T>> {
  takesLoad(op, folder, like, options);
  const { structure, leaves } = namedLeaves(op, like);
  const world = await currentWorld(op);
  const loaded = await outcomeOf(async () => {
    const index = await indexIn(op, folder);
    const { plain, values } = plainIn(index);
    const reader = new CheckpointReader(folder, index);
    try {
      const wanted = leaves.map(({ name, path, leaf }) => ({
        name,
        leaf,
        target: leaf instanceof Tensor ? targetOf(name, path, leaf, options, world) : undefined,
      }));
      // All are compared before any is read.
      for (const { name, target } of wanted) if (target !== undefined) await reader.compare(name, target);
      const read: unknown[] = [];
      for (const { name, leaf, target } of wanted)
        read.push(
          target === undefined ? plainFor(index, plain, name, leaf) : await reader.load(name, target, world),
        );
      return { tree: unflatten(structure, read) as T, values, index };
    } finally {
      await reader.close();
    }
  });
  const id = 'value' in loaded ? (loaded.value.index.id ?? '') : '';
  const { value, notes } = agree(world, op, loaded, id);
  expectSame(world, op, notes, 'has read another checkpoint');
  if (value.index.rng !== undefined && options.rng !== false) restoreRngState(value.index.rng);
  return { tree: value.tree, values: value.values };
}

const takesFind = arg.takes<typeof findSharded>(['the folder', aFolder]);

/** What a folder holds that `saveSharded` or Hugging Face's programs have written; undefined where it holds no checkpoint. Rejects with E_IO, E_FORMAT. */
export async function findSharded(folder: FileLocation): Promise<ShardedContents | undefined> {
  takesFind('findSharded', folder);
  const { namesIn } = await nodeFiles('findSharded');
  const names = await namesIn(folder).catch((): string[] => []);
  if (!names.includes(indexName)) return undefined;
  const index = await indexIn('findSharded', folder);
  return { names: [...index.files.keys(), ...index.cut.keys()].toSorted(), values: plainIn(index).values };
}

async function indexIn(caller: string, folder: FileLocation): Promise<CheckpointIndex> {
  const { namesIn, placeIn, readFile } = await nodeFiles(caller);
  const place = placeIn(folder, indexName);
  const names = await unbroken(caller, String(folder), () => namesIn(folder));
  if (!names.includes(indexName))
    throw new SinterError(
      'E_IO',
      `${caller}: ${String(folder)} holds no checkpoint: it has no ${indexName}\n  try: findSharded(folder), which says whether there is one`,
    );
  const bytes = await unbroken(caller, place, () => readFile(place));
  return readIndex(caller, place, new TextDecoder().decode(bytes));
}

interface PlainData {
  /** Leaves of the tree that are no tensors, by name. */
  readonly plain: Readonly<Record<string, unknown>>;
  readonly values: unknown;
}

function plainIn({ plain }: CheckpointIndex): PlainData {
  if (plain === undefined) return { plain: {}, values: undefined };
  const { leaves, values } = unpack(op, plain, {}, undefined) as {
    leaves: PlainData['plain'];
    values: unknown;
  };
  return { plain: leaves, values };
}

/** The plain value that was saved in the place of one. */
function plainFor(index: CheckpointIndex, plain: PlainData['plain'], name: string, leaf: unknown): unknown {
  if (Object.hasOwn(plain, name)) return plain[name];
  // Checkpoints of other programs have no plain data.
  if (index.plain === undefined) return leaf;
  throw new TensorError(
    'E_VALUE',
    op,
    `the checkpoint has no value ${name}`,
    'a tree of the names that were saved',
  );
}

/** What a tensor is loaded for. */
interface Target {
  readonly tensor: Tensor;
  /** How ranks hold it; undefined where each has all of it. */
  readonly held: { readonly mesh: Mesh; readonly split: Split } | undefined;
}

function targetOf(
  name: string,
  path: string,
  tensor: Tensor,
  { mesh, plan }: LoadShardedOptions,
  world: World,
): Target {
  const { shape } = tensor;
  const spec = mesh && plan?.(path, tensor);
  const split = mesh && (spec === undefined ? whole(shape.length) : splitOf(op, mesh, shape, spec));
  const held = mesh === undefined ? partOf(tensor) : { mesh, split: split! };
  checkMesh(op, name, held?.mesh.size, world.size);
  return { tensor, held };
}

/** The files of a checkpoint, opened when something is read of them. */
class CheckpointReader {
  readonly #folder: FileLocation;
  readonly #index: CheckpointIndex;
  readonly #open = new Map<
    string,
    { readonly source: ByteSource; readonly places: ReadonlyMap<string, PlacedTensor> }
  >();

  constructor(folder: FileLocation, index: CheckpointIndex) {
    this.#folder = folder;
    this.#index = index;
  }

  /** Rejects where a tensor is not there, or is another. */
  async compare(name: string, { tensor }: Target): Promise<void> {
    const { place, dtype, shape, pieces } = await this.#entry(name);
    const show = (at: { readonly dtype: CutTensor['dtype']; readonly shape: readonly number[] }): string =>
      showShape(at.shape, at.dtype);
    const said = `${place}: ${name} is ${show({ dtype, shape })} in the checkpoint, and was asked for as ${show(tensor)}`;
    if (shape.join() !== tensor.shape.join())
      throw new TensorError('E_SHAPE', op, said, 'a tree of the shapes that were saved');
    if (dtype !== tensor.dtype)
      throw new TensorError('E_DTYPE', op, said, `a tensor of ${dtype}, and cast what is loaded`);
    const problem = piecesProblem(shape, pieces);
    if (problem !== undefined) throw damaged(op, place, `${name} ${show({ dtype, shape })}: ${problem}`);
  }

  /** What this rank holds of a tensor. */
  async load(name: string, { tensor, held }: Target, { rank }: World): Promise<Tensor> {
    const { dtype, shape, pieces } = await this.#entry(name);
    const region = held === undefined ? wholeRegion(shape) : regionOf(held.mesh, held.split, shape, rank);
    const bytes = new Uint8Array(dtypeBytes(dtype) * sizeOf(region.shape));
    for (const piece of pieces) await this.#read(name, piece, region, dtype, bytes);
    // Other programs may write any number for true.
    if (dtype === 'bool') for (const [i, byte] of bytes.entries()) if (byte > 1) bytes[i] = 1;
    const own = fromBytes(bytes, region.shape, dtype);
    const loaded = held === undefined ? own : tensorOfPart(own, shape, partIn(held.mesh, held.split));
    return tensor.requiresGrad ? loaded.requiresGrad_() : loaded;
  }

  async close(): Promise<void> {
    for (const { source } of this.#open.values()) await source.close();
  }

  /** What the checkpoint says of a tensor, and the file that says so. */
  async #entry(name: string): Promise<CutTensor & { readonly place: string }> {
    const { files, cut } = this.#index;
    const { placeIn } = await nodeFiles(op);
    const tensor = cut.get(name);
    if (tensor !== undefined) return { ...tensor, place: placeIn(this.#folder, indexName) };
    const file = files.get(name);
    if (file === undefined) {
      const known = [...files.keys(), ...cut.keys()];
      const near = arg.nearest(name, known);
      const some = known.slice(0, 5).join(', ') + (known.length > 5 ? ', …' : '');
      throw new TensorError(
        'E_VALUE',
        op,
        `${placeIn(this.#folder, indexName)}: the checkpoint has no tensor ${name}`,
        near === undefined ? `one of ${some}` : `${near}?`,
      );
    }
    const { dtype, shape } = await this.#placed(name, file);
    return { dtype, shape, pieces: [{ ...wholeRegion(shape), file }], place: placeIn(this.#folder, file) };
  }

  async #read(
    name: string,
    piece: StoredPiece,
    region: TensorRegion,
    dtype: CutTensor['dtype'],
    to: Uint8Array,
  ): Promise<void> {
    const read = async (begin: number, end: number): Promise<Uint8Array> =>
      (await this.#file(piece.file)).source.read(begin, end);
    await readRegion(piece, region, dtypeBytes(dtype), to, async (begin, end) => {
      const placed = await this.#placed(name, piece.file);
      if (placed.dtype !== dtype || placed.shape.join() !== piece.shape.join())
        throw damaged(
          op,
          (await this.#file(piece.file)).source.name,
          `${name} is ${showShape(placed.shape, placed.dtype)} there, and the index says that it is the piece ` +
            `${showRegion(piece)} of ${dtype}`,
        );
      return read(placed.begin + begin, placed.begin + end);
    });
  }

  async #placed(name: string, file: string): Promise<PlacedTensor> {
    const { source, places } = await this.#file(file);
    const placed = places.get(name);
    if (placed === undefined)
      throw damaged(op, source.name, `it has no tensor ${name}, and the index says that it has`);
    return placed;
  }

  async #file(
    file: string,
  ): Promise<{ readonly source: ByteSource; readonly places: ReadonlyMap<string, PlacedTensor> }> {
    const known = this.#open.get(file);
    if (known !== undefined) return known;
    const { placeIn } = await nodeFiles(op);
    const place = placeIn(this.#folder, file);
    const source = await openSource(op, place);
    try {
      const opened = { source, places: await placesInSafetensors(source) };
      this.#open.set(file, opened);
      return opened;
    } catch (error) {
      await source.close();
      if (error instanceof ParseError) throw damaged(op, place, error.message);
      throw error;
    }
  }
}
