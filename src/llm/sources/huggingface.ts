// A model in a folder of Hugging Face: config.json, safetensors files, of which only the headers are read at
// first, and the files of its tokenizer.

import { ParseError, SinterError, TensorError } from '../../errors.ts';
import { placesInSafetensors } from '../../io/safetensors.ts';
import type { ByteSource } from '../../io/source/bytes.ts';
import { storedTensor, type StoredTensor } from '../../io/source/stored.ts';
import { namesOf, type ModelFamily } from '../config/families.ts';
import { configFromJson, objectOf, readConfigJson } from '../config/hf.ts';
import type { TextCodec } from '../codec.ts';
import type { WeightSource } from '../decoder/weights.ts';
import { textOfJson } from '../text/json.ts';
import { jsonIn, textIn, type ModelFolder } from './folder.ts';
import type { ModelSource, ModelSourceOptions } from './model.ts';
import { bytesInMemory, storedType, storedWeight, withRows } from './stored.ts';

/** A weight as a folder has it: one tensor, or one for each expert. */
interface FolderWeight {
  readonly parts: readonly StoredTensor[];
  readonly isStack: boolean;
}

/** The model of a folder. Rejects with E_FORMAT, E_IO or E_UNSUPPORTED. */
export async function folderSource(
  folder: ModelFolder,
  options: ModelSourceOptions = {},
): Promise<ModelSource> {
  const { signal, quantize } = options;
  const json = await jsonIn(folder, 'config.json', signal);
  if (json === undefined) {
    throw new SinterError(
      'E_IO',
      `loadModel: ${folder.name}: has no config.json\n  try: a GGUF file, or a folder of Hugging Face`,
    );
  }
  const read = readConfigJson(json, options.families);
  const opened: ByteSource[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(opened.map((source) => source.close()));
  };
  try {
    const tensors = await tensorsOf(folder, opened, signal);
    const { weights, layers } = weightsOf(tensors, read.family);
    const isTied = read.field('tie_word_embeddings') === true;
    // A head that is the embedding may lie in the files nevertheless.
    if (isTied) weights.delete('output.weight');
    const config = configFromJson(read, (name) => weights.has(name));
    if (layers !== config.layers) {
      throw new ParseError(
        'E_FORMAT',
        'config.json',
        `num_hidden_layers is ${config.layers}, and the weights have ${layers} layers`,
      );
    }
    const experts = config.experts?.count ?? 0;
    for (const [name, { parts, isStack }] of weights) {
      if (!isStack || parts.length === experts) continue;
      const problem = `${name} has ${parts.length} experts, and config.json says ${experts}`;
      throw new TensorError('E_SHAPE', 'loadModel', problem);
    }
    return {
      config,
      codec: await codecIn(folder, json, options),
      sizes: new Map(
        [...weights].map(([name, { parts }]) => [
          name,
          parts.reduce((sum, part) => sum + bytesInMemory(name, part, quantize), 0),
        ]),
      ),
      weights: sourceOf(weights, isTied, options),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

function sourceOf(
  weights: ReadonlyMap<string, FolderWeight>,
  isTied: boolean,
  { signal, quantize }: ModelSourceOptions,
): WeightSource {
  return {
    // A head that is missing is not the embedding unless config.json says so.
    has: (name) => weights.has(name) || (name === 'output.weight' && !isTied),
    kind: (name) => {
      const [first] = weights.get(name)?.parts ?? [];
      return first === undefined ? 'none' : storedType(name, first, quantize);
    },
    load: async (names, rows) => {
      const found = names.map((name) => {
        const weight = weights.get(name);
        if (weight !== undefined) return weight;
        const problem = `there is no ${name}, and config.json does not say tie_word_embeddings`;
        throw new ParseError('E_FORMAT', 'loadModel', problem);
      });
      const all = found.flatMap((weight) => weight.parts);
      const parts = rows === undefined ? all : withRows(all, rows);
      const isStack = found.some((weight) => weight.isStack);
      return storedWeight('safetensors', names[0]!, parts, { signal, quantize, isStack });
    },
  };
}

/** All tensors of the files, each opened once. */
async function tensorsOf(
  folder: ModelFolder,
  opened: ByteSource[],
  signal: AbortSignal | undefined,
): Promise<readonly StoredTensor[]> {
  const index = await jsonIn(folder, 'model.safetensors.index.json', signal);
  const shards = index === undefined ? undefined : shardsOf(index);
  const files = shards === undefined ? ['model.safetensors'] : [...new Set(shards.values())];
  const tensors = new Map<string, StoredTensor>();
  for (const file of files) {
    const source = await folder.open(file, signal);
    if (source === undefined) {
      const hint = shards === undefined ? '\n  try: a folder with safetensors files, or a GGUF file' : '';
      throw new SinterError('E_IO', `loadModel: ${folder.name}: has no ${file}${hint}`);
    }
    opened.push(source);
    for (const [name, { dtype, shape, begin, end }] of await placesInSafetensors(source)) {
      if ((shards?.get(name) ?? file) !== file || tensors.has(name)) {
        throw new ParseError('E_FORMAT', 'safetensors', `${name} is in two files`);
      }
      const facts = { name, shape, type: dtype, bytes: end - begin };
      tensors.set(name, storedTensor('safetensors', source, facts, begin));
    }
  }
  for (const [name, file] of shards ?? []) {
    if (!tensors.has(name)) throw new ParseError('E_FORMAT', 'safetensors', `${file} has no tensor ${name}`);
  }
  return [...tensors.values()];
}

/** The file of each tensor, as an index says. */
function shardsOf(index: unknown): ReadonlyMap<string, string> {
  const what = 'model.safetensors.index.json';
  const entries = Object.entries(objectOf(objectOf(index)['weight_map']));
  if (entries.length === 0) throw new ParseError('E_FORMAT', what, 'has no weight_map');
  return new Map(
    entries.map(([name, file]) => {
      if (typeof file === 'string' && /^[^/\\]+\.safetensors$/.test(file)) return [name, file];
      throw new ParseError(
        'E_FORMAT',
        what,
        `${name} lies in ${JSON.stringify(file)}, which is no file of the folder`,
      );
    }),
  );
}

/** Tensors that decoders have no use for: tables that are computed, and the parts that see pictures. */
const unused = /(?:^|\.)(?:rotary_emb\.inv_freq|vision_tower\..*|multi_modal_projector\..*)$/;

/** Weights by GGUF's names, and how many layers they are of. */
function weightsOf(
  tensors: readonly StoredTensor[],
  family: ModelFamily,
): { readonly weights: Map<string, FolderWeight>; readonly layers: number } {
  const nameOf = namesOf(family);
  const single = new Map<string, StoredTensor>();
  const stacks = new Map<string, Map<number, StoredTensor>>();
  const layers = new Set<number>();
  const unknown: string[] = [];
  for (const tensor of tensors) {
    // Models that also take pictures have their text's part in one of its own.
    const found = nameOf(
      tensor.name.replace('model.language_model.', 'model.').replace(/^language_model\./, ''),
    );
    if (found === undefined) {
      if (!unused.test(tensor.name)) unknown.push(tensor.name);
      continue;
    }
    const { name, layer, expert } = found;
    if (!['f32', 'f16', 'bf16'].includes(tensor.type)) {
      const problem = `${tensor.name} is ${tensor.type}: expected f32, f16 or bf16`;
      throw new TensorError('E_UNSUPPORTED', 'loadModel', problem);
    }
    if (layer !== undefined) layers.add(layer);
    const stack = stacks.get(name) ?? new Map<number, StoredTensor>();
    const isTwice = expert === undefined ? single.has(name) : stack.has(expert);
    if (isTwice) throw new ParseError('E_FORMAT', 'safetensors', `there are two tensors of ${name}`);
    if (expert === undefined) single.set(name, tensor);
    else stacks.set(name, stack.set(expert, tensor));
  }
  if (unknown.length > 0) {
    const shown = unknown.slice(0, 3).join(', ');
    const rest = unknown.length > 3 ? ` and ${unknown.length - 3} others` : '';
    const problem = `the family ${family.name} has no use for ${shown}${rest}`;
    const hint = 'a folder whose weights are not quantised, and that model_type describes';
    throw new TensorError('E_UNSUPPORTED', 'loadModel', problem, hint);
  }
  const weights = new Map<string, FolderWeight>();
  for (const [name, tensor] of single) weights.set(name, { parts: [tensor], isStack: false });
  for (const [name, stack] of stacks) {
    const parts = Array.from({ length: stack.size }, (_, i) => stack.get(i));
    const lost = parts.indexOf(undefined);
    if (lost >= 0) throw new ParseError('E_FORMAT', 'safetensors', `${name} lacks the expert ${lost}`);
    weights.set(name, { parts: parts.filter((part) => part !== undefined), isStack: true });
  }
  return { weights, layers: layers.size };
}

/** The codec of the folder's tokenizer; undefined where it has no tokenizer.json. */
async function codecIn(
  folder: ModelFolder,
  config: unknown,
  { signal, packages }: ModelSourceOptions,
): Promise<TextCodec | undefined> {
  const tokenizer = await jsonIn(folder, 'tokenizer.json', signal);
  if (tokenizer === undefined) return undefined;
  const files = {
    tokenizer,
    config: await jsonIn(folder, 'tokenizer_config.json', signal),
    generation: (await jsonIn(folder, 'generation_config.json', signal)) ?? config,
    chatTemplate: await textIn(folder, 'chat_template.jinja', signal),
  };
  return textOfJson(files, { packages });
}
