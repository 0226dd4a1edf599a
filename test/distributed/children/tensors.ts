// What one of two ranks sees of tensors that both hold, printed as JSON.

import * as sn from 'sinter';
import {
  allReduce,
  fromPart,
  gather,
  join,
  layoutOf,
  localPart,
  mesh,
  rankIndex,
  ringAttention,
  shard,
  shardMap,
} from 'sinter/distributed';

const world = await join({ device: 'wasm:1' });
const grid = mesh({ data: 2 });
const values = async (x: sn.Tensor): Promise<number[]> => Array.from((await x.data()) as Float32Array);
const codeOf = async (fn: () => unknown): Promise<unknown> => {
  try {
    await fn();
    return 'none';
  } catch (error) {
    return (error as { readonly code?: string }).code ?? String(error);
  }
};

const x = sn.arange(8).cast('f32').reshape([4, 2]);
const rows = shard(x, grid, ['data', null]);
const own = fromPart(sn.tensor([world.rank, world.rank]), grid, ['data']);
const scaled = sn.compile((a: sn.Tensor) => a.mul(a).sum(1));
const w = sn.tensor([[1, 2, 3]]).cast('f32');
const look = sn.compile((ids: sn.Tensor) => sn.embedding(ids, w.reshape([3, 1])).sum());
const lookAtParts = shardMap(
  (ids: sn.Tensor, table: sn.Tensor) => allReduce(sn.embedding(ids, table).sum(), grid, 'data'),
  grid,
  [['data'], [null, null]],
  [],
);
const queries = sn.normal([2, 4, 3]);
const alike = async (a: sn.Tensor, b: sn.Tensor): Promise<boolean> =>
  (await sn.allclose(a, b, { atol: 1e-5 }).item()) === true;
const ids = (last: number): sn.Tensor => shard(sn.tensor(Int32Array.of(0, 1, 2, last)), grid, ['data']);

const seen = {
  shape: rows.shape,
  layout: layoutOf(rows)?.spec,
  shown: String(rows),
  part: await values(localPart(rows)),
  whole: await values(gather(rows)),
  columns: await values(localPart(shard(rows, grid, [null, 'data']))),
  own: await values(gather(own)),
  // Of values that differ between ranks those of rank 0 count.
  first: await values(gather(shard(sn.full([2], world.rank), grid, ['data']))),
  squares: await values(localPart(scaled(rows))),
  total: await sn
    .compile((a: sn.Tensor) => a.sum())(rows)
    .item(),
  looked: await look(ids(2)).item(),
  outside: await codeOf(() => look(ids(7)).item()),
  lookedAtParts: await lookAtParts(ids(2), w.reshape([3, 1])).item(),
  // The bad index is in the part of rank 1, and all ranks hear of it.
  outsideOfParts: await codeOf(() => lookAtParts(ids(7), w.reshape([3, 1])).item()),
  places: await values(
    gather(
      shardMap(
        (a: sn.Tensor) => a.mul(0).add(rankIndex(grid, 'data')),
        grid,
        [['data']],
        ['data'],
      )(sn.zeros([4])),
    ),
  ),
  ring: await alike(
    gather(ringAttention(queries, queries, queries, grid, [null, 'data', null], { isCausal: true })),
    sn.scaledDotProductAttention(queries, queries, queries, { isCausal: true }),
  ),
  // Tensors that are not split are one each.
  apart: await sn
    .compile((a: sn.Tensor) => allReduce(a, grid, 'data'))(sn.tensor([world.rank + 1]))
    .item(),
  // What is compiled by itself has no history: gradients of it are no zeros, but refused.
  gradOutside: await codeOf(() =>
    sn
      .grad((a: sn.Tensor) => lookAtParts(ids(2), a).square())(w.reshape([3, 1]))
      .data(),
  ),
  gradOfGather: await codeOf(() =>
    sn
      .grad((a: sn.Tensor) => gather(shard(a, grid, ['data', null])).sum())(x)
      .data(),
  ),
  add: await codeOf(() => rows.add(1)),
  read: await codeOf(() => rows.data()),
  uneven: await codeOf(() => shard(sn.ones([3]), grid, ['data'])),
  unknown: await codeOf(() => shard(x, grid, ['model', null])),
  meshes: await codeOf(() =>
    sn.compile((a: sn.Tensor, b: sn.Tensor) => a.add(b))(rows, shard(x, mesh({ other: 2 }), ['other', null])),
  ),
  worlds: await codeOf(() => gather(shard(x, mesh({ data: 4 }), ['data', null])).data()),
};
console.log(JSON.stringify(seen));
world.leave();
