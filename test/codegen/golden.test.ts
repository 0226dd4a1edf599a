// The generated source of a few small kernels, kept as files that a reader can open: a change of any of them is a change to
// review. `npx vitest run test/codegen/golden.test.ts -u` writes them anew.

import { expect, test } from 'vitest';

import { compileGraph } from '../../src/compile.ts';
import { Sketch } from './cases.ts';
import { goldenPrograms } from './golden-programs.ts';

test.each(Object.keys(goldenPrograms))('source of %s', async (name) => {
  const [target, make] = goldenPrograms[name]!;
  const sketch = new Sketch();
  const { kernels } = compileGraph(sketch.graph(make(sketch)), target, { check: true });
  const text = kernels.map((kernel) => kernel.source).join('\n');
  expect(kernels.length).toBe(1);
  const suffix = { cuda: 'cu', wasm: 'wat', c: 'c', wgsl: 'wgsl', interpreter: 'txt' }[target.id];
  const file = `${name.replace(/-(?:cuda|wasm|c)$/, '')}.${suffix}`;
  await expect(text).toMatchFileSnapshot(`../golden/${target.id}/${file}`);
});
