// A model in a GGUF file: its configuration from the metadata, its weights as they lie there. Floats
// come as they are, blocks of few bits as the f32 that they stand for.

import type { GgufFile, GgufTensor } from '../../io/gguf/open.ts';
import { isBlockFormat } from '../../ir/blocks/format.ts';
import { isFloat } from '../../ir/dtype.ts';
import type { FixedShape } from '../../ir/shape.ts';
import { SinterError } from '../../errors.ts';
import { fromBlockStream } from '../../quant/load.ts';
import { fromBytes } from '../../tensor/record.ts';
import type { RopeScaling } from '../config/config.ts';
import { configFromGguf } from '../config/gguf.ts';
import type { Weight } from '../decoder/weights.ts';
import type { ModelSource } from './model.ts';
import { textOfGguf, type TextOptions } from '../text/gguf.ts';

interface SourceOptions extends TextOptions {
  readonly signal?: AbortSignal | undefined;
}

/** The model of a file whose head has been read. */
export async function ggufSource(
  file: GgufFile,
  { signal, packages }: SourceOptions = {},
): Promise<ModelSource> {
  const { tensors } = file;
  const config = configFromGguf(file);
  const values = async (name: string): Promise<Float32Array | undefined> =>
    tensors.get(name)?.values({ signal });
  const { scaling } = config.rope;
  const rope = { ...config.rope, scaling: await withFactors(scaling, values) };
  return {
    config: { ...config, rope, windowRope: config.windowRope === config.rope ? rope : config.windowRope },
    sizes: new Map([...tensors].map(([name, { bytes }]) => [name, bytes])),
    codec: file.metadata.has('tokenizer.ggml.tokens') ? await textOfGguf(file, { packages }) : undefined,
    ropeFactors: await values('rope_freqs.weight'),
    weights: {
      has: (name) => tensors.has(name),
      kind: (name) => tensors.get(name)?.type ?? 'none',
      load: (names) =>
        weightOf(
          names.flatMap((name) => tensors.get(name) ?? []),
          signal,
        ),
    },
    close: () => file.close(),
  };
}

/** Tensors of one type as one: rows follow each other. */
async function weightOf(parts: readonly GgufTensor[], signal: AbortSignal | undefined): Promise<Weight> {
  const [first] = parts;
  const same = parts.every(
    ({ type, shape }) =>
      type === first?.type &&
      shape.length === first.shape.length &&
      shape.every((size, i) => i === 0 || size === first.shape[i]),
  );
  if (first === undefined || !same) {
    const shown = parts.map(({ name, type, shape }) => `${name} ${type}[${shape.join(',')}]`);
    throw new SinterError('E_FORMAT', `gguf: weights that belong together differ: ${shown.join(', ')}`);
  }
  const { type } = first;
  const rows = parts.reduce((sum, { shape }) => sum + (shape[0] ?? 1), 0);
  const shape = first.shape.map((size, i) => (i === 0 ? rows : size));
  if (isBlockFormat(type)) return fromBlockStream(pieces(parts, signal), { format: type, shape });
  if (!isFloat(type)) {
    throw new SinterError('E_FORMAT', `gguf: ${first.name} is ${type}: expected floats or blocks of them`);
  }
  // Its own memory: what a file gives may be a view of it.
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.bytes, 0));
  let at = 0;
  for await (const piece of pieces(parts, signal)) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return fromBytes(bytes, shape as FixedShape, type);
}

async function* pieces(
  parts: readonly GgufTensor[],
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  for (const part of parts) for await (const { data } of part.chunks({ signal })) yield data;
}

/** Factors of pairs, which a file has as tensors. */
async function withFactors(
  scaling: RopeScaling,
  values: (name: string) => Promise<Float32Array | undefined>,
): Promise<RopeScaling> {
  if (scaling.kind !== 'longrope') return scaling;
  const [short, long] = [await values('rope_factors_short.weight'), await values('rope_factors_long.weight')];
  return { ...scaling, short: [...(short ?? [])], long: [...(long ?? [])] };
}
