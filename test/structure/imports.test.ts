// Imports run one way: cli → nn, optim, workloads, explain → tensor → tune → compile → codegen →
// schedule, autograd → ir. `runtime` stands beside that tower and knows nothing of it.

import { describe, expect, test } from 'vitest';
import { allSteps, circlesOf, closing, staleOf, type Step } from './circles.ts';
import { readText, reachable, sources, withoutComments } from './source.ts';

/**
 * What each room may import besides itself: `name` for anything, `type name` for types only, one
 * folder, or one file.
 */
const allowed: Readonly<Record<string, readonly string[]>> = {
  'absent.ts': [],
  'beside.ts': ['errors.ts'],
  packages: ['errors.ts'],
  'errors.ts': [],
  'platform.ts': [],
  'slot.ts': ['errors.ts'],
  'table.ts': [],
  ir: ['errors.ts', 'slot.ts', 'packages/ohm.ts'],
  runtime: ['errors.ts', 'packages/node.ts', 'platform.ts'],
  autograd: ['errors.ts', 'slot.ts', 'ir'],
  sharding: ['errors.ts', 'ir'],
  schedule: ['errors.ts', 'slot.ts', 'table.ts', 'ir', 'runtime/program.ts', 'type runtime'],
  codegen: ['errors.ts', 'slot.ts', 'ir', 'schedule', 'runtime/program.ts'],
  dump: ['ir', 'codegen', 'type schedule', 'schedule/text', 'runtime/program.ts'],
  compile: ['errors.ts', 'slot.ts', 'ir', 'schedule', 'codegen', 'dump', 'type runtime'],
  'compile.ts': ['compile'],
  tune: ['errors.ts', 'ir', 'schedule', 'codegen', 'compile', 'runtime/cache.ts', 'type runtime'],
  check: [
    'errors.ts',
    'table.ts',
    'ir',
    'schedule',
    'codegen',
    'compile',
    'tune',
    'runtime/program.ts',
    'type runtime',
  ],
  tensor: [
    'errors.ts',
    'slot.ts',
    'table.ts',
    'ir',
    'autograd',
    'sharding/part.ts',
    'sharding/partition.ts',
    'type sharding',
    'schedule/target.ts',
    'dump/stages.ts',
    'compile/chunks.ts',
    'compile/slots.ts',
    'compile/thread',
    'type compile',
    'check',
    'tune',
    'runtime',
  ],
  explain: [
    'packages/dagre.ts',
    'table.ts',
    'errors.ts',
    'slot.ts',
    'ir',
    'sharding/report.ts',
    'type sharding',
    'schedule',
    'type dump',
    'compile.ts',
    'compile/chunks.ts',
    'type compile',
    'tensor',
    'type runtime',
  ],
  nn: ['errors.ts', 'table.ts', 'ir', 'tensor', 'operations/linalg.ts'],
  optim: ['errors.ts', 'ir', 'tensor'],
  io: ['errors.ts', 'platform.ts', 'ir', 'tensor'],
  data: ['errors.ts', 'platform.ts', 'ir', 'io', 'tensor', 'packages'],
  pixels: ['errors.ts', 'platform.ts', 'ir', 'tensor'],
  llm: ['errors.ts', 'beside.ts', 'ir', 'io', 'operations', 'tensor', 'quant', 'packages'],
  quant: ['errors.ts', 'ir', 'tensor'],
  notation: ['errors.ts', 'ir', 'tensor', 'operations'],
  interop: ['errors.ts', 'ir', 'tensor', 'runtime', 'schedule/target.ts'],
  distributed: [
    'errors.ts',
    'platform.ts',
    'slot.ts',
    'packages',
    'ir',
    'autograd',
    'sharding',
    'runtime',
    'tensor',
    'io',
    'train/packed.ts',
  ],
  train: ['errors.ts', 'platform.ts', 'ir', 'tensor', 'nn', 'io'],
  onnx: [
    'errors.ts',
    'packages',
    'platform.ts',
    'beside.ts',
    'ir',
    'tensor',
    'operations',
    'nn/module.ts',
    'aot/names.ts',
    'aot/formats.ts',
    'aot/formula.ts',
    'aot/points.ts',
  ],
  'index.ts': ['preloaded.ts', 'basics.ts', 'operations', 'tensor'],
  'preloaded.ts': ['explain', 'tensor'],
  'basics.ts': ['errors.ts', 'tune', 'explain', 'tensor', 'type ir', 'type runtime'],
  operations: ['tensor', 'type ir'],
  workloads: [
    'errors.ts',
    'index.ts',
    'explain',
    'schedule/target.ts',
    'nn',
    'optim',
    'quant',
    'llm',
    'ir/blocks/format.ts',
    'ir/blocks/sizes.ts',
    'distributed',
  ],
  'bundle-runtime': [
    'errors.ts',
    'check/report.ts',
    ...['allowed', 'cut', 'imports', 'pool', 'threads'].map((file) => `runtime/wasm/${file}.ts`),
    'runtime/check.ts',
    'runtime/failures.ts',
    'runtime/limits.ts',
    'runtime/cuda',
    'type runtime',
  ],
  aot: [
    'errors.ts',
    'ir',
    'io',
    'schedule/target.ts',
    'compile.ts',
    'codegen/emit/c/join.ts',
    'tensor',
    'runtime/program.ts',
    // Models in C share the work of a call as the native device does.
    'runtime/native/pool.ts',
    'runtime/wasm/cut.ts',
    'runtime/cuda/api',
    'runtime/cuda/modules',
    'bundle-runtime/expected.ts',
    'bundle-runtime/places.ts',
    'bundle-runtime/sizes.ts',
    'type bundle-runtime',
    'type runtime',
    'check/comparison.ts',
    'check/plan.ts',
  ],
  cli: [
    'errors.ts',
    'ir/blocks/format.ts',
    'packages',
    'distributed',
    'dump/stages.ts',
    'aot',
    'onnx',
    'bundle-runtime/sizes.ts',
    'type bundle-runtime',
    'data/files/image.ts',
    'table.ts',
    'index.ts',
    'explain',
    'workloads',
    'nn',
    'optim',
    'quant',
    'io',
    'llm',
    'schedule/target.ts',
    'tensor',
    'tune',
  ],
};

/** `schedule` for src/schedule/cost.ts, `compile.ts` for src/compile.ts. */
function roomOf(path: string): string {
  return path.split('/')[1]!;
}

describe('imports', () => {
  test('name files that exist', () => {
    const lost = [...sources.values()].flatMap(({ path, imports }) =>
      imports
        .filter(({ target }) => target !== undefined && !sources.has(target))
        .map(({ specifier }) => `${path}: ${specifier}`),
    );
    expect(lost).toEqual([]);
  });

  test('run from each room to the rooms below it only', () => {
    const wrong = [...sources.values()].flatMap(({ path, imports }) => {
      const room = roomOf(path);
      const list = allowed[room] ?? [];
      return imports
        .filter(({ target, kind }) => {
          if (target === undefined || roomOf(target) === room) return false;
          const file = target.slice('src/'.length);
          // The file, and every folder that it lies in.
          const parts = file.split('/');
          const names = parts.map((_, i) => parts.slice(0, i + 1).join('/'));
          return !names.some(
            (name) => list.includes(name) || (kind === 'type' && list.includes(`type ${name}`)),
          );
        })
        .map(({ target }) => `${path} → ${target}`);
    });
    expect(wrong).toEqual([]);
  });

  test('are ruled for every room', () => {
    expect(Object.keys(allowed).sort()).toEqual([...new Set([...sources.keys()].map(roomOf))].sort());
  });

  test('go in no circle, of files or of folders, but for those in the list', () => {
    const listed = new Set(closing);
    expect(circlesOf(allSteps().filter((step) => !listed.has(step)))).toEqual([]);
  });

  test('are in that list only where they close a circle', () => {
    expect(staleOf(closing, allSteps())).toEqual([]);
    expect(closing).toEqual([...new Set(closing)].toSorted());
    const round: readonly Step[] = ['src/a/x.ts → src/a/b/y.ts', 'src/a/b/y.ts → src/a/x.ts'];
    expect(staleOf(round.slice(1), round)).toEqual([]);
    expect(staleOf(round, [...round, 'src/a/c.ts → src/a/x.ts'])).toEqual(round);
    expect(staleOf(round.slice(1), round.slice(0, 1))).toEqual(round.slice(1));
  });

  test('are found where the code calls for a module, and their circles too', () => {
    const kinds = [...sources.values()].flatMap(({ imports }) => imports.map(({ kind }) => kind));
    for (const kind of ['value', 'type', 'dynamic']) expect(kinds).toContain(kind);
    // A call that names no module loads a file of the user's or an optional package, nothing of ours.
    const unnamed = [...sources.values()].filter(({ text, imports }) => {
      const all = withoutComments(text).matchAll(/(?<![\w.])import\(/g);
      const named = imports.filter(({ called }) => called);
      return [...all].length !== named.length;
    });
    expect(unnamed.map(({ path }) => path)).toEqual([
      'src/aot/texts.ts',
      'src/cli/check/check.ts',
      'src/cli/program/module-file.ts',
      'src/cli/run/model.ts',
      'src/data/files/peer.ts',
      'src/data/workers/thread.ts',
      'src/packages/node.ts',
    ]);

    const down: readonly Step[] = ['src/a/b/x.ts → src/a/c/y.ts', 'src/a/c/y.ts → src/a/z.ts'];
    expect(circlesOf(down)).toEqual([]);
    expect(circlesOf([...down, 'src/a/c/w.ts → src/a/b/v.ts'])).toEqual([
      'in src/a: src/a/b/x.ts → src/a/c/y.ts; src/a/c/w.ts → src/a/b/v.ts',
    ]);
    expect(circlesOf([...down, 'src/a/z.ts → src/a/b/x.ts'])).toHaveLength(1);
  });
});

/**
 * What other rooms may use of the tensor layer: the files directly in its folder (`record.ts` makes tensors and records operations,
 * `values.ts` computes, reads and tells values apart, `tracing.ts` traces functions, `device.ts` has the device), and these folders,
 * whose functions are public or are about layers, sizes and reports.
 */
const opened: readonly string[] = [
  'anomaly',
  'check',
  'compile',
  'derivative',
  'formula',
  'layer',
  'ops',
  'profiling',
  'report',
  'sizes',
  'workarounds',
];

/** Imports past that interface. The list only shrinks: `buffer` is to become one file beside the others. */
const past: readonly Step[] = [
  'src/interop/backends.ts → src/tensor/buffer/source.ts',
  'src/interop/dlpack.ts → src/tensor/buffer/buffer.ts',
  'src/interop/dlpack.ts → src/tensor/buffer/source.ts',
  'src/interop/index.ts → src/tensor/buffer/buffer.ts',
  'src/interop/index.ts → src/tensor/buffer/fence.ts',
  'src/interop/index.ts → src/tensor/buffer/format.ts',
  'src/interop/index.ts → src/tensor/buffer/source.ts',
  'src/interop/storage.ts → src/tensor/buffer/buffer.ts',
  'src/interop/storage.ts → src/tensor/buffer/fence.ts',
  'src/interop/storage.ts → src/tensor/buffer/format.ts',
  'src/interop/storage.ts → src/tensor/buffer/source.ts',
  'src/pixels/read.ts → src/tensor/buffer/source.ts',
];

/** Of these imports those of other rooms into the tensor layer, past its interface. */
function pastInterface(steps: readonly Step[]): Step[] {
  return steps.filter((step) => {
    const [from, to] = step.split(' → ') as [string, string];
    const folder = /^src\/tensor\/([\w-]+)\//.exec(to)?.[1];
    return folder !== undefined && roomOf(from) !== 'tensor' && !opened.includes(folder);
  });
}

describe('the tensor layer', () => {
  test('is used by other rooms through its interface, but for the imports in the list', () => {
    expect([...new Set(pastInterface(allSteps()))].toSorted()).toEqual(past);
    const steps: readonly Step[] = [
      'src/nn/x.ts → src/tensor/handle/handle.ts',
      'src/nn/x.ts → src/tensor/values.ts',
      'src/nn/x.ts → src/tensor/ops/product/matmul.ts',
      'src/tensor/values.ts → src/tensor/handle/handle.ts',
    ];
    expect(pastInterface(steps)).toEqual(steps.slice(0, 1));
  });

  test('keeps to itself what stands behind a tensor', () => {
    const outside = [...sources.values()].filter(({ path }) => roomOf(path) !== 'tensor');
    const wrong = outside.filter(({ text }) => /\bhandleOf\b/.test(withoutComments(text)));
    expect(wrong.map(({ path }) => path)).toEqual([]);
  });
});

describe('a page that imports', () => {
  const { browser } = JSON.parse(readText('package.json')) as {
    readonly browser: Readonly<Record<string, string | false>>;
  };
  /** What package.json puts in the place of a file. */
  const onPage = (path: string): string | undefined => {
    const built = path.replace('src/', './dist/').replace(/\.ts$/, '.js');
    const other = browser[built] ?? built;
    return other === false ? undefined : other.replace('./dist/', 'src/').replace(/\.js$/, '.ts');
  };
  // Modules that a bundler must put on the page; dynamic imports are loaded only where the code
  // asks for them.
  const packagesFrom = (entry: string): string[] =>
    reachable(entry, (kind) => kind === 'value', onPage).flatMap((path) =>
      sources
        .get(path)!
        .imports.filter(({ target, kind }) => target === undefined && kind === 'value')
        .map(({ specifier }) => `${path}: ${specifier}`),
    );

  test.each(
    [
      'index.ts',
      'nn/index.ts',
      'optim/index.ts',
      'io/index.ts',
      'data/index.ts',
      'train/index.ts',
      'pixels/index.ts',
      'quant/index.ts',
    ].map((file) => `src/${file}`),
  )('%s loads no package and no module of Node', (entry) => expect(packagesFrom(entry)).toEqual([]));

  test.each(['src/ir/index.ts', 'src/notation/index.ts'])(
    '%s loads one package, the grammar toolkit',
    (entry) => {
      expect(packagesFrom(entry)).toEqual(['src/packages/ohm-page.ts: ohm-js']);
    },
  );

  test('src/explain/index.ts loads one package, the one that lays out graphs', () => {
    expect(packagesFrom('src/explain/index.ts')).toEqual(['src/packages/dagre-page.ts: @dagrejs/dagre']);
  });

  test('src/onnx/index.ts loads one package, the wire of protobuf, once a model is read or written', () => {
    expect(packagesFrom('src/onnx/index.ts')).toEqual([]);
    expect(packagesFrom('src/onnx/wire.ts')).toEqual(['src/onnx/wire.ts: @bufbuild/protobuf/wire']);
  });

  test.each(['webgpu', 'cuda'])('the %s runtime alone loads nothing of the compiler', (name) => {
    const rooms = reachable(`src/runtime/${name}/open.ts`, () => true).map(roomOf);
    expect([...new Set(rooms)].sort()).toEqual(['errors.ts', 'packages', 'platform.ts', 'runtime']);
  });
});
