// A model in a GGUF file: its configuration from the metadata, its weights as they lie there. Floats
// come as they are, blocks of few bits as the f32 that they stand for.

import type { GgufFile } from '../../io/gguf/open.ts';
import type { RopeScaling } from '../config/config.ts';
import { configFromGguf } from '../config/gguf.ts';
import type { ModelSource, ModelSourceOptions } from './model.ts';
import { bytesInMemory, storedType, storedWeight, withRows } from './stored.ts';
import { textOfGguf } from '../text/gguf.ts';

/** The model of a file whose head has been read. */
export async function ggufSource(
  file: GgufFile,
  { signal, packages, quantize, families }: ModelSourceOptions = {},
): Promise<ModelSource> {
  const { tensors } = file;
  const config = configFromGguf(file, families);
  const values = async (name: string): Promise<Float32Array | undefined> =>
    tensors.get(name)?.values({ signal });
  const { scaling } = config.rope;
  const rope = { ...config.rope, scaling: await withFactors(scaling, values) };
  return {
    config: { ...config, rope, windowRope: config.windowRope === config.rope ? rope : config.windowRope },
    sizes: new Map([...tensors].map(([name, tensor]) => [name, bytesInMemory(name, tensor, quantize)])),
    codec: file.metadata.has('tokenizer.ggml.tokens') ? await textOfGguf(file, { packages }) : undefined,
    ropeFactors: await values('rope_freqs.weight'),
    weights: {
      has: (name) => tensors.has(name),
      kind: (name) => {
        const tensor = tensors.get(name);
        return tensor === undefined ? 'none' : storedType(name, tensor, quantize);
      },
      load: (names, rows) => {
        const all = names.flatMap((name) => tensors.get(name) ?? []);
        const parts = rows === undefined ? all : withRows(all, rows);
        return storedWeight('gguf', names[0]!, parts, { signal, quantize });
      },
    },
    close: () => file.close(),
  };
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
