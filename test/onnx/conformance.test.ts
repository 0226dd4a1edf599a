// The ONNX project's backend tests: all of them as WebAssembly, a share on software WebGPU and as compiled C, and exported again. They lie beside the
// repository; without them a note says so.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { setDevice } from '../../src/index.ts';
import { loadOnnx } from '../../src/onnx/index.ts';
import { withoutCompiler } from '../runtime/native/machine.ts';
import { chooseDevice } from '../runtime/native/waiting.ts';
import { casesOf, readPb, runCases, type Tally } from '../support/onnx/conformance.ts';
import { hydrated } from '../support/onnx/hydrated.ts';
import { reexported } from '../support/onnx/reexport.ts';
import { isQuick } from '../support/sample.ts';

const archive = fileURLToPath(new URL('../../../shared/onnx/conformance-open.tar.xz', import.meta.url));
const isThere = existsSync(archive);
if (!isThere) process.stderr.write(`skipped: no ONNX cases at ${archive}\n`);

/** The largest difference, as a share of the largest value. */
function deviation(actual: Float32Array, expected: Float32Array): number {
  const largest = expected.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  return expected.reduce((most, value, i) => Math.max(most, Math.abs(value - actual[i]!)), 0) / largest;
}

/** Cases whose outputs are of bf16, which the runtime's own arrays cannot hold, or are rounding noise. */
const unfit: ReadonlySet<string> = new Set([
  'test_cast_FLOAT_to_BFLOAT16',
  'test_castlike_FLOAT_to_BFLOAT16',
  'test_dft_inverse',
]);

/** Cases of sums that cancel to 0, where the runtime's own DFT leaves 1e-4 of numbers up to 4,950. */
const rough: ReadonlySet<string> = new Set(['test_dft', 'test_dft_irfft_opset19']);

const share = ({ passed, total }: Tally): number => passed / total;

describe.skipIf(!isThere)('the backend tests of the ONNX project', () => {
  const dir = isThere ? mkdtempSync(join(tmpdir(), 'sinter-onnx-')) : '';
  if (isThere) execFileSync('tar', ['xf', archive, '-C', dir]);
  afterAll(() => {
    setDevice(undefined);
    if (isThere) rmSync(dir, { recursive: true });
  });

  test.each(['wasm'])('pass on %s', async (device) => {
    setDevice(device);
    const report = await runCases(dir, casesOf(dir));
    expect(share(report.byScope['core']!)).toBeGreaterThanOrEqual(0.99);
    expect(share(report.byTag['f32-core']!)).toBeGreaterThanOrEqual(0.99);
    expect(share(report.byScope['out']!)).toBeGreaterThanOrEqual(0.8);
    const untyped = report.failures.filter(({ reason }) => /^(?:TypeError|RangeError|Error)\b/.test(reason));
    expect(untyped).toEqual([]);
  });

  test('pass on software WebGPU, one in six of those in its types', async () => {
    setDevice('webgpu:software');
    const fair = casesOf(dir).filter(({ tags, group }) => tags.includes('web-dtypes') && group === 'node');
    const report = await runCases(
      dir,
      fair.filter((_, i) => i % 6 === 0),
    );
    expect(report.failures).toEqual([]);
  });

  test('pass on native, one in eight of them', async (context) => {
    if (isQuick) context.skip('compiling takes more than the quick tier has time for');
    if (withoutCompiler !== undefined) context.skip(withoutCompiler);
    const rehearse = await chooseDevice('native');
    const core = casesOf(dir).filter(({ scope, name }) => scope === 'core' && !unfit.has(name));
    const run = (): ReturnType<typeof runCases> =>
      runCases(
        dir,
        core.filter((_, i) => i % 8 === 0),
      );
    await rehearse?.(run);
    expect((await run()).failures).toEqual([]);
  });

  test('come through export into ONNX Runtime, one in three', async () => {
    setDevice('interpreter');
    const core = casesOf(dir).filter(({ scope, group }) => scope === 'core' && group === 'node');
    const chosen = core.filter(({ name }, i) => i % 3 === 0 && !unfit.has(name) && !rough.has(name));
    const counts = { passed: 0, walked: 0 };
    const problems: string[] = [];
    for (const { group, name } of chosen) {
      const fate = await reexported(join(dir, group, name));
      if (typeof fate === 'string') counts[fate] += 1;
      else problems.push(`${name}: ${fate.problem}`);
    }
    expect(problems).toEqual([]);
    expect(counts.walked).toBeLessThan(chosen.length / 20);
  });

  // vgg19 would pass too, and take 2 GB for it.
  test.each(['light_bvlc_alexnet', 'light_shufflenet', 'light_squeezenet'])(
    'give the logits of %s with weights of a formula',
    async (name) => {
      setDevice('wasm');
      const { model, input, expected } = hydrated(dir, name);
      const [output] = Object.values(await model.run({ [input[0]]: input[1] }));
      expect(deviation((await output!.data()) as Float32Array, expected)).toBeLessThan(1e-3);
    },
  );

  test.each(['squeezenet', 'shufflenet'])('give what %s classifies', async (name) => {
    setDevice('wasm');
    const folder = fileURLToPath(new URL(`../../../shared/onnx/models/${name}`, import.meta.url));
    const model = await loadOnnx(join(folder, 'model.onnx'));
    const [input, expected] = ['input_0.pb', 'output_0.pb'].map(
      (file) => readPb(join(folder, file)).array.data,
    );
    const [output] = Object.values(await model.run({ [model.inputs[0]!.name]: input! }));
    expect(deviation((await output!.data()) as Float32Array, expected as Float32Array)).toBeLessThan(1e-3);
  });
});
