// The recipes of CONTRIBUTING.md, followed in a copy of the checkout: an op, a rule, a pass and a target are added in as many places
// as the recipe says, a place that is left out is asked for by the type checker or by the test that is named here, and what was added
// works.

import { beforeAll, describe, expect, test } from 'vitest';
import { Checkout, type Place } from './recipes/checkout.ts';
import * as toys from './recipes/toys.ts';
import { readText } from './source.ts';

/** What becomes of the copy with some places filled. */
interface Result {
  readonly errors: readonly string[];
  readonly tests: string;
}

const all: readonly Place[] = [...toys.op, ...toys.rule, ...toys.pass, ...toys.target];
const named = (places: readonly Place[], ...names: readonly string[]): Place[] =>
  places.filter(({ what }) => names.includes(what));
const without = (places: readonly Place[], name: string): Place[] =>
  places.filter(({ what }) => what !== name);
/** Places are files: what imports a row is no place of its own. */
const count = (places: readonly Place[]): number => new Set(places.map(({ file }) => file)).size;
const recipe = (name: string): string =>
  readText('CONTRIBUTING.md')
    .split(/\n\n(?=\*\*)/)
    .find((text) => text.startsWith(`**${name}`))!;
/** The file that each message of the type checker is of. */
const filesOf = (errors: readonly string[]): string[] =>
  [...new Set(errors.filter((line) => !line.startsWith(' ')).map((line) => line.split('(')[0]!))].sort();

let complete: Result & { readonly found: Found };
let lacking: Result;
let rowless: readonly string[];
let declared: Result & { readonly found: Declared };

beforeAll(() => {
  const copy = new Checkout();
  const tested = (): string =>
    copy.test(
      ['test/ir/passes/rules.test.ts', 'test/structure/passes.test.ts'],
      'toy-sign-sign|lists every pass, in order',
    );
  try {
    complete = copy.with(all, () => ({
      errors: copy.typeErrors(),
      tests: tested(),
      found: copy.run(script) as Found,
    }));
    const begun = [
      ...named(toys.op, 'row'),
      ...named(toys.target, 'id'),
      ...without(toys.rule, 'example'),
      ...without(toys.pass, 'row of the document'),
    ];
    lacking = copy.with(begun, () => ({ errors: copy.typeErrors(), tests: tested() }));
    rowless = copy.with(without(toys.op, 'row'), () => copy.typeErrors());
    // Last, because the lists that it makes stay.
    declared = copy.with(toys.operation, () => {
      const before = copy.test(['test/structure/operations.test.ts'], 'what the sources declare');
      copy.makeLists();
      return { tests: before, errors: copy.typeErrors(), found: copy.run(operationScript) as Declared };
    });
  } finally {
    copy.close();
  }
});

test('with all places filled, the type checker and the tests are content', () => {
  expect(complete.errors).toEqual([]);
  expect(complete.tests).toMatch(/2 passed/);
});

describe('an operation', () => {
  test('is one place: its declaration', () => {
    expect(count(named(toys.operation, 'declaration'))).toBe(1);
    expect(recipe('Add a tensor operation')).toContain('one place');
  });

  test('whose lists a test asks for', () => {
    expect(declared.tests).toMatch(/FAIL .*src\/operations\/index\.ts is what the sources declare/);
    expect(declared.tests).toMatch(/FAIL .*src\/operations\/methods\.ts is what the sources declare/);
  });

  test('is a public name, a method with its types, and a row of documents and coverage', () => {
    expect(declared.errors).toEqual([]);
    expect(declared.found.values).toEqual([
      [1, 5, 14],
      [1, 5, 14],
    ]);
    expect(declared.found.refusal).toContain('toyEnergy');
    expect(declared.found.row).toEqual({
      family: 'Reductions and scans',
      name: 'toyEnergy',
      given: { x: 'sn.tensor([1, 2, 3])' },
      call: 'sn.toyEnergy(x, 0)',
    });
  });
});

describe('an elementwise primitive', () => {
  test('is at most five places, which the recipe names', () => {
    expect(count(toys.op)).toBe(5);
    const text = recipe('Add an elementwise primitive');
    expect(text).toContain('at most 5 places');
    for (const { file } of toys.op)
      expect(text).toContain(file.replace(/^src\//, '').replace('/wgsl/', '/{wgsl,cuda,wasm}/'));
  });

  test('once it has its row, the type checker asks for every other place, and for none besides', () => {
    const rest = without(toys.op, 'row').map(({ file }) => file);
    const asked = filesOf(lacking.errors).filter((file) => !toys.target.some((place) => place.file === file));
    expect(asked).toEqual(rest.sort());
    for (const file of rest)
      expect(lacking.errors.filter((line) => line.startsWith(file)).join()).toContain('toySign');
  });

  test('without its row, the type checker refuses what is written of it', () => {
    for (const { file } of named(toys.op, 'derivative', 'spelling', 'trial'))
      expect(rowless.filter((line) => line.startsWith(file)).join()).toContain('toySign');
  });

  test('means the same everywhere, and has a derivative', () => {
    const { found } = complete;
    const near = (numbers: readonly number[]): unknown[] =>
      numbers.map((x) => expect.closeTo(x, 6) as unknown);
    const meant = near(values.map((x) => x / (1 + Math.abs(x))));
    expect(found.interpreter).toEqual(meant);
    expect(found.wasm).toEqual(meant);
    expect(found.gradient).toEqual(near(values.map((x) => 1 / (1 + Math.abs(x)) ** 2)));
    expect(found.wgsl).toMatch(/x0 \/ \(1\.0 \+ abs\(x0\)\)/);
    expect(found.cuda).toMatch(/a\.x \/ \(1\.0f \+ fabsf\(a\.x\)\)/);
    expect(found.onnx).toBe(true);
  });
});

describe('a rewrite rule', () => {
  test('is two places: the rule, and an example, without which its test fails', () => {
    expect(count(toys.rule)).toBe(2);
    expect(recipe('Add a rewrite rule')).toContain('2 places');
    expect(lacking.tests).toContain('every rule has an example');
    // The test of an example applies the rule, and compares results on special values.
    expect(complete.tests).toContain('toy-sign-sign: sign(sign x) = sign x');
  });
});

describe('a pass', () => {
  test('is three places: its file, its row, and the row of the document, which a test asks for', () => {
    expect(count(toys.pass)).toBe(3);
    expect(recipe('Add a pass')).toContain('3 places');
    expect(lacking.tests).toMatch(/FAIL .*passes\.test\.ts.*lists every pass, in order/);
  });

  test('runs where its row stands', () => {
    const { names, doubled } = complete.found;
    expect(names[names.indexOf('toyDouble') + 1]).toBe('shareSubexpressions');
    expect(doubled).toMatch(/add\(%0, %0\)/);
    expect(doubled).not.toContain('mul');
  });
});

describe('a target', () => {
  test('is one folder and its id, for which the type checker asks for a row in each table of targets', () => {
    const rows = toys.target.filter(({ what }) => what.startsWith('row of')).map(({ file }) => file);
    const asked = lacking.errors.filter((line) => line.includes("Property 'toy' is missing"));
    expect(filesOf(asked)).toEqual(rows.sort());
    for (const file of rows) expect(recipe('Add a target')).toContain(file.replace(/^src\//, ''));
  });

  test('emits a kernel', () => {
    expect(complete.found.target).toBe('toy');
    expect(complete.found.source).toMatch(/^toy [\s\S]*exp/);
  });
});

/** What the script finds of the operation. */
interface Declared {
  readonly values: readonly (readonly number[])[];
  readonly refusal: string;
  readonly row: unknown;
}

const operationScript = `
import * as sn from './src/index.ts';
import { rowFamilies } from './scripts/operations/rows.ts';

sn.setDevice('interpreter');
const x = sn.tensor([1, 2, 3]);
const values = [];
for (const y of [sn.toyEnergy(x, 0), x.toyEnergy(0)]) values.push(await y.array());
let refusal = '';
try {
  sn.toyEnergy(x, 7);
} catch (error) {
  refusal = error.message;
}
const row = rowFamilies().flatMap(({ title, rows }) => rows.map((row) => ({ family: title, ...row }))).find(({ name }) => name === 'toyEnergy');
console.log(JSON.stringify({ values, refusal, row }));
`;

const values = [-3, -0.5, 0, 0.25, 7];

/** What the script finds in the copy, where all toys are. */
interface Found {
  readonly interpreter: readonly number[];
  readonly wasm: readonly number[];
  readonly gradient: readonly number[];
  readonly wgsl: string;
  readonly cuda: string;
  readonly onnx: boolean;
  readonly names: readonly string[];
  readonly doubled: string;
  readonly target: string;
  readonly source: string;
}

const script = `
import { compileGraph, passes } from './src/compile.ts';
import * as sn from './src/index.ts';
import { mul, unary } from './src/ir/build.ts';
import { GraphBuilder } from './src/ir/graph.ts';
import { print } from './src/ir/text/print.ts';
import { exportOnnx } from './src/onnx/index.ts';
import { cudaTarget, gpuTarget } from './src/schedule/target.ts';
import { record } from './src/tensor/record.ts';

const values = ${JSON.stringify(values)};
const toySign = (x) => record([x], (b, [node]) => unary(b, 'toySign', node));
const on = async (device, f) => {
  await sn.setDevice(device);
  return Array.from(await f(sn.tensor(values)).data());
};
const graphOf = (make) => {
  const b = new GraphBuilder();
  const x = b.add('parameter', [], { index: 0, name: 'x', dtype: 'f32', shape: [5] });
  return { parameters: [x], outputs: [make(b, x)] };
};
const compiled = (make, target) => compileGraph(graphOf(make), target, { check: true, inspect: true });
const source = (target) => compiled((b, x) => unary(b, 'toySign', x), target).kernels[0].source;
const exported = async () => Buffer.from((await exportOnnx(toySign, [sn.tensor(values)])).bytes);
const toy = compiled((b, x) => unary(b, 'exp', x), { ...gpuTarget, id: 'toy', name: 'toy' });
console.log(JSON.stringify({
  interpreter: await on('interpreter', toySign),
  onnx: (await exported()).toString('latin1').includes('Softsign'),
  gradient: await on('interpreter', sn.grad((x) => toySign(x).sum())),
  wasm: await on('wasm', toySign),
  wgsl: source(gpuTarget),
  cuda: source(cudaTarget),
  names: passes.map(({ name }) => name),
  doubled: print(compiled((b, x) => mul(b, x, 2), gpuTarget).inside.graph),
  target: toy.program.target,
  source: toy.kernels[0].source,
}));
process.exit(0);
`;
