// Saves what ranks hold together. Each rank writes the parts that it has into a file of its own, tensor after tensor, and sends none of
// them. The index comes last, and takes the place of the one before: until then the checkpoint before is whole.

import { TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import { aligned, safetensorsHeader } from '../../io/safetensors.ts';
import { unbroken } from '../../io/source/bytes.ts';
import { nodeFiles } from '../../io/source/source.ts';
import type { FileLocation } from '../../platform.ts';
import { saveRngState } from '../../tensor/generator.ts';
import { Tensor } from '../../tensor/tensor.ts';
import { bytesOf, computeAll, localPartOf, partOf } from '../../tensor/values.ts';
import { pack } from '../../train/packed.ts';
import { hashOf } from '../call.ts';
import { currentWorld } from '../world.ts';
import { agree, expectSame, outcomeOf } from './agree.ts';
import {
  bytesIn,
  dataFileName,
  indexName,
  isOldFile,
  newSaveId,
  writeIndex,
  type CheckpointIndex,
  type CutTensor,
} from './index-file.ts';
import { aFolder, checkMesh, namedLeaves } from './named.ts';
import { regionsOf, wholeRegion, type TensorRegion } from './region.ts';

export interface SaveShardedOptions {
  /** Plain data that goes along, such as the number of the step: that of rank 0. None by default. */
  readonly values?: unknown;
  /** Whether the state of the random generator goes along; true by default. */
  readonly rng?: boolean;
}

/** A tensor to save: this rank's part, and who writes which. */
interface Saved {
  readonly name: string;
  readonly own: Tensor;
  readonly dtype: Tensor['dtype'];
  readonly shape: readonly number[];
  readonly pieces: readonly (TensorRegion & { readonly rank: number })[];
  /** Ranks of the mesh that it is split over; undefined where each rank has all of it. */
  readonly ranks: number | undefined;
}

const op = 'saveSharded';
const takesSave = arg.takes<typeof saveSharded>(
  ['the folder', aFolder],
  ['the tree', arg.anything<unknown>()],
  ['options', arg.options<SaveShardedOptions>({ values: arg.anything<unknown>(), rng: arg.flag })],
);

/**
 * Saves a tree of tensors and plain data that ranks hold together, into a folder that all of them see; they all call it. Each part is written
 * once, by the first rank that has it; nothing is sent. The folder becomes a checkpoint of safetensors files with an index as Hugging
 * Face's programs read it, if no tensor is cut. It takes the place of the one before whole, or not at all. Where one rank fails, all
 * do. Rejects with E_VALUE at what cannot be saved, E_DTYPE at c128, E_IO, E_COLLECTIVE.
 */
export async function saveSharded(
  folder: FileLocation,
  tree: unknown,
  options: SaveShardedOptions = {},
): Promise<void> {
  takesSave(op, folder, tree, options);
  // Everything is taken as it is now, before the first wait.
  const rng = options.rng === false ? undefined : saveRngState();
  const { leaves } = namedLeaves(op, tree);
  const others = leaves.filter(({ leaf }) => !(leaf instanceof Tensor));
  const plainLeaves = Object.fromEntries(others.map(({ name, leaf }) => [name, leaf]));
  const { packed, tensors: stray } = pack(op, { leaves: plainLeaves, values: options.values });
  if (Object.keys(stray).length > 0)
    throw new TensorError('E_VALUE', op, 'values holds tensors', 'tensors in the tree');
  const saved = takenOf(leaves);
  const world = await currentWorld(op);
  for (const { name, ranks } of saved) checkMesh(op, name, ranks, world.size);
  const file = (id: string, rank: number): string => dataFileName(id, rank, world.size);

  const layout = JSON.stringify(saved.map(({ name, dtype, shape, pieces }) => [name, dtype, shape, pieces]));
  const plan = hashOf(Array.from(layout, (char) => char.codePointAt(0)!));
  const header = await outcomeOf(async () => headerOf(saved, world.rank));
  const begun = agree(world, op, header, `${newSaveId()} ${plan}`);
  const plans = begun.notes.map((note) => note.split(' ')[1]!);
  expectSame(world, op, plans, 'saves other tensors, or tensors that are split otherwise,');
  const id = begun.notes[0]!.split(' ')[0]!;

  const written = await outcomeOf(() => writeParts(folder, file(id, world.rank), begun.value));
  agree(world, op, written, '');

  const cut = saved.filter(({ pieces }) => pieces.length > 1);
  const index: CheckpointIndex = {
    id,
    files: new Map(saved.filter(({ pieces }) => pieces.length === 1).map(({ name }) => [name, file(id, 0)])),
    cut: new Map(
      cut.map(({ name, dtype, shape, pieces }): [string, CutTensor] => [
        name,
        { dtype, shape, pieces: pieces.map(({ rank, ...region }) => ({ ...region, file: file(id, rank) })) },
      ]),
    ),
    rng,
    plain: packed,
  };
  const replaced = await outcomeOf(async () => {
    if (world.rank === 0) await writeIndexFile(folder, index, saved);
  });
  agree(world, op, replaced, '');
  if (world.rank === 0) await removeOld(folder, index);
}

function takenOf(leaves: readonly { readonly name: string; readonly leaf: unknown }[]): readonly Saved[] {
  const tensors = leaves.flatMap(({ name, leaf }) =>
    leaf instanceof Tensor ? [{ name, tensor: leaf }] : [],
  );
  computeAll(tensors.map(({ tensor }) => tensor));
  return tensors.map(({ name, tensor }): Saved => {
    const own = localPartOf(tensor).detach();
    const { dtype, shape } = tensor;
    const part = partOf(tensor);
    const pieces =
      part === undefined ? [{ ...wholeRegion(shape), rank: 0 }] : regionsOf(part.mesh, part.split, shape);
    return { name, own, dtype, shape, pieces, ranks: part?.mesh.size };
  });
}

/** What a rank writes: the header of its file, and the tensors that follow it. */
interface FileContents {
  readonly header: Uint8Array;
  readonly tensors: readonly Tensor[];
}

/** Undefined for a rank that writes nothing, since others have all that it has. */
function headerOf(saved: readonly Saved[], rank: number): FileContents | undefined {
  const own = saved.flatMap(({ name, own: tensor, dtype, pieces }) => {
    const region = pieces.find((piece) => piece.rank === rank);
    return region === undefined ? [] : [[name, { dtype, shape: region.shape, tensor }] as const];
  });
  const ordered = aligned(own);
  // Hugging Face's loaders ask for the format.
  const header = safetensorsHeader(op, ordered, { format: 'pt' });
  return own.length === 0 ? undefined : { header, tensors: ordered.map(([, { tensor }]) => tensor) };
}

async function writeParts(
  folder: FileLocation,
  name: string,
  contents: FileContents | undefined,
): Promise<void> {
  const { makeFolder, openSink, placeIn } = await nodeFiles(op);
  await unbroken(op, String(folder), () => makeFolder(folder));
  if (contents === undefined) return;
  const place = placeIn(folder, name);
  await unbroken(op, place, async () => {
    const sink = await openSink(place);
    try {
      await sink.write(contents.header);
      // One tensor is on the host at a time.
      for (const tensor of contents.tensors) await sink.write(await bytesOf(tensor));
      await sink.commit();
    } catch (error) {
      await sink.abandon();
      throw error;
    }
  });
}

async function writeIndexFile(
  folder: FileLocation,
  index: CheckpointIndex,
  saved: readonly Saved[],
): Promise<void> {
  const { placeIn, replaceFile } = await nodeFiles(op);
  const bytes = saved.reduce((sum, tensor) => sum + bytesIn(tensor), 0);
  const place = placeIn(folder, indexName);
  await unbroken(op, place, () => replaceFile(place, new TextEncoder().encode(writeIndex(index, bytes))));
}

/** Removes the files of checkpoints before, and of saves that did not come to their end. The checkpoint is there already: what cannot be removed stays. */
async function removeOld(folder: FileLocation, { files, cut }: CheckpointIndex): Promise<void> {
  const { namesIn, placeIn, removeFile } = await nodeFiles(op);
  const kept = new Set([
    ...files.values(),
    ...[...cut.values()].flatMap(({ pieces }) => pieces.map(({ file }) => file)),
  ]);
  const names = await namesIn(folder).catch(() => []);
  for (const name of names)
    if (isOldFile(name, kept)) await removeFile(placeIn(folder, name)).catch(() => undefined);
}
