// Folders that are not what they must be: every fault is an error of a kind, and nothing outside of the files is read.

import { beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import { writeSafetensors, type ByteSource, type HostTensor } from '../../src/io/index.ts';
import { loadModel } from '../../src/llm/index.ts';
import { folderConfig, folderFiles, folderSpecs, folderTensors, jsonBytes } from '../support/llm/folder.ts';
import { fileSpecs, ggufBytes } from '../support/llm/gguf-model.ts';

const specOf = (name: string): (typeof folderSpecs)[number] =>
  folderSpecs.find((spec) => spec.name === name)!;
const llama = specOf('llama');
const shards = specOf('llama of bf16 in shards');
const mixtral = specOf('mixtral');

type Files = Map<string, Uint8Array>;
type Tensors = Map<string, HostTensor>;

const indexOf = (files: Files): { weight_map: Record<string, string> } =>
  JSON.parse(new TextDecoder().decode(files.get('model.safetensors.index.json'))) as {
    weight_map: Record<string, string>;
  };

/** A folder with another config.json. */
const withConfig = (changes: Readonly<Record<string, unknown>>, spec = llama): Files =>
  folderFiles(spec).set('config.json', jsonBytes({ ...folderConfig(spec), ...changes }));

/** A folder with other tensors. */
function withTensors(change: (tensors: Tensors) => void, spec = llama): Files {
  const tensors = new Map(folderTensors(spec));
  change(tensors);
  return folderFiles(spec).set('model.safetensors', writeSafetensors(tensors));
}

/** A folder in shards whose index was changed. */
function withIndex(change: (places: Record<string, string>) => void): Files {
  const files = folderFiles(shards);
  const index = indexOf(files);
  change(index.weight_map);
  return files.set('model.safetensors.index.json', jsonBytes(index));
}

function without(file: string, spec = llama): Files {
  const files = folderFiles(spec);
  files.delete(file);
  return files;
}

function cut(file: string, bytes: number, spec = llama): Files {
  const files = folderFiles(spec);
  return files.set(file, files.get(file)!.slice(0, bytes));
}

const values = (dtype: 'f32' | 'i32' | 'u8', ...shape: number[]): HostTensor => ({
  dtype,
  shape,
  data: new Uint8Array(shape.reduce((all, size) => all * size, 1) * (dtype === 'u8' ? 1 : 4)),
});
const header = (text: string): Uint8Array => {
  const bytes = new Uint8Array(8 + text.length);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(text.length), true);
  bytes.set(new TextEncoder().encode(text), 8);
  return bytes;
};

const first = 'model-00001-of-00003.safetensors';
const q = 'model.layers.0.self_attn.q_proj';

const faults: readonly (readonly [what: string, files: () => Files, code: string, message: RegExp])[] = [
  ['an empty folder', () => new Map(), 'E_IO', /has no config\.json/],
  ['no weights', () => without('model.safetensors'), 'E_IO', /has no model\.safetensors/],
  ['a shard that is missing', () => without(first, shards), 'E_IO', /has no model-00001-of-00003/],
  ['config.json that is no JSON', () => cut('config.json', 20), 'E_FORMAT', /config\.json: is not JSON/],
  [
    'text that is no UTF-8',
    () => folderFiles(llama).set('config.json', Uint8Array.of(34, 255, 34)),
    'E_FORMAT',
    /UTF-8/,
  ],
  [
    'config.json that is a list',
    () => folderFiles(llama).set('config.json', jsonBytes([1])),
    'E_UNSUPPORTED',
    /model_type is missing/,
  ],
  [
    'a tokenizer that is none',
    () => folderFiles(llama).set('tokenizer.json', jsonBytes({})),
    'E_VALUE',
    /no tokenizer\.json/,
  ],
  [
    'an unknown family',
    () => withConfig({ model_type: 'mamba' }),
    'E_UNSUPPORTED',
    /model_type is mamba: expected one of llama, mistral/,
  ],
  ['a family that is a number', () => withConfig({ model_type: 7 }), 'E_FORMAT', /model_type must be text/],
  [
    'weights quantised by GPTQ',
    () => withConfig({ quantization_config: { quant_method: 'gptq', bits: 4 } }),
    'E_UNSUPPORTED',
    /quantised by gptq/,
  ],
  [
    'weights quantised by AWQ that config.json does not tell',
    () =>
      withTensors((t) => {
        t.delete(`${q}.weight`);
        t.set(`${q}.qweight`, values('i32', 8, 8));
        t.set(`${q}.scales`, values('f32', 8));
      }),
    'E_UNSUPPORTED',
    /has no use for .*qweight[^]*not quantised/,
  ],
  [
    'weights of 8 bits',
    () => withTensors((t) => t.set(`${q}.weight`, values('u8', 128, 64))),
    'E_UNSUPPORTED',
    /q_proj\.weight is u8/,
  ],
  [
    'an activation that is not known',
    () => withConfig({ hidden_act: 'relu' }),
    'E_UNSUPPORTED',
    /the activation is relu/,
  ],
  [
    'a rope that is not known',
    () => withConfig({ rope_scaling: { rope_type: 'proportional', factor: 2 } }),
    'E_UNSUPPORTED',
    /rope is scaled by proportional/,
  ],
  [
    'a rope without its factor',
    () => withConfig({ rope_scaling: { rope_type: 'linear' } }),
    'E_FORMAT',
    /factor is missing/,
  ],
  [
    'a rope of the factor 0',
    () => withConfig({ rope_scaling: { rope_type: 'linear', factor: 0 } }),
    'E_FORMAT',
    /factor must be above 0/,
  ],
  [
    'a rope that shrinks',
    () => withConfig({ rope_scaling: { rope_type: 'dynamic', factor: 0.5 } }),
    'E_FORMAT',
    /factor must be at least 1, got 0.5/,
  ],
  ['a rope of the base 0', () => withConfig({ rope_theta: 0 }), 'E_FORMAT', /with the base 0/],
  [
    'factors of too few pairs',
    () => withConfig({ rope_scaling: { type: 'longrope', short_factor: [1], long_factor: [1] } }),
    'E_SHAPE',
    /1 factors of rotary embeddings, and 16 pairs/,
  ],
  ['no width', () => withConfig({ hidden_size: undefined }), 'E_FORMAT', /hidden_size is missing/],
  [
    'a width that is text',
    () => withConfig({ hidden_size: '64' }),
    'E_FORMAT',
    /hidden_size must be a number/,
  ],
  ['an absurd width', () => withConfig({ hidden_size: 2 ** 40 }), 'E_SHAPE', /configuration makes it/],
  ['an absurd vocabulary', () => withConfig({ vocab_size: 2 ** 52 }), 'E_SHAPE', /configuration makes it/],
  [
    'an absurd number of layers',
    () => withConfig({ num_hidden_layers: 2 ** 40 }),
    'E_FORMAT',
    /at most 4096/,
  ],
  ['half a layer', () => withConfig({ num_hidden_layers: 1.5 }), 'E_FORMAT', /whole number/],
  [
    'more layers than there are',
    () => withConfig({ num_hidden_layers: 3 }),
    'E_FORMAT',
    /is 3, and the weights have 2 layers/,
  ],
  [
    'an absurd number of heads',
    () => withConfig({ num_attention_heads: 2 ** 30, num_key_value_heads: 2 ** 30 }),
    'E_SHAPE',
    /configuration makes it/,
  ],
  [
    'heads that do not share keys evenly',
    () => withConfig({ num_key_value_heads: 3 }),
    'E_FORMAT',
    /no multiple/,
  ],
  ['no heads', () => withConfig({ num_attention_heads: 0 }), 'E_FORMAT', /at least 1, got 0/],
  [
    'kinds of layers that are too few',
    () => withConfig({ layer_types: ['full_attention'] }),
    'E_FORMAT',
    /list of 2 kinds/,
  ],
  [
    'kinds of layers that are not known',
    () => withConfig({ layer_types: ['full_attention', 'mamba'] }),
    'E_UNSUPPORTED',
    /layer_types has mamba/,
  ],
  [
    'experts of every layer but none',
    () => withConfig({ decoder_sparse_step: 0 }, mixtral),
    'E_FORMAT',
    /decoder_sparse_step must be a whole number of at least 1/,
  ],
  [
    'layers without experts that are no list',
    () => withConfig({ mlp_only_layers: 'all' }, mixtral),
    'E_FORMAT',
    /mlp_only_layers must be a list of numbers/,
  ],
  [
    'a layer without experts whose weights are those of experts',
    () => withConfig({ mlp_only_layers: [1] }, mixtral),
    'E_FORMAT',
    /no weight blk\.1\.ffn_up\.weight/,
  ],
  [
    'absurdly many experts',
    () => withConfig({ num_local_experts: 2 ** 40 }, mixtral),
    'E_SHAPE',
    /has 4 experts, and config\.json says 1099511627776/,
  ],
  [
    'more experts for a token than there are',
    () => withConfig({ num_experts_per_tok: 5 }, mixtral),
    'E_FORMAT',
    /5 of 4 experts/,
  ],
  [
    'an expert that is missing',
    () => withTensors((t) => t.delete('model.layers.0.block_sparse_moe.experts.2.w1.weight'), mixtral),
    'E_FORMAT',
    /lacks the expert 2/,
  ],
  [
    'an expert of another shape',
    () =>
      withTensors(
        (t) => t.set('model.layers.0.block_sparse_moe.experts.2.w1.weight', values('f32', 95, 64)),
        mixtral,
      ),
    'E_FORMAT',
    /belong together differ/,
  ],
  [
    'an expert of an absurd number',
    () =>
      withTensors(
        (t) =>
          t.set(
            'model.layers.0.block_sparse_moe.experts.99999999999999999999.w1.weight',
            values('f32', 96, 64),
          ),
        mixtral,
      ),
    'E_FORMAT',
    /lacks the expert 4/,
  ],
  [
    'a layer of an absurd number',
    () => withTensors((t) => t.set('model.layers.4000000000.input_layernorm.weight', values('f32', 64))),
    'E_FORMAT',
    /the weights have 3 layers/,
  ],
  [
    'a weight that is missing',
    () => withTensors((t) => t.delete(`${q}.weight`)),
    'E_FORMAT',
    /no weight blk\.0\.attn_q\.weight/,
  ],
  [
    'a head that is missing',
    () => withTensors((t) => t.delete('lm_head.weight')),
    'E_FORMAT',
    /does not say tie_word_embeddings/,
  ],
  [
    'a norm of heads that is missing',
    () => withTensors((t) => t.delete('model.layers.0.self_attn.q_norm.weight'), specOf('qwen3')),
    'E_FORMAT',
    /no weight blk\.0\.attn_q_norm/,
  ],
  [
    'a weight of another shape',
    () => withTensors((t) => t.set('model.norm.weight', values('f32', 65))),
    'E_SHAPE',
    /output_norm\.weight is \[65\]/,
  ],
  [
    'a weight on its side',
    () => withTensors((t) => t.set('model.layers.1.mlp.down_proj.weight', values('f32', 96, 64))),
    'E_SHAPE',
    /configuration makes it/,
  ],
  [
    'a tensor that nothing reads',
    () => withTensors((t) => t.set('model.layers.0.mlp.shared.weight', values('f32', 4))),
    'E_UNSUPPORTED',
    /no use for model\.layers\.0\.mlp\.shared/,
  ],
  [
    'an index without places',
    () => folderFiles(shards).set('model.safetensors.index.json', jsonBytes({})),
    'E_FORMAT',
    /no weight_map/,
  ],
  [
    'an index with a path',
    () =>
      withIndex((places) => {
        places['lm_head.weight'] = '../secret.safetensors';
      }),
    'E_FORMAT',
    /no file of the folder/,
  ],
  [
    'an index with a number',
    () =>
      withIndex((places) => {
        Object.assign(places, { 'lm_head.weight': 1 });
      }),
    'E_FORMAT',
    /no file of the folder/,
  ],
  [
    'an index with a tensor of no file',
    () =>
      withIndex((places) => {
        places['model.extra.weight'] = first;
      }),
    'E_FORMAT',
    /has no tensor model\.extra/,
  ],
  [
    'an index that names the wrong file',
    () =>
      withIndex((places) => {
        const name = 'lm_head.weight';
        places[name] = Object.values(places).find((file) => file !== places[name])!;
      }),
    'E_FORMAT',
    /lm_head\.weight/,
  ],
  [
    'a file that ends in its length',
    () => cut('model.safetensors', 5),
    'E_FORMAT',
    /ends in the header's length/,
  ],
  ['a file that ends in its header', () => cut('model.safetensors', 200), 'E_FORMAT', /ends in the header/],
  ['a file that ends in its data', () => cut('model.safetensors', 40_000), 'E_FORMAT', /outside the data/],
  ['a shard that ends in its data', () => cut(first, 9000, shards), 'E_FORMAT', /outside the data/],
  ['an empty file', () => cut('model.safetensors', 0), 'E_FORMAT', /ends in the header's length/],
  [
    'a header of an absurd length',
    () => folderFiles(llama).set('model.safetensors', new Uint8Array(16).fill(255)),
    'E_FORMAT',
    /header is said to take/,
  ],
  [
    'a header that is no JSON',
    () => folderFiles(llama).set('model.safetensors', header('{"a":')),
    'E_FORMAT',
    /not JSON/,
  ],
  [
    'a tensor outside of the file',
    () =>
      folderFiles(llama).set(
        'model.safetensors',
        header('{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}'),
      ),
    'E_FORMAT',
    /outside the data/,
  ],
  [
    'a tensor of an absurd shape',
    () =>
      folderFiles(llama).set(
        'model.safetensors',
        header('{"a":{"dtype":"F32","shape":[9007199254740991,9007199254740991],"data_offsets":[0,0]}}'),
      ),
    'E_FORMAT',
    /too many bytes/,
  ],
  [
    'a dtype that is not known',
    () =>
      folderFiles(llama).set(
        'model.safetensors',
        header('{"a":{"dtype":"F8_E4M3","shape":[0],"data_offsets":[0,0]}}'),
      ),
    'E_FORMAT',
    /unknown dtype/,
  ],
];

/** Files as sources that count what is read of them, and whether they are closed. */
function watched(files: Files): { sources: Map<string, ByteSource>; open: Set<string>; outside: string[] } {
  const open = new Set<string>();
  const outside: string[] = [];
  const sources = new Map<string, ByteSource>();
  for (const [name, bytes] of files) {
    sources.set(name, {
      name,
      get size() {
        open.add(name);
        return bytes.length;
      },
      read: async (begin, end) => {
        if (begin < 0 || end > bytes.length || begin > end) outside.push(`${name} ${begin}-${end}`);
        return bytes.subarray(begin, end);
      },
      close: async () => void open.delete(name),
    });
  }
  return { sources, open, outside };
}

beforeAll(() => sn.setDevice('interpreter'));

describe('a folder with', () => {
  test.each(faults)('%s is an error', async (_, make, code, message) => {
    const { sources, open, outside } = watched(make());
    const said: unknown = await loadModel(sources, { contextLength: 16 }).catch((error: unknown) => error);
    expect(said).toBeInstanceOf(sn.SinterError);
    expect({ code: (said as sn.SinterError).code, message: (said as Error).message }).toEqual({
      code,
      message: expect.stringMatching(message),
    });
    expect(outside).toEqual([]);
    // `size` is read again where a message names it.
    expect([...open].filter((name) => !name.endsWith('.json'))).toEqual([]);
  });

  test('nothing wrong is opened, and closed', async () => {
    const { sources, open, outside } = watched(folderFiles(shards));
    const model = await loadModel(sources, { contextLength: 16 });
    model.dispose();
    expect([outside, [...open]]).toEqual([[], []]);
  });
});

test('a GGUF file of absurdly many layers is an error', async () => {
  const spec = fileSpecs.find(({ name }) => name === 'llama f32')!;
  const bytes = await ggufBytes({ ...spec, extra: { block_count: 2 ** 31 } });
  await expect(loadModel(bytes)).rejects.toThrow(/block_count is 2147483648: expected at most 4096/);
});

test.each(['missing/', 'no/such/folder/'])('%s is no folder, and the error says so', async (path) => {
  await expect(loadModel(path)).rejects.toMatchObject({
    code: 'E_IO',
    message: `loadModel: ${path}: there is no such folder\n  try: the path of a folder of Hugging Face, or of a GGUF file`,
  });
  // Without the slash it may be meant for a file.
  await expect(loadModel(path.slice(0, -1))).rejects.toMatchObject({ code: 'E_IO' });
});
