// How many channels lie side by side in a file that ONNX Runtime has laid out for one kind of CPU
// (com.microsoft.nchwc): 8 or 16, which the file does not say. Where a number of channels fits only one
// of them, that is the one; where all fit both, the user has to tell.

import { SinterError } from '../../../errors.ts';
import { blockAttribute } from './nchwc.ts';
import type { Message } from '../../schema.ts';

/** Channels of a block. */
export type LayoutBlock = 8 | 16;

export const layoutDomain = 'com.microsoft.nchwc';

/** A graph whose nodes of that layout know the size of their blocks. Throws E_UNSUPPORTED where it is unknown. */
export function withLayout(graph: Message<'Graph'>, told: LayoutBlock | undefined): Message<'Graph'> {
  if (!graph.node.some(({ domain }) => domain === layoutDomain)) return graph;
  const block = told ?? inferred(graph);
  const attribute = { name: blockAttribute, type: 2, i: BigInt(block) } as Message<'Attribute'>;
  const node = graph.node.map((item) =>
    item.domain === layoutDomain ? { ...item, attribute: [...item.attribute, attribute] } : item,
  );
  return { ...graph, node };
}

function inferred(graph: Message<'Graph'>): LayoutBlock {
  const sizes = new Map(graph.initializer.map(({ name, dims }) => [name, dims]));
  for (const { domain, opType, input } of graph.node) {
    if (domain !== layoutDomain || opType !== 'Conv') continue;
    const outputs = Number(sizes.get(input[1])?.[0] ?? 0n);
    // Filled up to the end of a block of 8, and not of 16.
    if (outputs % 16 !== 0) return 8;
  }
  const made = new Map(graph.node.flatMap((item) => item.output.map((name) => [name, item] as const)));
  for (const { domain, opType, input, attribute } of graph.node) {
    if (domain !== layoutDomain || opType !== 'ReorderOutput') continue;
    const channels = Number(attribute.find(({ name }) => name === 'channels')?.i ?? 0n);
    const source = made.get(input[0]!);
    const filled = Number(sizes.get(source?.opType === 'Conv' ? source.input[1] : undefined)?.[0] ?? 0n);
    // More is filled up than a block of 8 has.
    if (channels > 0 && filled - channels >= 8) return 16;
  }
  throw new SinterError(
    'E_UNSUPPORTED',
    `onnx: the file is laid out for one kind of CPU (${layoutDomain}) and does not say which\n` +
      '  try: loadOnnx(file, { layoutBlock: 8 }) for one made with AVX2, 16 for AVX-512 and ARM, or a file of optimisation level extended',
  );
}
