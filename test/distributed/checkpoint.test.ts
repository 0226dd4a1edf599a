// Checkpoints that ranks save together: what is loaded, on another mesh or by another number of ranks, is what was saved; the files are those
// of the format, read here without Sinter; and what does not fit or is damaged is an error that says so.

import { execFile } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, expect, test } from 'vitest';
import { readRegion } from '../../src/distributed/checkpoint/read.ts';
import { piecesProblem, type TensorRegion } from '../../src/distributed/checkpoint/region.ts';
import { findSharded, loadSharded, saveSharded } from '../../src/distributed/index.ts';
import * as sn from '../../src/index.ts';
import { BatchNorm1d } from '../../src/nn/index.ts';
import { seed } from '../support/property.ts';
import { casesOf, isQuick } from '../support/sample.ts';
import { box, randomTensors, storedDTypes, type StoredDType } from './children/random-trees.ts';
import { random } from './children/reference.ts';

const cli = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const script = fileURLToPath(new URL('./children/checkpoints.ts', import.meta.url));
const root = fs.mkdtempSync(path.join(os.tmpdir(), 'sinter-checkpoint-'));
afterAll(() => fs.rmSync(root, { recursive: true, force: true }));
const newFolder = (): string => fs.mkdtempSync(path.join(root, 'one-'));

async function ranks(
  count: number,
  ...args: readonly string[]
): Promise<{ compared: number; names: number }> {
  const launch = [cli, 'launch', '-n', String(count), '--show', '0', script, ...args];
  const { stdout } = await promisify(execFile)(process.execPath, launch);
  return JSON.parse(stdout) as { compared: number; names: number };
}

interface Index {
  metadata: { total_size: number; sinter?: { id: string } };
  weight_map: Record<string, string>;
  pieces?: Record<
    string,
    { dtype: string; shape: number[]; pieces: { offset: number[]; shape: number[]; file: string }[] }
  >;
}

const indexFile = 'model.safetensors.index.json';

function indexOf(folder: string): Index {
  return JSON.parse(fs.readFileSync(path.join(folder, indexFile), 'utf8')) as Index;
}

function changeIndex(folder: string, change: (index: Index) => void): void {
  const index = indexOf(folder);
  change(index);
  fs.writeFileSync(path.join(folder, indexFile), JSON.stringify(index));
}

/** The tensors of a safetensors file, as its documentation describes the format. */
function tensorsIn(file: string): Map<string, { dtype: string; shape: number[]; data: Uint8Array }> {
  const bytes = fs.readFileSync(file);
  const start = 8 + Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.subarray(8, start).toString()) as Record<
    string,
    { dtype: string; shape: number[]; data_offsets: [number, number] }
  >;
  const tensors = Object.entries(header).filter(([name]) => name !== '__metadata__');
  return new Map(
    tensors.map(
      ([
        name,
        {
          dtype,
          shape,
          data_offsets: [from, to],
        },
      ]) => [name, { dtype, shape, data: new Uint8Array(bytes.subarray(start + from, start + to)) }],
    ),
  );
}

/** Expects that the files of a folder hold these tensors, each part once. */
function expectFiles(folder: string, tensors: ReturnType<typeof randomTensors>): void {
  const { weight_map: map, pieces = {}, metadata } = indexOf(folder);
  const names = fs.readdirSync(folder).filter((name) => name !== indexFile);
  const files = new Map(names.map((name) => [name, tensorsIn(path.join(folder, name))]));
  expect([...Object.keys(map), ...Object.keys(pieces)].toSorted()).toEqual([...tensors.keys()].toSorted());
  let parts = 0;
  for (const [name, { dtype, shape, data }] of tensors) {
    const of = { offset: shape.map(() => 0), shape, file: map[name]! };
    const list = pieces[name]?.pieces ?? [of];
    expect(pieces[name] ?? { dtype: dtype.toUpperCase(), shape }).toMatchObject({
      dtype: dtype.toUpperCase(),
      shape,
    });
    for (const { offset, shape: sizes, file } of list) {
      const stored = files.get(file)!.get(name)!;
      expect(stored).toMatchObject({ dtype: dtype.toUpperCase(), shape: sizes });
      const end = offset.map((from, axis) => from + sizes[axis]!);
      expect(Buffer.compare(stored.data, box(shape, data, storedDTypes[dtype], offset, end))).toBe(0);
      parts += 1;
    }
  }
  expect([...files.values()].reduce((sum, file) => sum + file.size, 0)).toBe(parts);
  expect(metadata.total_size).toBe([...tensors.values()].reduce((sum, { data }) => sum + data.length, 0));
}

test.each(isQuick ? [2] : [4, 2])('what %d ranks save, others load', async (count) => {
  const folder = newFolder();
  const cases = isQuick ? 2 : 6;
  const given = [String(seed), String(cases), folder];
  expect(await ranks(count, 'save', ...given)).toEqual({ compared: 0, names: 28 });
  for (let turn = 0; turn < cases; turn++)
    expectFiles(path.join(folder, String(turn)), randomTensors(seed + turn));
  for (const others of isQuick ? [1] : count === 2 ? [4] : [1, 2])
    expect(await ranks(others, 'load', ...given)).toEqual({ compared: 28 * cases, names: 28 });
});

test('a region is read of another by the bytes that both have', async () => {
  const next = random(seed);
  for (let turn = 0; turn < casesOf(300, 100); turn++) {
    const dtype = (Object.keys(storedDTypes) as StoredDType[])[next() % 14]!;
    const unit = storedDTypes[dtype];
    const shape = Array.from({ length: next() % 4 }, () => 1 + (next() % 7));
    const region = (): TensorRegion => {
      const offset = shape.map((size) => next() % size);
      return { offset, shape: shape.map((size, axis) => 1 + (next() % (size - offset[axis]!))) };
    };
    const count = shape.reduce((product, size) => product * size, unit);
    const data = Uint8Array.from({ length: count }, () => 1 + (next() % 255));
    const [piece, wanted] = [region(), region()];
    const endOf = ({ offset, shape: sizes }: TensorRegion): number[] =>
      offset.map((from, axis) => from + sizes[axis]!);
    const stored = box(shape, data, unit, piece.offset, endOf(piece));
    const shared = data.map((byte, at) => {
      let rest = Math.floor(at / unit);
      const index = shape.map(() => 0);
      for (let axis = shape.length - 1; axis >= 0; axis--) {
        index[axis] = rest % shape[axis]!;
        rest = Math.floor(rest / shape[axis]!);
      }
      return index.every((i, axis) => i >= piece.offset[axis]! && i < endOf(piece)[axis]!) ? byte : 0;
    });
    const to = new Uint8Array(wanted.shape.reduce((product, size) => product * size, unit));
    await readRegion(piece, wanted, unit, to, async (begin, end) => stored.subarray(begin, end));
    expect(to).toEqual(box(shape, shared, unit, wanted.offset, endOf(wanted)));
  }
});

test('a rank reads no more than its part needs', async () => {
  const read = async (piece: TensorRegion, wanted: TensorRegion): Promise<number[][]> => {
    const ranges: number[][] = [];
    const bytes = wanted.shape.reduce((product, size) => product * size, 4);
    await readRegion(piece, wanted, 4, new Uint8Array(bytes), async (begin, end) => {
      ranges.push([begin, end]);
      return new Uint8Array(end - begin);
    });
    return ranges;
  };
  const whole = { offset: [0, 0], shape: [4, 4096] };
  // Rows are one read; long parts of rows are one each; nothing is read of a piece that has nothing of it.
  expect(await read(whole, { offset: [1, 0], shape: [2, 4096] })).toEqual([[16384, 49152]]);
  expect(await read(whole, { offset: [1, 0], shape: [2, 2048] })).toEqual([
    [16384, 24576],
    [32768, 40960],
  ]);
  expect(await read({ offset: [0, 0], shape: [2, 8] }, { offset: [2, 0], shape: [2, 8] })).toEqual([]);
  // Gaps of less than a page are read along, once.
  expect(await read({ offset: [0, 0], shape: [3, 8] }, { offset: [0, 2], shape: [3, 2] })).toEqual([[8, 80]]);
  // Long reads are cut.
  const large = { offset: [0], shape: [10_000_000] };
  expect((await read(large, large)).map(([begin, end]) => end! - begin!)).toEqual([
    2 ** 24,
    2 ** 24,
    40_000_000 - 2 ** 25,
  ]);
});

test('pieces that are not the whole are told', () => {
  const piece = (from: number, size: number): TensorRegion => ({ offset: [from, 0], shape: [size, 2] });
  expect(piecesProblem([4, 2], [piece(0, 2), piece(2, 2)])).toBe(undefined);
  expect(piecesProblem([4, 2], [piece(0, 2)])).toBe('its pieces have 4 of 8 elements: some are missing');
  expect(piecesProblem([4, 2], [piece(0, 3), piece(2, 2)])).toBe(
    'the pieces [0:3, 0:2] and [2:4, 0:2] overlap',
  );
  expect(piecesProblem([4, 2], [piece(0, 2), piece(3, 2)])).toBe('the piece [3:5, 0:2] is not inside [4, 2]');
  expect(piecesProblem([4, 2], [{ offset: [0], shape: [4] }])).toContain('is not inside [4, 2]');
  expect(piecesProblem([0, 2], [])).toBe(undefined);
  expect(piecesProblem([], [{ offset: [], shape: [] }])).toBe(undefined);
  expect(piecesProblem([], [])).toContain('some are missing');
});

test('what no ranks hold together is an ordinary checkpoint of Hugging Face, which is loaded as well', async () => {
  const folder = newFolder();
  const tree = { model: { layers: [{ weight: sn.arange(6).reshape([2, 3]) }] }, 'head.bias': sn.ones([2]) };
  await saveSharded(folder, tree);
  const { weight_map: map, pieces, metadata } = indexOf(folder);
  expect(Object.keys(map)).toEqual(['model.layers.0.weight', 'head.bias']);
  expect([pieces, metadata.total_size]).toEqual([undefined, 32]);
  // As other programs write it: without what Sinter adds.
  changeIndex(folder, (index) => {
    delete index.metadata.sinter;
  });
  const { tree: loaded, values } = await loadSharded(folder, {
    model: { layers: [{ weight: sn.zeros([2, 3], { dtype: 'i32' }) }] },
    kept: 7,
  });
  expect(await loaded.model.layers[0]!.weight.array()).toEqual([
    [0, 1, 2],
    [3, 4, 5],
  ]);
  expect([loaded.kept, values]).toEqual([7, undefined]);
  expect(await findSharded(folder)).toEqual({
    names: ['head.bias', 'model.layers.0.weight'],
    values: undefined,
  });
  expect(await findSharded(newFolder())).toBe(undefined);
  expect(await findSharded(path.join(folder, 'nowhere'))).toBe(undefined);
});

test('a save takes the place of the one before, and removes what is left of others', async () => {
  const folder = newFolder();
  await saveSharded(folder, { x: sn.tensor([1, 2]).requiresGrad_() }, { values: 1 });
  const before = indexOf(folder).weight_map['x']!;
  const left = `${before}.0a-1b.tmp`;
  fs.writeFileSync(path.join(folder, left), 'half');
  fs.writeFileSync(path.join(folder, 'notes.txt'), 'mine');
  await saveSharded(folder, { x: sn.tensor([3, 4]) }, { values: 2 });
  const { x } = indexOf(folder).weight_map;
  expect(x).not.toBe(before);
  expect(fs.readdirSync(folder).toSorted()).toEqual([x, indexFile, 'notes.txt'].toSorted());
  const { tree, values } = await loadSharded(folder, { x: sn.zeros([2]).requiresGrad_() });
  expect([await tree.x.array(), tree.x.requiresGrad, values]).toEqual([[3, 4], true, 2]);
});

test('the random generator goes on, unless it is not asked for', async () => {
  const folder = newFolder();
  sn.manualSeed(3);
  await saveSharded(folder, {});
  const next = sn.saveRngState();
  sn.rand([4]);
  const later = sn.saveRngState();
  await loadSharded(folder, {}, { rng: false });
  expect(sn.saveRngState()).toEqual(later);
  await loadSharded(folder, {});
  expect(sn.saveRngState()).toEqual(next);
  await saveSharded(folder, {}, { rng: false });
  sn.rand([4]);
  await loadSharded(folder, {});
  expect(sn.saveRngState()).toEqual(later);
});

test('what cannot be saved is refused, and what was saved before stays', async () => {
  const folder = newFolder();
  await saveSharded(folder, { x: sn.ones([2]) });
  const before = fs.readFileSync(path.join(folder, indexFile));
  const refused = async (tree: unknown, values?: unknown): Promise<unknown> =>
    saveSharded(folder, tree, { values }).then(
      () => 'saved',
      (error: Error & { code?: string }) => `${error.code}: ${error.message}`,
    );
  expect(await refused({ x: sn.ones([2]).cast('c128') })).toContain(
    'E_DTYPE: saveSharded: x: the format has no c128',
  );
  expect(await refused({ a: { b: sn.ones([1]) }, 'a.b': sn.ones([1]) })).toContain(
    'E_VALUE: saveSharded: both a.b and ["a.b"] would be called a.b',
  );
  expect(await refused({ norm: new BatchNorm1d(3) })).toContain('state beside its parameters');
  expect(await refused({ x: Symbol.iterator })).toContain('E_VALUE');
  expect(await refused({}, { x: sn.ones([1]) })).toContain('E_VALUE: saveSharded: values holds tensors');
  const file = path.join(folder, 'file');
  fs.writeFileSync(file, '');
  await expect(saveSharded(path.join(file, 'below'), {})).rejects.toMatchObject({ code: 'E_IO' });
  await expect(saveSharded('', {})).rejects.toMatchObject({ code: 'E_VALUE' });
  expect(Buffer.compare(before, fs.readFileSync(path.join(folder, indexFile)))).toBe(0);
});

test('what does not fit, or is damaged, is told with the file, the tensor and what to do', async () => {
  const saved = newFolder();
  await saveSharded(saved, { w: sn.ones([4, 2]), v: sn.zeros([3]), step: 5 });
  const file = indexOf(saved).weight_map['w']!;
  const said = async (change: (folder: string) => void, like: unknown): Promise<string> => {
    const folder = newFolder();
    fs.cpSync(saved, folder, { recursive: true });
    change(folder);
    try {
      await loadSharded(folder, like);
      return 'loaded';
    } catch (error) {
      const { code, message } = error as Error & { code?: string };
      return `${code} ${message.replaceAll(folder, 'FOLDER')}`;
    }
  };
  const w = sn.zeros([4, 2]);
  const intact = (): void => undefined;
  expect(await said(intact, { w, v: sn.zeros([3]), step: 0 })).toBe('loaded');
  expect(await said(intact, { w: sn.zeros([2, 4]) })).toMatch(
    `E_SHAPE loadSharded: FOLDER/${file}: w is f32[4,2] in the checkpoint, and was asked for as f32[2,4]`,
  );
  expect(await said(intact, { w: w.cast('f16') })).toMatch(
    /^E_DTYPE loadSharded: FOLDER\/model-.*: w is f32\[4,2\] in the checkpoint, and was asked for as f16\[4,2\](.|\n)*try: a tensor of f32/,
  );
  expect(await said(intact, { w2: w })).toMatch(
    /^E_VALUE loadSharded: FOLDER\/model.safetensors.index.json: the checkpoint has no tensor w2(.|\n)*try: w\?/,
  );
  expect(await said(intact, { other: 3 })).toContain(
    'E_VALUE loadSharded: the checkpoint has no value other',
  );
  expect(await said((folder) => fs.rmSync(path.join(folder, file)), { w })).toMatch(
    /^E_IO loadSharded: FOLDER\/model-.*: ENOENT/,
  );
  expect(await said((folder) => fs.rmSync(path.join(folder, indexFile)), { w })).toContain(
    'E_IO loadSharded: FOLDER holds no checkpoint: it has no model.safetensors.index.json\n  try: findSharded',
  );
  const truncated = await said(
    (folder) => fs.truncateSync(path.join(folder, file), fs.statSync(path.join(folder, file)).size - 8),
    { w },
  );
  expect(truncated).toMatch(
    /^E_FORMAT loadSharded: FOLDER\/model-.*: .*tensor "[wv]": data_offsets(.|\n)*try: another checkpoint/,
  );
  expect(await said((folder) => fs.writeFileSync(path.join(folder, indexFile), '{'), { w })).toContain(
    'it is not JSON',
  );

  const cut =
    (change: (pieces: { offset: number[]; shape: number[]; file: string }[]) => void) => (folder: string) =>
      changeIndex(folder, (index) => {
        const pieces = [{ offset: [0, 0], shape: [4, 2], file }];
        change(pieces);
        index.weight_map = {};
        index.pieces = { w: { dtype: 'F32', shape: [4, 2], pieces } };
      });
  expect(await said(cut(intact), { w })).toBe('loaded');
  expect(
    await said(
      cut((pieces) => pieces.pop()),
      { w },
    ),
  ).toMatch(
    'E_FORMAT loadSharded: FOLDER/model.safetensors.index.json: w f32[4,2]: its pieces have 0 of 8 elements: some are missing',
  );
  expect(
    await said(
      cut((pieces) => pieces.push({ ...pieces[0]!, shape: [1, 2] })),
      { w },
    ),
  ).toContain('w f32[4,2]: the pieces [0:4, 0:2] and [0:1, 0:2] overlap');
  expect(
    await said(
      cut((pieces) =>
        pieces.splice(0, 1, { offset: [0, 0], shape: [2, 2], file }, { offset: [2, 0], shape: [2, 2], file }),
      ),
      { w },
    ),
  ).toMatch(/w is f32\[4,2\] there, and the index says that it is the piece \[0:2, 0:2\] of f32/);
  expect(
    await said(
      cut((pieces) => (pieces[0]!.file = '../secret')),
      { w },
    ),
  ).toContain('lies in no file of the folder');
  expect(
    await said((folder) => changeIndex(folder, (index) => (index.weight_map['u'] = file)), { u: w }),
  ).toContain('it has no tensor u, and the index says that it has');
});
