// Complex matrices as real ones of twice the size: z = x + iy stands as [x −y; y x] in the place of
// each element. Sums and products are kept, and so are triangles with a real diagonal.

import { complex, imag, neg, permute, real, reshape } from '../../build.ts';
import { dims, type GraphBuilder, type Node } from '../../graph.ts';
import { joined, rowsOf, sizes } from '../../matrix.ts';

/** [x −y; y x], [lines, 2m, 2n]. */
function blocks(b: GraphBuilder, z: Node): Node {
  const [x, y] = [real(b, z), imag(b, z)];
  return joined(b, 1, [joined(b, 2, [x, neg(b, y)]), joined(b, 2, [y, x])]);
}

/** The real parts above the imaginary ones, [lines, 2m, n]. */
function stackedParts(b: GraphBuilder, z: Node): Node {
  return joined(b, 1, [real(b, z), imag(b, z)]);
}

/** What `stackedParts` came of. */
function fromStackedParts(b: GraphBuilder, x: Node): Node {
  const half = sizes(x)[1] / 2;
  return complex(b, rowsOf(b, x, 0, half), rowsOf(b, x, half, 2 * half));
}

/** Rows 0 and half, 1 and half + 1, …: what lay in two halves by turns. */
function rowsByTurns(b: GraphBuilder, x: Node): Node {
  const [lines, rows, columns] = sizes(x);
  const halves = reshape(b, x, [lines, 2, rows / 2, columns]);
  return reshape(b, permute(b, halves, [0, 2, 1, 3]), dims(x));
}

function rowsInHalves(b: GraphBuilder, x: Node): Node {
  const [lines, rows, columns] = sizes(x);
  const pairs = reshape(b, x, [lines, rows / 2, 2, columns]);
  return reshape(b, permute(b, pairs, [0, 2, 1, 3]), dims(x));
}

/** Each element as [x −y; y x] in its place. */
export function interleaved(b: GraphBuilder, z: Node): Node {
  const turned = permute(b, rowsByTurns(b, blocks(b, z)), [0, 2, 1]);
  return permute(b, rowsByTurns(b, turned), [0, 2, 1]);
}

/** Each row as its real parts, and its imaginary parts below: right-hand sides of an interleaved matrix. */
export function interleavedParts(b: GraphBuilder, z: Node): Node {
  return rowsByTurns(b, stackedParts(b, z));
}

/** What `interleavedParts` came of. */
export function fromInterleavedParts(b: GraphBuilder, x: Node): Node {
  return fromStackedParts(b, rowsInHalves(b, x));
}

/** What `interleaved` came of. */
export function fromInterleaved(b: GraphBuilder, x: Node): Node {
  const [lines, rows, columns] = sizes(x);
  const pairs = reshape(b, x, [lines, rows, columns / 2, 2]);
  const first = b.add('slice', [pairs], {
    start: [0, 0, 0, 0],
    size: [lines, rows, columns / 2, 1],
    step: [1, 1, 1, 1],
  }) as Node;
  return fromInterleavedParts(b, reshape(b, first, [lines, rows, columns / 2]));
}
