// Names that files have for other files lead into their own folder, whoever follows them: ONNX models and bundles, on the disk and over
// HTTP.

import * as fs from 'node:fs';
import { createServer, type Server } from 'node:http';
import * as os from 'node:os';
import * as path from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { beside } from '../../src/beside.ts';
import type { LoadOptions } from '../../src/bundle-runtime/runtime.ts';
import { SinterError, zeros, type Tensor } from '../../src/index.ts';
import { loadOnnx } from '../../src/onnx/index.ts';
import { built, removeFolders, written } from '../aot/bundles.ts';
import { modelOf, node, port } from '../support/onnx/file.ts';

/** What leads elsewhere, or nowhere; `{other}` is another host. */
const leading = [
  'http://{other}/m/weights.bin',
  'HTTP://{other}/m/weights.bin',
  '//{other}/m/weights.bin',
  '\\\\{other}\\m\\weights.bin',
  'file:///etc/passwd',
  '../secret',
  '..\\secret',
  '.\t./secret',
  '.\n./secret',
  ' /secret',
  '\t/secret',
  '/secret',
  '%2e%2e/secret',
  '..%2fsecret',
  'a/../../secret',
  'a/\t../../secret',
  '../../../../etc/passwd',
  '..',
  '.',
  '',
  'folder',
  'folder/',
  'weights\u0000.bin',
  '\ud800',
];

const asked: string[] = [];
const hosts: Server[] = [];
const places: string[] = [];
const root = fs.mkdtempSync(path.join(os.tmpdir(), 'sinter-beside-'));
const folder = path.join(root, 'm');
let bundle: string;
let load: (options: LoadOptions) => Promise<{ dispose(): void }>;

beforeAll(async () => {
  fs.mkdirSync(path.join(folder, 'folder'), { recursive: true });
  const values = new Uint8Array(Float32Array.of(3, 4).buffer);
  for (const name of ['secret', 'm/weights.bin', 'm/folder/100% of #1?.bin'])
    fs.writeFileSync(path.join(root, name), values);
  for (let i = 0; i < 2; i++) {
    const server = createServer((request, response) => {
      const { pathname } = new URL(request.url!, 'http://here');
      asked.push(`${i}${pathname}`);
      const file = path.join(root, decodeURIComponent(pathname));
      if (!fs.existsSync(file) || !fs.statSync(file).isFile()) return void response.writeHead(404).end();
      response.end(fs.readFileSync(file));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    hosts.push(server);
    places.push(`127.0.0.1:${(server.address() as { port: number }).port}`);
  }
  bundle = written(
    await built([{ name: 'run', fn: ((x: Tensor) => x.add(1)) as never, inputs: [zeros([2])] }], {
      targets: ['wasm'],
    }),
  );
  ({ load } = (await import(path.join(bundle, 'index.js'))) as { load: typeof load });
});
afterAll(() => {
  for (const server of hosts) server.close();
  fs.rmSync(root, { recursive: true });
  removeFolders();
});

function model(location: string): Uint8Array {
  const w = {
    name: 'w',
    dims: [2n],
    dataType: 1,
    dataLocation: 1,
    externalData: [{ key: 'location', value: location }],
  };
  const ports = { inputs: [port('x', 1, [2])], outputs: [port('y', 1, [2])] };
  return modelOf({ ...ports, initializers: [w], nodes: [node('Add', ['x', 'w'], ['y'])] });
}

async function refusalOf(loading: Promise<unknown>): Promise<string> {
  const error: unknown = await loading.then(
    () => 'it was read',
    (reason: unknown) => reason,
  );
  // A bundle has classes of its own.
  expect(error).toMatchObject({ name: expect.stringMatching(/^(?:Sinter|Parse)Error$/) as string });
  return (error as SinterError).code;
}

/** What the servers are asked for meanwhile, besides the file that names others. */
async function askedBy(work: Promise<unknown>, own: string): Promise<string[]> {
  asked.length = 0;
  await work;
  return asked.filter((place) => place !== own);
}

/** `0/m/weights.bin`: what the first host is asked for, below the folder. */
function isInFolder(place: string): boolean {
  return place.startsWith('0/m/') && !decodeURIComponent(place).split('/').includes('..');
}

describe('external data of an ONNX model', () => {
  test.each(leading)('called %j stays in the folder of its server', async (text) => {
    const location = text.replace('{other}', places[1]!);
    fs.writeFileSync(path.join(folder, 'model.onnx'), model(location));
    const loading = refusalOf(loadOnnx(`http://${places[0]}/m/model.onnx`));
    const others = await askedBy(loading, '0/m/model.onnx');
    // A name may lead to nothing in the folder.
    expect(['E_FORMAT', 'E_IO']).toContain(await loading);
    expect(others.filter((place) => !isInFolder(place))).toEqual([]);
  });

  test.each(leading)('called %j stays in the folder of its disk', async (text) => {
    const file = path.join(folder, 'model.onnx');
    fs.writeFileSync(file, model(text.replace('{other}', places[1]!)));
    expect(await askedBy(refusalOf(loadOnnx(file)), '')).toEqual([]);
    expect(await refusalOf(loadOnnx(file))).toBe('E_FORMAT');
    expect(await refusalOf(loadOnnx(pathToFileURL(file)))).toBe('E_FORMAT');
  });

  test.each(['weights.bin', './weights.bin', 'folder/100% of #1?.bin', 'folder\\100% of #1?.bin'])(
    'called %j is read from both',
    async (location) => {
      const file = path.join(folder, 'model.onnx');
      fs.writeFileSync(file, model(location));
      for (const place of [file, pathToFileURL(file), `http://${places[0]}/m/model.onnx?a=b#c`]) {
        const { y } = await (await loadOnnx(place)).run({ x: Float32Array.of(1, 1) });
        expect([...(await y!.data())]).toEqual([4, 5]);
      }
    },
  );
});

describe('files of a bundle', () => {
  const named = (name: string): void => {
    const file = path.join(bundle, 'program.json');
    const manifest = JSON.parse(fs.readFileSync(file, 'utf8')) as {
      files: unknown[];
      entries: { run: { programs: { wasm: { kernels: { file: string }[] }[] } } };
    };
    manifest.files = [{ name, bytes: 8, parts: [] }];
    const made = path.join(folder, 'program.json');
    fs.writeFileSync(made, JSON.stringify(manifest));
    fs.cpSync(path.join(bundle, 'kernels'), path.join(folder, 'kernels'), { recursive: true });
  };

  test.each(leading)('called %j stay in its folder', async (text) => {
    named(text.replace('{other}', places[1]!));
    expect(['E_FORMAT', 'E_IO']).toContain(
      await refusalOf(load({ target: 'wasm', threads: 1, base: pathToFileURL(`${folder}/`) })),
    );
    const loading = refusalOf(load({ target: 'wasm', threads: 1, base: `http://${places[0]}/m/` }));
    const others = await askedBy(loading, '0/m/program.json');
    expect(['E_FORMAT', 'E_IO']).toContain(await loading);
    expect(others.filter((place) => !isInFolder(place))).toEqual([]);
  });

  test('that it was not built with are refused, wherever they are', async () => {
    named('folder/other.bin');
    for (const base of [pathToFileURL(`${folder}/`), `http://${places[0]}/m/`])
      expect(await refusalOf(load({ target: 'wasm', threads: 1, base }))).toBe('E_FORMAT');
  });
});

test('a name beside what has no folder is refused', () => {
  for (const file of ['data:text/plain,x', 'blob:nodedata:1', 'model.onnx', ''])
    expect(() => beside('onnx', file, 'weights.bin')).toThrow(SinterError);
});
