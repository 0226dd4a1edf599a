// Visits to a page that runs a network: from a bundle, or from the network's ONNX file by ONNX Runtime Web. Both pages do the same around
// their `open`, and come gzipped from one server with the headers that let them share memory; each visit has a browser that has seen
// nothing yet.

import { readFileSync } from 'node:fs';
import * as path from 'node:path';
import { gzipSync } from 'node:zlib';
import { removeFolders, temporary } from '../test/aot/bundles.ts';
import { filesUnder, isolated, serve, type Answer } from '../test/browser/serve.ts';
import { openChromium } from '../test/support/browser/chromium.ts';
import { sinter } from '../test/support/cli.ts';
import { networkFigures, type Network } from '../test/support/onnx/networks.ts';

export const sides = ['sinter', 'ort-web'] as const;
export type Side = (typeof sides)[number];
export const machines = ['wasm', 'webgpu'] as const;
export type Machine = (typeof machines)[number];

export interface VisitOptions {
  readonly machine: Machine;
  /** On wasm. */
  readonly threads: number;
  /** How often the network runs after its first time. */
  readonly later: number;
  /** What the network between server and browser is like; the loopback as it is by default. */
  readonly line?: { readonly megabits: number; readonly latency: number };
}

/** What a visit saw; times in ms. */
export interface Visit {
  /** Bytes on the wire, without what the network is asked, and files. */
  readonly bytes: number;
  readonly requests: number;
  /** From the visit's begin until the model is loaded. */
  readonly ready: number;
  /** The first inference, which begins then. */
  readonly first: number;
  /** From the visit's begin until the first result. */
  readonly total: number;
  /** Median of later inferences. */
  readonly later: number;
  /** Greatest difference from the network's own figures, relative to the greatest of these. */
  readonly error: number;
}

export interface Host {
  /** Rejects with what the page complains of. */
  visit(side: Side, options: VisitOptions): Promise<Visit>;
  close(): Promise<void>;
}

/** What a page reports. */
interface Report {
  readonly problem?: string;
  readonly ready: number;
  readonly total: number;
  readonly later: readonly number[];
  readonly output: readonly number[];
}

const ort = path.resolve(import.meta.dirname, '../node_modules/onnxruntime-web/dist');
const longest = 300_000;

/** Builds a network and serves both pages. WebGPU's kernels are scheduled for the software adapter of the browser that visits. */
export async function hostOf(network: Network): Promise<Host> {
  const { model, input, output } = networkFigures(network);
  const folder = temporary();
  const { code, err } = await sinter('build', model, '--software', '--out', folder);
  if (code !== 0) throw new Error(err);
  const files = new Map<string, string | Uint8Array>(
    [...filesUnder(folder)].map(([name, body]) => [`/bundle/${name}`, body]),
  );
  const { entries } = JSON.parse(String(files.get('/bundle/program.json'))) as {
    entries: { run: { inputs: [{ name: string }]; outputs: [{ name: string }] } };
  };
  const names = { input: entries.run.inputs[0].name, output: entries.run.outputs[0].name };
  files.set('/model.onnx', readFileSync(model));

  const packed = new Map<string, Uint8Array>();
  let [bytes, requests] = [0, 0];
  const answer = (at: string): Answer | undefined => {
    if (at === '/favicon.ico') return { body: '' };
    if (at === '/input') return { body: new Uint8Array(input.data.buffer), headers: isolated };
    const own = files.get(at) ?? (at.startsWith('/ort/') ? readFileSync(ort + at.slice(4)) : undefined);
    if (own === undefined) return undefined;
    const body = packed.get(at) ?? gzipSync(own);
    packed.set(at, body);
    bytes += body.length;
    requests += 1;
    return { body, headers: { ...isolated, 'content-encoding': 'gzip', 'cache-control': 'no-store' } };
  };
  const served = await serve(answer);

  return {
    async visit(side, options) {
      const page = `/${side}-${options.machine}.html`;
      files.set(page, pageOf(side, options, { ...names, shape: input.shape }));
      packed.delete(page);
      // What is compressed beforehand costs no visit anything.
      [...files.keys()].forEach(answer);
      if (side === 'ort-web') runtimeOf(options.machine).forEach((file) => answer(`/ort/${file}`));
      [bytes, requests] = [0, 0];
      const report = await visited(`${served.origin}${page}`, options);
      if (report.problem !== undefined) throw new Error(report.problem);
      const most = Math.max(...output.data.map(Math.abs));
      const wrong = Array.from(output.data, (value, i) => Math.abs(report.output[i]! - value) / most);
      return {
        bytes,
        requests,
        ready: report.ready,
        first: report.total - report.ready,
        total: report.total,
        later: report.later.toSorted((a, b) => a - b)[report.later.length >> 1] ?? NaN,
        error: Math.max(...wrong),
      };
    },
    async close() {
      await served.close();
      removeFolders();
    },
  };
}

async function visited(address: string, { line }: VisitOptions): Promise<Report> {
  const browser = await openChromium();
  try {
    const tab = await browser.context.newPage();
    if (line !== undefined) {
      const session = await browser.context.newCDPSession(tab);
      const throughput = (line.megabits * 1e6) / 8;
      await session.send('Network.enable');
      await session.send('Network.emulateNetworkConditions', {
        offline: false,
        latency: line.latency,
        downloadThroughput: throughput,
        uploadThroughput: throughput,
      });
    }
    const report = new Promise<Report>((resolve, reject) => {
      const nothing = { ready: NaN, total: NaN, later: [], output: [] };
      setTimeout(() => reject(new Error(`no result within ${longest} ms`)), longest).unref();
      tab.on('pageerror', (error) => resolve({ ...nothing, problem: String(error) }));
      void tab.exposeFunction('report', resolve);
    });
    // The browser is busy with itself when it has just begun.
    await new Promise((resolve) => setTimeout(resolve, 500));
    await tab.goto(address, { waitUntil: 'commit' });
    return await report;
  } finally {
    await browser.close();
  }
}

interface Call {
  readonly input: string;
  readonly output: string;
  readonly shape: readonly number[];
}

/** Files of ONNX Runtime Web for a machine. */
function runtimeOf(machine: Machine): readonly string[] {
  const suffix = machine === 'webgpu' ? '.asyncify' : '';
  return [`ort.${machine}.bundle.min.mjs`, `ort-wasm-simd-threaded${suffix}.wasm`];
}

function pageOf(side: Side, { machine, threads, later }: VisitOptions, call: Call): string {
  const [input, output] = [JSON.stringify(call.input), JSON.stringify(call.output)];
  const open =
    side === 'sinter'
      ? `import { load } from '/bundle/index.js';
async function open() {
  const model = await load({ target: '${machine}', threads: ${threads} });
  return async (image) => (await model.run({ [${input}]: image }))[${output}];
}`
      : `import * as ort from '/ort/${runtimeOf(machine)[0]}';
Object.assign(ort.env.wasm, { numThreads: ${threads}, wasmPaths: '/ort/' });
ort.env.logLevel = 'error';
async function open() {
  const session = await ort.InferenceSession.create('/model.onnx', { executionProviders: ['${machine}'] });
  return async (image) => {
    const given = new ort.Tensor('float32', image, ${JSON.stringify(call.shape)});
    return (await session.run({ [${input}]: given }))[${output}].data;
  };
}`;
  return `<!doctype html><title>${side}</title>
<script type="module">
${open}
const given = fetch('/input').then(async (answer) => new Float32Array(await answer.arrayBuffer()));
const run = await open();
const ready = performance.now();
const output = [...(await run(await given))];
const total = performance.now();
const later = [];
for (let i = 0; i < ${later}; i++) {
  const start = performance.now();
  await run(await given);
  later.push(performance.now() - start);
}
report({ ready, total, later, output });
</script>`;
}
