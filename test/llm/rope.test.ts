// Rotary embeddings whose frequencies a file divides: factors for every pair (Llama 3), and those of
// short and of long texts (LongRoPE), which files of Phi have without saying so.

import { expect, test } from 'vitest';
import { openGguf, writeGguf } from '../../src/io/index.ts';
import { frequenciesOf } from '../../src/llm/config/rope.ts';
import type { ModelSource } from '../../src/llm/index.ts';
import { ggufSource } from '../../src/llm/sources/gguf.ts';
import { fileSpecs, ggufBytes } from '../support/llm/gguf-model.ts';

const pairs = 8;
const factorsOf = (first: number, count = pairs): Float32Array =>
  Float32Array.from({ length: count }, (_, i) => first + i);

/** The small Phi, with these tensors of factors besides. */
async function withTensors(extra: Readonly<Record<string, Float32Array>>): Promise<ModelSource> {
  const spec = fileSpecs.find(({ name }) => name === 'phi3')!;
  const file = await openGguf(
    await ggufBytes({ ...spec, extra: { 'rope.scaling.original_context_length': 64 } }),
  );
  const pieces: Uint8Array[] = [];
  const added = Object.entries(extra).map(([name, data]) => ({
    name: `${name}.weight`,
    shape: [data.length],
    type: 'f32' as const,
    data,
  }));
  await writeGguf(
    { write: (piece) => void pieces.push(piece.slice()) },
    {
      metadata: file.metadata,
      tensors: [
        ...[...file.tensors.values()].map((data) => ({
          name: data.name,
          shape: data.shape,
          type: data.type as 'f32',
          data,
        })),
        ...added,
      ],
    },
  );
  return ggufSource(await openGguf(new Uint8Array(await new Blob(pieces as BlobPart[]).arrayBuffer())));
}

const plain = Array.from({ length: pairs }, (_, i) => 10_000 ** ((-2 * i) / (2 * pairs)));

test('factors of short and of long texts divide the frequencies, whether or not the kind is said', async () => {
  const { config } = await withTensors({
    rope_factors_short: factorsOf(1),
    rope_factors_long: factorsOf(20),
  });
  for (const [room, first] of [
    [64, 1],
    [65, 20],
  ] as const) {
    const { perPair, magnitude } = frequenciesOf(config.rope, room);
    perPair.forEach((found, i) => expect(found).toBeCloseTo(plain[i]! / (first + i), 12));
    expect(magnitude).toBe(1);
  }
});

test('factors of all texts divide the frequencies', async () => {
  const { config, ropeFactors } = await withTensors({ rope_freqs: factorsOf(2) });
  const { perPair } = frequenciesOf(config.rope, 64, ropeFactors);
  perPair.forEach((found, i) => expect(found).toBeCloseTo(plain[i]! / (2 + i), 12));
});

test('a factor that is missing is an error', async () => {
  const { config } = await withTensors({ rope_factors_short: factorsOf(1) });
  expect(() => frequenciesOf(config.rope, 65)).toThrow(
    'there are 0 factors of rotary embeddings, and 8 pairs',
  );
  expect(() => frequenciesOf({ ...config.rope, scaling: { kind: 'none' } }, 64, factorsOf(1, 3))).toThrow(
    'there are 3 factors',
  );
});
