// Calls of PyTorch's operators as ours: views, movements, joining and splitting.

import * as sn from '../../../../src/operations/index.ts';
import type { ComplexNumber } from '../../../../src/ir/value.ts';
import { Tensor } from '../../../../src/tensor/tensor.ts';
import { signature, unary, type Args, type Call, type Calls, type Result } from '../args.ts';

const toShape = (f: (x: Tensor, shape: readonly number[]) => Tensor): Call =>
  signature('input, *size')((a) => f(a.tensor('input'), a.list('size')));
const likeOther = (f: (x: Tensor, other: Tensor) => Tensor): Call =>
  signature('input, other')((a) => f(a.tensor('input'), a.tensor('other')));
const ofList = (f: (tensors: readonly Tensor[]) => Result): Call =>
  signature('tensors')((a) => f(a.tensors('tensors')));
const ofAll = (f: (tensors: readonly Tensor[]) => Result): Call =>
  signature('*tensors')((a) => f(a.tensors('tensors')));
const triangle = (f: (x: Tensor, diagonal?: number) => Tensor): Call =>
  signature('input, diagonal=0')((a) => f(a.tensor('input'), a.number('diagonal')));
const parts = (f: (x: Tensor, parts: number | readonly number[]) => Tensor[]): Call =>
  signature('input, indices_or_sections')((a) =>
    f(a.tensor('input'), a.numbers('indices_or_sections') ?? []),
  );
const sizes = signature('input, split_size, dim=0')((a) =>
  sn.split(a.tensor('input'), a.numbers('split_size') ?? [], a.number('dim')),
);
const grid = signature('*tensors, indexing=ij')((a) =>
  sn.meshgrid(a.tensors('tensors'), a.options('indexing')),
);
/** Numbers that may stand in a tensor, as places of `tensor_split` and `narrow` do. */
const read = async (a: Args, name: string): Promise<number | number[]> => {
  const given = a.raw(name);
  if (!(given instanceof Tensor)) return a.numbers(name) ?? [];
  const found = Array.from(await given.data(), Number);
  return given.rank === 0 ? found[0]! : found;
};

export const shape: Calls = {
  T: unary((x) => x.T),
  atleast_1d: ofAll((tensors) => tensors.map(sn.atleast1d)),
  atleast_2d: ofAll((tensors) => tensors.map(sn.atleast2d)),
  atleast_3d: ofAll((tensors) => tensors.map(sn.atleast3d)),
  block_diag: ofAll(sn.blockDiag),
  broadcast_tensors: ofAll(sn.broadcastTensors),
  broadcast_to: toShape(sn.broadcastTo),
  cartesian_prod: ofAll(sn.cartesianProd),
  cat: signature('tensors, dim=0')((a) => sn.cat(a.tensors('tensors'), a.number('dim'))),
  chunk: signature('input, chunks, dim=0')((a) =>
    sn.chunk(a.tensor('input'), a.number('chunks'), a.number('dim')),
  ),
  column_stack: ofList(sn.columnStack),
  combinations: signature('input, r=2, with_replacement=False')((a) =>
    sn.combinations(a.tensor('input'), a.number('r'), a.options('with_replacement')),
  ),
  // Pairs of the last axis first, as PyTorch's list has them.
  constant_pad_nd: signature('input, pad, value=0')(async (a) => {
    const [x, list, given] = [a.tensor('input'), a.list('pad'), a.raw('value')];
    const value =
      given instanceof Tensor ? ((await given.item()) as unknown as ComplexNumber) : a.number('value');
    const pairs = x.shape.map((_, axis): [number, number] => {
      const at = 2 * (x.rank - 1 - axis);
      return [list[at] ?? 0, list[at + 1] ?? 0];
    });
    return sn.pad(x, pairs, { value });
  }),
  diag: signature('input, diagonal=0')((a) => sn.diag(a.tensor('input'), a.number('diagonal'))),
  diag_embed: signature('input, offset=0, dim1=-2, dim2=-1')((a) =>
    sn.diagEmbed(a.tensor('input'), a.number('offset'), a.options('dim1=axis1', 'dim2=axis2')),
  ),
  diagflat: signature('input, offset=0')((a) => sn.diagflat(a.tensor('input'), a.number('offset'))),
  diagonal: signature('input, offset=0, dim1=0, dim2=1')((a) =>
    sn.diagonal(a.tensor('input'), a.options('offset', 'dim1=axis1', 'dim2=axis2')),
  ),
  dsplit: parts(sn.dsplit),
  dstack: ofList(sn.dstack),
  expand: toShape(sn.expand),
  expand_as: likeOther(sn.expandAs),
  flatten: signature('input, start_dim=0, end_dim=-1')((a) =>
    sn.flatten(a.tensor('input'), a.number('start_dim'), a.number('end_dim')),
  ),
  flip: signature('input, *dims')((a) => sn.flip(a.tensor('input'), a.list('dims'))),
  fliplr: unary(sn.fliplr),
  flipud: unary(sn.flipud),
  hsplit: parts(sn.hsplit),
  hstack: ofList(sn.hstack),
  mT: unary((x) => (x.rank < 2 ? x : x.mT)),
  'meshgrid.list_of_tensors': grid,
  'meshgrid.variadic_tensors': grid,
  movedim: signature('input, source, destination')((a) =>
    sn.movedim(a.tensor('input'), a.list('source'), a.list('destination')),
  ),
  permute: signature('input, *dims')((a) => sn.permute(a.tensor('input'), a.list('dims'))),
  ravel: unary(sn.ravel),
  repeat: toShape(sn.repeat),
  reshape: toShape(sn.reshape),
  reshape_as: likeOther(sn.reshapeAs),
  roll: signature('input, shifts, dims=None')((a) =>
    sn.roll(a.tensor('input'), a.numbers('shifts') ?? 0, a.numbers('dims')),
  ),
  rot90: signature('input, k=1, dims=None')((a) =>
    a.has('dims')
      ? sn.rot90(a.tensor('input'), a.number('k'), a.list('dims') as [number, number])
      : sn.rot90(a.tensor('input'), a.number('k')),
  ),
  split: sizes,
  'split.list_args': sizes,
  split_with_sizes: sizes,
  squeeze: signature('input, dim=None')((a) => sn.squeeze(a.tensor('input'), a.numbers('dim'))),
  stack: signature('tensors, dim=0')((a) => sn.stack(a.tensors('tensors'), a.number('dim'))),
  t: unary(sn.t),
  tensor_split: signature('input, indices_or_sections, dim=0')(async (a) =>
    sn.tensorSplit(a.tensor('input'), await read(a, 'indices_or_sections'), a.number('dim')),
  ),
  tile: toShape(sn.tile),
  transpose: signature('input, dim0, dim1')((a) =>
    sn.transpose(a.tensor('input'), a.number('dim0'), a.number('dim1')),
  ),
  tril: triangle(sn.tril),
  triu: triangle(sn.triu),
  unbind: signature('input, dim=0')((a) => sn.unbind(a.tensor('input'), a.number('dim'))),
  unflatten: signature('input, dim, sizes')((a) =>
    sn.unflatten(a.tensor('input'), a.number('dim'), a.list('sizes')),
  ),
  unfold: signature('input, dimension, size, step')((a) =>
    sn.unfold(a.tensor('input'), a.number('dimension'), a.number('size'), a.number('step')),
  ),
  unsqueeze: signature('input, dim')((a) => sn.unsqueeze(a.tensor('input'), a.number('dim'))),
  view: toShape(sn.view),
  view_as: likeOther(sn.viewAs),
  vsplit: parts(sn.vsplit),
  vstack: ofList(sn.vstack),
};
