// A BERT-like encoder as exporters write one, with a free batch and length, and sizes that nodes compute of its ids' shape.

import { attribute, float, int64, modelOf, node, port, type Draft } from './file.ts';

/** Ids are below this, and texts no longer than that. */
export const vocabulary = 40;
export const longest = 64;

const [width, heads, inner] = [16, 2, 32];
const each = width / heads;

type Weights = (name: string, ...dims: readonly number[]) => Draft;

/** Writes weights of about the size that training leaves them at, the same in each file. */
function drawing(): Weights {
  let drawn = 1;
  return (name, ...dims) => {
    const count = dims.reduce((size, extent) => size * extent, 1);
    const scale = 1 / Math.sqrt(dims[0]!);
    const values = Array.from({ length: count }, () => {
      drawn = (drawn * 48271) % 2147483647;
      return (drawn / 2147483647 - 0.5) * 2 * scale;
    });
    return float(name, dims, values);
  };
}

/** One layer of attention and of a network behind it, each normed with what goes in. */
function layer(i: number, weights: Weights): { readonly nodes: Draft[]; readonly initializers: Draft[] } {
  const at = (name: string): string => `l${i}.${name}`;
  const linear = (from: string, name: string): Draft[] => [
    node('MatMul', [from, at(`${name}.w`)], [at(`${name}.x`)]),
    node('Add', [at(`${name}.x`), at(`${name}.b`)], [at(name)]),
  ];
  const split = (name: string, perm: readonly number[]): Draft[] => [
    ...linear(`x${i}`, name),
    node('Reshape', [at(name), 'split'], [at(`${name}.split`)]),
    node('Transpose', [at(`${name}.split`)], [at(`${name}.heads`)], [attribute('perm', perm)]),
  ];
  const normed = (from: string, besides: string, name: string, to: string): Draft[] => [
    node('Add', [from, besides], [at(`${name}.sum`)]),
    node('LayerNormalization', [at(`${name}.sum`), at(`${name}.gain`), at(`${name}.shift`)], [to]),
  ];
  return {
    nodes: [
      ...split('q', [0, 2, 1, 3]),
      ...split('k', [0, 2, 3, 1]),
      ...split('v', [0, 2, 1, 3]),
      node('MatMul', [at('q.heads'), at('k.heads')], [at('products')]),
      node('Div', [at('products'), 'root'], [at('scores')]),
      node('Add', [at('scores'), 'bias'], [at('masked')]),
      node('Softmax', [at('masked')], [at('shares')], [attribute('axis', -1)]),
      node('MatMul', [at('shares'), at('v.heads')], [at('mixed')]),
      node('Transpose', [at('mixed')], [at('turned')], [attribute('perm', [0, 2, 1, 3])]),
      node('Reshape', [at('turned'), 'joined'], [at('flat')]),
      ...linear(at('flat'), 'o'),
      ...normed(at('o'), `x${i}`, 'n1', at('y')),
      ...linear(at('y'), 'f'),
      node('Gelu', [at('f')], [at('gelu')]),
      ...linear(at('gelu'), 'g'),
      ...normed(at('g'), at('y'), 'n2', `x${i + 1}`),
    ],
    initializers: [
      ...['q', 'k', 'v', 'o'].flatMap((name) => [
        weights(at(`${name}.w`), width, width),
        weights(at(`${name}.b`), width),
      ]),
      weights(at('f.w'), width, inner),
      weights(at('f.b'), inner),
      weights(at('g.w'), inner, width),
      weights(at('g.b'), width),
      ...['n1', 'n2'].flatMap((name) => [
        weights(at(`${name}.gain`), width),
        weights(at(`${name}.shift`), width),
      ]),
    ],
  };
}

/** The file: `ids` and `mask` (i64, [batch, length]) to `hidden` [batch, length, 16] and `pooled` [batch, 16]. */
export function bert(): Uint8Array {
  const weights = drawing();
  const layers = [layer(0, weights), layer(1, weights)];
  return modelOf({
    inputs: [port('ids', 7, ['batch', 'length']), port('mask', 7, ['batch', 'length'])],
    outputs: [port('hidden', 1, ['batch', 'length', width]), port('pooled', 1, ['batch', width])],
    initializers: [
      weights('words', vocabulary, width),
      weights('places', longest, width),
      int64('split', [4], [0n, 0n, BigInt(heads), BigInt(each)]),
      int64('zero', [], [0n]),
      int64('one', [], [1n]),
      int64('first', [1], [0n]),
      int64('width', [1], [BigInt(width)]),
      int64('middle', [2], [1n, 2n]),
      float('root', [], [Math.sqrt(each)]),
      float('sure', [], [1]),
      float('least', [], [-1e4]),
      ...layers.flatMap(({ initializers }) => initializers),
      weights('pool.w', width, width),
      weights('pool.b', width),
    ],
    nodes: [
      node('Shape', ['ids'], ['shape']),
      node('Gather', ['shape', 'zero'], ['batch'], [attribute('axis', 0)]),
      node('Gather', ['shape', 'one'], ['length'], [attribute('axis', 0)]),
      node('Range', ['zero', 'length', 'one'], ['positions']),
      node('Gather', ['words', 'ids'], ['embedded'], [attribute('axis', 0)]),
      node('Gather', ['places', 'positions'], ['placed'], [attribute('axis', 0)]),
      node('Add', ['embedded', 'placed'], ['x0']),
      node('Unsqueeze', ['batch', 'first'], ['batch1']),
      node('Unsqueeze', ['length', 'first'], ['length1']),
      node('Concat', ['batch1', 'length1', 'width'], ['joined'], [attribute('axis', 0)]),
      node('Unsqueeze', ['mask', 'middle'], ['mask4']),
      node('Cast', ['mask4'], ['maskf'], [attribute('to', 1)]),
      node('Sub', ['sure', 'maskf'], ['hidden4']),
      node('Mul', ['hidden4', 'least'], ['bias']),
      ...layers.flatMap(({ nodes }) => nodes),
      node('Identity', ['x2'], ['hidden']),
      node('Gather', ['x2', 'zero'], ['cls'], [attribute('axis', 1)]),
      node('Gemm', ['cls', 'pool.w', 'pool.b'], ['pool']),
      node('Tanh', ['pool'], ['pooled']),
    ],
  });
}
