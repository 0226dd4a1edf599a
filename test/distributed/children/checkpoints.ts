// Ranks that save random trees, or load them on another mesh and compare their parts: `save SEED CASES FOLDER`, `load SEED CASES FOLDER`. Rank 0
// says what it has seen, as JSON.

import * as path from 'node:path';
import * as sn from 'sinter';
import {
  findSharded,
  fromPart,
  join,
  layoutOf,
  loadSharded,
  localPart,
  mesh as meshOf,
  saveSharded,
  shard,
} from 'sinter/distributed';
import { fromHostTensor, toHostTensor } from 'sinter/io';
import { partOfTensor, randomMesh, randomSpec, randomTensors, type RandomTensor } from './random-trees.ts';

const [what, seedText, casesText, folder] = process.argv.slice(2) as [string, string, string, string];
const world = await join({ device: 'wasm:1' });
const seed = Number(seedText);

/** A tree of nested objects and arrays, by the names of its tensors. */
function treeOf(tensors: ReadonlyMap<string, sn.Tensor>, plain: unknown): Record<string, unknown> {
  const under = (start: string): Record<string, sn.Tensor> =>
    Object.fromEntries(
      [...tensors].flatMap(([name, x]) => (name.startsWith(start) ? [[name.slice(start.length), x]] : [])),
    );
  return { layers: [under('layers.0.'), under('layers.1.')], head: under('head.'), plain };
}

const settings = {
  rate: -0,
  limits: [NaN, -Infinity],
  name: 'Ä\u0000"',
  big: 2n ** 70n,
  none: null,
  gone: undefined,
};

function tensorsOf(
  given: ReadonlyMap<string, RandomTensor>,
  salt: number,
  isLazy: boolean,
): Map<string, sn.Tensor> {
  const mesh = randomMesh(world.size, salt);
  return new Map(
    [...given].map(([name, tensor], i): [string, sn.Tensor] => {
      const spec = randomSpec(mesh, tensor.shape, salt + i);
      // Some are laid out by a program, so that parts lie on the device.
      if (isLazy || (i % 5 === 0 && ['f32', 'i32'].includes(tensor.dtype)))
        return [
          name,
          shard(
            isLazy ? sn.zeros(tensor.shape, { dtype: tensor.dtype }) : fromHostTensor(tensor),
            meshOf(mesh),
            spec,
          ),
        ];
      return [
        name,
        fromPart(fromHostTensor(partOfTensor(tensor, mesh, spec, world.rank)), meshOf(mesh), spec),
      ];
    }),
  );
}

function fail(problem: string): never {
  throw new Error(`seed ${seed}: rank ${world.rank} of ${world.size}: ${problem}`);
}

let compared = 0;
for (let turn = 0; turn < Number(casesText); turn++) {
  const given = randomTensors(seed + turn);
  const place = path.join(folder, String(turn));
  const salt = 7 * (seed + turn) + 1000 * world.size;
  if (what === 'save') {
    sn.manualSeed(seed + turn);
    sn.rand([5]);
    await saveSharded(place, treeOf(tensorsOf(given, salt, false), settings), {
      values: { step: turn, losses: [0.1, NaN] },
    });
    continue;
  }
  const mesh = randomMesh(world.size, salt);
  const zeros = new Map(
    [...given].map(([name, { shape, dtype }]) => [name, sn.zeros(shape, { dtype })] as const),
  );
  const names = [...given.keys()];
  const specOf = (name: string): ReturnType<typeof randomSpec> =>
    randomSpec(mesh, given.get(name)!.shape, salt + names.indexOf(name));
  const plan = (at: string): ReturnType<typeof randomSpec> => specOf(at.replace(/\[(\d)\]/, '.$1'));
  const like = treeOf(zeros, { ...settings, rate: 1 });
  const { tree, values } = await loadSharded(place, like, { mesh: meshOf(mesh), plan });
  if (JSON.stringify(values) !== JSON.stringify({ step: turn, losses: [0.1, null] }))
    fail(`values ${JSON.stringify(values)}`);
  const { plain, layers, head } = tree as unknown as {
    readonly plain: typeof settings;
    readonly layers: readonly Record<string, sn.Tensor>[];
    readonly head: Record<string, sn.Tensor>;
  };
  if (
    !Object.is(plain.rate, -0) ||
    !Number.isNaN(plain.limits[0]) ||
    plain.big !== 2n ** 70n ||
    plain.name !== settings.name
  )
    fail('the plain leaves are others');
  const expected = sn.saveRngState();
  sn.manualSeed(seed + turn);
  sn.rand([5]);
  if (JSON.stringify(sn.saveRngState()) !== JSON.stringify(expected))
    fail('the random generator is in another state');
  for (const [name, tensor] of given) {
    const [, group, which, key] = /^(layers|head)\.(?:(\d)\.)?(.*)$/.exec(name)!;
    const loaded = group === 'head' ? head[key!]! : layers[Number(which)]![key!]!;
    const part = partOfTensor(tensor, mesh, specOf(name), world.rank);
    const own = await toHostTensor(localPart(loaded));
    if (
      own.dtype !== part.dtype ||
      own.shape.join() !== part.shape.join() ||
      Buffer.compare(own.data, part.data) !== 0
    )
      fail(
        `${name} [${tensor.shape.join()}] as ${JSON.stringify(specOf(name))}: ${JSON.stringify(layoutOf(loaded)?.spec)}`,
      );
    compared += 1;
  }
}
const found = await findSharded(path.join(folder, '0'));
if (world.rank === 0) console.log(JSON.stringify({ compared, names: found?.names.length }));
world.leave();
