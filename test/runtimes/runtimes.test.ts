// The published package on other runtimes than the one of the tests: Node 24, Bun and Deno as commands, Firefox as a page. Each gives
// the numbers that this Node gives, on WebAssembly (one thread and two), on the interpreter, and on WebGPU where it has one; and runs a
// bundle. A spread of the operations runs by wgpu, which Deno and Firefox have for WebGPU: SINTER_DENO_OPERATIONS and
// SINTER_FIREFOX_OPERATIONS say of how many. What is not here is skipped, with the reason.

import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { EntryPoint } from '../../src/aot/entry.ts';
import { built, removeFolders, written } from '../aot/bundles.ts';
import * as perceptron from '../aot/perceptron.ts';
import { compute, computeShared, type Numbers } from '../browser/program.ts';
import { isolated, serve } from '../browser/serve.ts';
import { close, setDevice } from '../../src/index.ts';
import { bundle as bundled, stagePackage } from '../support/browser/package.ts';
import { findFirefox, openFirefox } from '../support/browser/firefox.ts';
import { findRuntime, lavapipe, runtimeNames, softwareVulkan } from '../support/runtimes.ts';
import type { OperationCounts } from '../gpu/operations.ts';
import type { SuiteReport } from '../gpu/suite.ts';
import { trained, type Load, type SmokeReport } from './smoke.ts';
import { waitLimit } from '../support/limits.ts';

let folder: string;
let bundle: string;
let expected: Numbers;
let shared: readonly number[];
let learnt: readonly number[];
const noFirefox = 'no Firefox is here: apt-get install firefox-esr mesa-vulkan-drivers';
const isAnyHere =
  findFirefox() !== undefined || runtimeNames.some((name) => !('absent' in findRuntime(name)));
beforeAll(async () => {
  if (!isAnyHere) return;
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'sinter-runtimes-'));
  stagePackage(folder);
  setDevice('wasm');
  const points: EntryPoint[] = [
    { name: 'train', fn: perceptron.train as EntryPoint['fn'], inputs: perceptron.inputs.train },
  ];
  bundle = written(await built(points, { state: perceptron.state, targets: ['webgpu', 'wasm'] }));
  const { load } = (await import(path.join(bundle, 'index.js'))) as { load: Load };
  learnt = await trained(load, 'wasm');
  expected = await compute('wasm:1');
  shared = await computeShared('wasm:1');
  await commandFile();
});
afterAll(async () => {
  await close();
  removeFolders();
  if (isAnyHere) fs.rmSync(folder, { recursive: true, force: true });
});

/** The command beside the staged package, which it imports. */
async function commandFile(): Promise<void> {
  const made = await rolldown({
    input: path.join(import.meta.dirname, 'command.ts'),
    platform: 'node',
    plugins: [
      {
        name: 'published-names',
        resolveId(source) {
          const name = /\/src\/(?:(\w+)\/)?index\.ts$/.exec(source);
          if (name === null) return null;
          return { id: name[1] === undefined ? 'sinter' : `sinter/${name[1]}`, external: true };
        },
      },
    ],
  });
  await made.write({ file: path.join(folder, 'command.js'), format: 'esm' });
}

function expectReport(report: SmokeReport, devices: readonly string[]): void {
  expect(Object.keys(report.devices)).toEqual(devices);
  for (const [name, { numbers }] of Object.entries(report.devices)) expectClose(name, numbers, expected);
  expectClose('two threads', { shared: report.shared }, { shared });
  for (const [name, rows] of Object.entries(report.rows))
    expect([name, ...rows]).toEqual([name, 30, 31, 10, 11]);
  for (const [target, numbers] of Object.entries(report.bundle))
    expectClose(target, { numbers }, { numbers: learnt });
}

/** Every list of numbers, within a share of the larger of 1e-2 and the value: sums may be in another order. */
function expectClose<T extends object>(what: string, found: T, want: T): void {
  for (const [name, values] of Object.entries(want) as [keyof T & string, readonly number[]][]) {
    const got = found[name] as readonly number[];
    expect(got.length, `${what}: ${name}`).toBe(values.length);
    const off = values.filter(
      (value, i) => !(Math.abs(got[i]! - value) <= 1e-3 * Math.max(Math.abs(value), 1e-2)),
    );
    expect(off, `${what}: ${name}: ${got.join(' ')}, here ${values.join(' ')}`).toEqual([]);
  }
}

describe.each(['Node', 'Bun', 'Deno'] as const)('on %s', (name) => {
  const hasWebGpu = name === 'Deno';

  test('the package computes, trains, shares memory and runs a bundle', ({ skip }) => {
    const runtime = findRuntime(name);
    if ('absent' in runtime) return skip(runtime.absent);
    const { command, flags, version } = runtime;
    const devices = ['interpreter', 'wasm', ...(hasWebGpu ? ['webgpu:software'] : [])];
    const targets = ['wasm', ...(hasWebGpu ? ['webgpu'] : [])];
    const script = path.join(folder, 'command.js');
    const args = [...flags, script, name, devices.join(), targets.join(), path.join(bundle, 'index.js')];
    const { status, stdout, stderr } = spawnSync(command, args, {
      cwd: folder,
      encoding: 'utf8',
      timeout: waitLimit,
      env: { ...softwareVulkan(folder), SINTER_THREADS: '2' },
    });
    expect(status, `${stdout}\n${stderr}`).toBe(0);
    const report = JSON.parse(stdout.split('\n').findLast((line) => line.startsWith('{'))!) as SmokeReport;
    const described = Object.values(report.devices).map(({ description }) => description);
    console.log(`${name} ${version}: ${described.join('; ')}`);
    expectReport(report, devices);
  });
});

test.for([
  ['the adapter of this machine', lavapipe() === undefined],
  ['SwiftShader', true],
] as const)(
  "operations give PyTorch's figures by Deno's WebGPU on %s",
  ([adapter, isSwiftShader], { skip }) => {
    const runtime = findRuntime('Deno');
    if ('absent' in runtime) return skip(runtime.absent);
    if (isSwiftShader === (adapter !== 'SwiftShader'))
      return skip('lavapipe is not here, and SwiftShader is next');
    const project = path.resolve(import.meta.dirname, '../..');
    const none = ['--golden', 'none', '--products', 'none', '--bundles', 'none'];
    const spread = process.env['SINTER_DENO_OPERATIONS'] ?? '30';
    const suite = ['test/gpu/main.ts', '--device', 'webgpu:software', '--spread', spread, ...none];
    const { status, stdout, stderr } = spawnSync(runtime.command, [...runtime.flags, ...suite], {
      cwd: project,
      encoding: 'utf8',
      timeout: waitLimit,
      env: softwareVulkan(folder, isSwiftShader),
    });
    const report = JSON.parse(stdout || '{}') as SuiteReport;
    expect(report.failed, stderr).toEqual([]);
    expect(status).toBe(0);
    console.log(`${report.passed} operations on ${report.description}: ${report.seconds} s`);
    expect(report.passed).toBe(Number(spread));
  },
);

/** Opens a page of ours in Firefox, and gives what it reports; undefined where there is no Firefox. */
async function inFirefox<Report>(
  query: string,
  find: (at: string) => string | Uint8Array | undefined,
  skip: (reason: string) => never,
): Promise<Report> {
  const firefox = findFirefox();
  if (firefox === undefined) return skip(noFirefox);
  let reported: (body: string) => void = () => undefined;
  const heard = new Promise<string>((resolve) => (reported = resolve));
  const served = await serve((at, _, sent) => {
    if (at === '/report') reported(sent);
    const page = '<!doctype html><script type="module" src="/page.js"></script>';
    const body = at === '/report' ? '' : at === '/page.html' ? page : find(at);
    return body === undefined ? undefined : { body, headers: isolated };
  });
  const browser = openFirefox(firefox.program, `${served.origin}/page.html?${query}`);
  try {
    const late = new Promise<never>((_, reject) =>
      setTimeout(() => reject(new Error('Firefox did not report')), waitLimit).unref(),
    );
    const report = JSON.parse(await Promise.race([heard, late])) as Report & { readonly failure?: string };
    expect(report.failure).toBeUndefined();
    console.log(firefox.version);
    return report;
  } finally {
    await browser.close();
    await served.close();
  }
}

const noDriver =
  'Firefox has WebGPU where the machine has a Vulkan driver: apt-get install mesa-vulkan-drivers';

describe('in Firefox', () => {
  test('the package computes, trains, shares memory and runs a bundle', async ({ skip }) => {
    if (findFirefox() === undefined) return skip(noFirefox);
    const { files } = await bundled(folder, { page: path.join(import.meta.dirname, 'page.ts') });
    const webgpu = lavapipe() === undefined ? [] : ['webgpu'];
    if (webgpu.length === 0) console.log(`skipped: ${noDriver}`);
    const devices = ['interpreter', 'wasm', ...webgpu.map((name) => `${name}:software`)];
    const find = (at: string): string | Uint8Array | undefined =>
      at.startsWith('/bundle/') ? fs.readFileSync(path.join(bundle, at.slice(8))) : files.get(at.slice(1));
    const query = `devices=${devices.join()}&targets=${['wasm', ...webgpu].join()}`;
    expectReport(await inFirefox<SmokeReport>(query, find, skip), devices);
  });

  test("operations give PyTorch's figures", async ({ skip }) => {
    if (lavapipe() === undefined) return skip(noDriver);
    const figures = path.resolve(import.meta.dirname, '../fixtures/torch');
    const code = await operationsPage();
    const spread = process.env['SINTER_FIREFOX_OPERATIONS'] ?? '30';
    const report = await inFirefox<OperationCounts>(
      `device=webgpu:software&spread=${spread}`,
      (at) => {
        if (at === '/page.js') return code;
        if (at === '/figures') return JSON.stringify(fs.readdirSync(figures));
        return at.startsWith('/figures/')
          ? fs.readFileSync(path.join(figures, path.basename(at)))
          : undefined;
      },
      skip,
    );
    expect(report.failed).toEqual([]);
    expect(report.passed).toBe(Number(spread));
  });
});

/** The page of operations in one file. Its figures are no files, and what else Node has it does without. */
async function operationsPage(): Promise<string> {
  const made = await rolldown({
    input: path.join(import.meta.dirname, 'operations-page.ts'),
    platform: 'browser',
    shimMissingExports: true,
    external: ['koffi', 'webgpu', 'ohm-js'],
    logLevel: 'silent',
    plugins: [
      {
        name: 'no-node',
        resolveId: (id) => (id.startsWith('node:') ? `\0${id}` : null),
        load: (id) =>
          id === '\0node:fs'
            ? `const named = (url) => String(url).split('/').pop();
export const readFileSync = (url) => globalThis.sinterFiles.get(named(url));
export const readdirSync = () => [...globalThis.sinterFiles.keys()];`
            : id.startsWith('\0node:')
              ? 'export default {};'
              : null,
      },
    ],
  });
  const { output } = await made.generate({ format: 'esm', codeSplitting: false });
  return output[0].code;
}
