// The bytes of an exported model: its messages, and the elements of large initializers in files
// beside it where they do not fit into a message, or are asked to lie there.

import { codeOf, tensorDraft } from '../element.ts';
import type { MessageDraft } from '../schema.ts';
import { encode } from '../wire.ts';
import { portDraft, type Initializer, type OpenVal } from './emitter.ts';
import type { SpelledGraph } from './graph.ts';

/** A model of the file's parts. */
export interface ModelFileParts extends SpelledGraph {
  readonly name: string;
  readonly opset: number;
  readonly inputs: readonly OpenVal[];
  readonly outputs: readonly OpenVal[];
}

/** Messages end at 2 GiB; names, nodes and shapes take some of it. */
export const mostInMessage: number = 2 ** 31 - 2 ** 26;
/** Smaller elements stay in the message. */
const leastOutside = 1024;
/** Where readers may map elements into memory. */
const alignment = 4096;

/** The version of the messages that has 4-bit integers. */
const irVersion = 10n;

/** Where elements lie that are not in the message. */
interface Place {
  readonly file: string;
  readonly offset: number;
}

/**
 * The model's bytes. With `file`, large elements lie in files of that name; else only those of a
 * model that has too many.
 */
export function writeModel(
  parts: ModelFileParts,
  file: string | undefined,
  maxBytes: number = mostInMessage,
): { readonly bytes: Uint8Array; readonly externalData: Readonly<Record<string, Uint8Array>> } {
  const total = parts.initializers.reduce((sum, { data }) => sum + data.length, 0);
  const isOutside = file !== undefined || total > maxBytes;
  const { places, sizes } = layOut(isOutside ? parts.initializers : [], file ?? 'weights.bin', maxBytes);
  const files = Object.fromEntries([...sizes].map(([name, size]) => [name, new Uint8Array(size)]));
  for (const [{ data }, { file: name, offset }] of places) files[name]!.set(data, offset);
  const graph: MessageDraft<'Graph'> = {
    name: parts.name,
    node: parts.nodes,
    initializer: parts.initializers.map((one) => initializerDraft(one, places.get(one))),
    input: parts.inputs.map(portDraft),
    output: parts.outputs.map(portDraft),
  };
  const bytes = encode('Model', {
    irVersion,
    producerName: 'sinter',
    opsetImport: [{ domain: '', version: BigInt(parts.opset) }],
    graph,
  });
  return { bytes, externalData: files };
}

/** Large initializers one after the other, in as many files as it takes. */
function layOut(
  initializers: readonly Initializer[],
  file: string,
  maxBytes: number,
): { readonly places: ReadonlyMap<Initializer, Place>; readonly sizes: ReadonlyMap<string, number> } {
  const places = new Map<Initializer, Place>();
  const sizes = new Map<string, number>();
  let name = file;
  for (const one of initializers) {
    const { length } = one.data;
    if (length < leastOutside) continue;
    let offset = Math.ceil((sizes.get(name) ?? 0) / alignment) * alignment;
    if (offset > 0 && offset + length > maxBytes) {
      name = `${file}.${sizes.size}`;
      offset = 0;
    }
    places.set(one, { file: name, offset });
    sizes.set(name, offset + length);
  }
  return { places, sizes };
}

function initializerDraft(
  { name, type, shape, data }: Initializer,
  place: Place | undefined,
): MessageDraft<'Tensor'> {
  if (place === undefined) return tensorDraft(name, type, shape, data);
  const entry = (key: string, value: string | number): MessageDraft<'Entry'> => ({
    key,
    value: String(value),
  });
  return {
    dims: shape.map(BigInt),
    dataType: codeOf(type),
    name,
    dataLocation: 1,
    externalData: [
      entry('location', place.file),
      entry('offset', place.offset),
      entry('length', data.length),
    ],
  };
}
