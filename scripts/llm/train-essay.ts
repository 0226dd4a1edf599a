// Trains the tiny Llama of test/support/llm/trained.ts and writes it as test/fixtures/llm/essay.gguf, about which
// scripts/llm/peer.ts asks llama.cpp: `npx tsx scripts/llm/train-essay.ts`, half a minute on one core.

import { writeFileSync } from 'node:fs';
import * as sn from '../../src/index.ts';
import { trainedFile, trainEssay } from '../../test/support/llm/trained.ts';

sn.setDevice('wasm:1');
const { weights, losses } = await trainEssay(600);
const shown = losses.filter((_, i) => i % 100 === 0 || i === losses.length - 1);
console.log(`losses: ${shown.map((loss) => loss.toFixed(3)).join(' ')}`);
writeFileSync(
  new URL('../../test/fixtures/llm/essay.gguf', import.meta.url),
  await trainedFile(weights, 'f16'),
);
