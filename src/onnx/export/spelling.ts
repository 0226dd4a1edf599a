// Every primitive's spelling in the format, one row each: a missing row is a type error. Those that
// have none say why not.

import { CompilerBug } from '../../errors.ts';
import type { FactorKind } from '../../ir/factor.ts';
import { dims, type Node, type NodeOf } from '../../ir/graph.ts';
import type { Op } from '../../ir/ops.ts';
import { sizeOf } from '../../ir/shape.ts';
import { contractions } from './contractions.ts';
import { convolutions } from './convolutions.ts';
import { iterate } from './control/loop.ts';
import { elementwise } from './elementwise.ts';
import { Unspelled, type Val } from './emitter.ts';
import { folds } from './folds.ts';
import { idiomOf } from './idioms.ts';
import { indexed } from './indexed.ts';
import type { ExportRow, ExportScope } from './row.ts';
import { views } from './views.ts';
import { joinedOf } from './windowed.ts';

/** An operation without nodes of the format. */
const unspelled =
  <K extends Op>(reason: string): ExportRow<K> =>
  () => {
    throw new Unspelled(reason);
  };

/** What factorizations are called where the format's lack of them is reported. */
const factorWords: { readonly [K in FactorKind]: string } = {
  schur: 'eigenvalues',
  cholesky: 'Cholesky factorization',
  lowerSolve: 'triangular solve',
  unitLowerSolve: 'triangular solve',
  lu: 'LU factorization (Det is one of its operators)',
  householder: 'Householder reflectors',
  qr: 'QR factorization',
  ldlSymmetric: 'LDL factorization',
  ldlHermitian: 'LDL factorization',
  luOfPairs: 'LU factorization of complex matrices',
  householderOfPairs: 'Householder reflectors of complex matrices',
  exchanges: 'order after exchanges of rows',
};

const ofMatrices = 'the standard has no singular values and no eigenvalues';
const ofPasses = 'only the compiler makes it, after a program left for a device';

const complexNumbers = 'the format has no operations on complex numbers: pass viewAsReal';

const processes = 'the format has no programs over several processes: export the program of one';

const rows: { readonly [K in Op]: ExportRow<K> } = {
  ...elementwise,
  ...views,
  ...folds,
  ...contractions,
  ...convolutions,
  ...indexed,
  parameter: (_, node) => {
    throw new CompilerBug('exportOnnx', `parameter ${node.attrs.name} has no value`);
  },
  randomBits: unspelled(
    'random numbers that are the same everywhere: draw them outside, and pass them in, or put layers such as dropout out of training: evalMode(model)',
  ),
  fftPart: unspelled(ofPasses),
  dequantize: unspelled('the format has no blocks of such values: pass what dequantize gives as a weight'),
  radixRank: unspelled(ofPasses),
  jacobiRows: unspelled(ofMatrices),
  completeRows: unspelled(ofMatrices),
  iterate,
  segmentReduce: unspelled('the format folds no segments of neighbours: scatterReduce by segment ids does'),
  factor: (_, { attrs }) => {
    throw new Unspelled(`the format has no ${factorWords[attrs.kind]}`);
  },
  stopGradient: ({ compact }, { inputs }) => compact(inputs[0]!),
  customVjp: ({ compact }, { inputs }) => compact(inputs[0]!),
  barrier: ({ compact }, { inputs }) => compact(inputs[0]!),
  shard: ({ compact }, { inputs }) => compact(inputs[0]!),
  toPart: unspelled(processes),
  toWhole: unspelled(processes),
  // Nobody asks for what is beyond the bound, so it may be anything.
  bounded: ({ compact }, { inputs }) => compact(inputs[0]!),
  complex: unspelled(complexNumbers),
  real: unspelled(complexNumbers),
  imag: unspelled(complexNumbers),
  conj: unspelled(complexNumbers),
  rankIndex: unspelled(processes),
  allReduce: unspelled(processes),
  allGather: unspelled(processes),
  reduceScatter: unspelled(processes),
  allToAll: unspelled(processes),
  permuteRanks: unspelled(processes),
  broadcastRank: unspelled(processes),
};

/**
 * Adds what computes a node: one of the format's larger nodes where it ends what that stands for.
 * Throws Unspelled.
 */
export function spell(scope: ExportScope, node: Node): Val {
  const shape = dims(node);
  if (sizeOf(shape) === 0) return scope.e.constant(node.dtype, shape, []);
  const large = joinedOf(scope, node) ?? idiomOf(scope, node);
  if (large !== undefined) return large;
  return (rows[node.op] as ExportRow<Op>)(scope, node as NodeOf<Op>);
}
