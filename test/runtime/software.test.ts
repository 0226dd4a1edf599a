// The software driver out of npm: found, unpacked once, repaired when broken, and refused with what to install.

import { spawn } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DeviceError } from '../../src/errors.ts';
import { cacheFolder } from '../../src/runtime/cache.ts';
import { resolveFromProject } from '../../src/packages/node.ts';
import { softwareAdapter } from '../../src/runtime/webgpu/node.ts';
import { findArchive, readTar, unpackDriver } from '../../src/runtime/webgpu/software.ts';

let root: string;
beforeAll(() => {
  root = fs.mkdtempSync(path.join(os.tmpdir(), 'sinter-test-'));
});
afterAll(() => fs.rmSync(root, { recursive: true, force: true }));

/** A ustar header and its file, padded to whole blocks. */
function tarEntry(name: string, body: string, type = '0', prefix = ''): Uint8Array {
  const header = Buffer.alloc(512);
  header.write(name, 0);
  header.write(`${body.length.toString(8).padStart(11, '0')} `, 124);
  header.write(type, 156);
  header.write(prefix, 345);
  const padded = Buffer.alloc(Math.ceil(body.length / 512) * 512);
  padded.write(body);
  return Buffer.concat([header, padded]);
}

test('a tar is read entry by entry: names, prefixes, sizes, folders skipped', () => {
  const archive = Buffer.concat([
    tarEntry('folder/', '', '5'),
    tarEntry('a.txt', 'hello'),
    tarEntry('b.txt', 'x'.repeat(1000), '0', 'deep/er'),
    tarEntry('empty', ''),
    Buffer.alloc(1024),
  ]);
  const files = [...readTar(archive)].map(({ name, bytes }) => [name, Buffer.from(bytes).toString()]);
  expect(files).toEqual([
    ['a.txt', 'hello'],
    ['deep/er/b.txt', 'x'.repeat(1000)],
    ['empty', ''],
  ]);
  expect(() => [...readTar(archive.subarray(0, 512 + 512 + 512 + 512 + 600))]).toThrow(/cut short/);
});

test('the cache folder is SINTER_CACHE, else XDG, else the home, else a temporary one', () => {
  const explicit = path.join(root, 'explicit');
  expect(cacheFolder({ SINTER_CACHE: explicit, HOME: root })).toBe(explicit);
  expect(cacheFolder({ XDG_CACHE_HOME: path.join(root, 'xdg') })).toBe(path.join(root, 'xdg', 'sinter'));
  expect(cacheFolder({ HOME: root })).toBe(path.join(root, '.cache', 'sinter'));
  // A home that cannot hold a folder: a file stands where the folder should be.
  const file = path.join(root, 'file');
  fs.writeFileSync(file, '');
  expect(cacheFolder({ HOME: file })).toBe(path.join(os.tmpdir(), `sinter-${process.getuid?.() ?? 0}`));
});

test('a half-written folder is noticed and replaced', () => {
  const archive = findArchive();
  const cache = path.join(root, 'repair');
  fs.mkdirSync(cache);
  const driver = unpackDriver(archive, cache);
  const whole = fs.statSync(driver.loader).size;
  expect(whole).toBeGreaterThan(100_000);
  const before = fs.statSync(driver.loader).ino;
  unpackDriver(archive, cache);
  expect(fs.statSync(driver.loader).ino).toBe(before); // Nothing is unpacked twice.

  fs.truncateSync(driver.loader, 1000);
  expect(unpackDriver(archive, cache)).toEqual(driver);
  expect(fs.statSync(driver.loader).size).toBe(whole);
  fs.rmSync(driver.manifest);
  unpackDriver(archive, cache);
  expect(fs.existsSync(driver.manifest)).toBe(true);
  fs.rmSync(path.join(path.dirname(driver.loader), 'inventory.json'));
  unpackDriver(archive, cache);
  expect(fs.readdirSync(cache)).toEqual([path.basename(path.dirname(driver.loader))]); // No leftovers.
});

test('processes may unpack at the same time', async () => {
  const cache = path.join(root, 'race');
  const run = (): Promise<[number | null, string]> =>
    new Promise((resolve) => {
      const child = spawn(
        process.execPath,
        ['--import', 'tsx', path.join(import.meta.dirname, 'children', 'adapter.ts')],
        { env: { ...process.env, SINTER_CACHE: cache }, stdio: ['ignore', 'pipe', 'pipe'] },
      );
      let output = '';
      child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
      child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
      child.on('close', (code) => resolve([code, output.trim()]));
    });
  for (const result of await Promise.all([run(), run(), run()])) expect(result).toEqual([0, 'swiftshader']);
  expect(fs.readdirSync(cache)).toHaveLength(1);
});

test('a missing package is named, with what to install', async () => {
  const without =
    (missing: string) =>
    (specifier: string): string => {
      if (specifier === missing) throw new Error(`Cannot find module '${missing}'`);
      return resolveFromProject(specifier);
    };
  for (const missing of ['@sparticuz/chromium', 'koffi', 'webgpu']) {
    const error: unknown = await softwareAdapter(without(missing)).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(DeviceError);
    expect((error as DeviceError).code).toBe('E_DEVICE');
    expect((error as DeviceError).message).toContain(missing);
    expect((error as DeviceError).message).toContain(`try: npm install ${missing}`);
  }
  expect((await softwareAdapter()).info.architecture).toBe('swiftshader'); // And a failure leaves nothing behind.
});

test('the environment is left as it was', async () => {
  const before = process.env['VK_DRIVER_FILES'];
  await softwareAdapter();
  expect(process.env['VK_DRIVER_FILES']).toBe(before);
  process.env['VK_DRIVER_FILES'] = '/nowhere.json';
  try {
    await softwareAdapter();
    expect(process.env['VK_DRIVER_FILES']).toBe('/nowhere.json');
  } finally {
    if (before === undefined) delete process.env['VK_DRIVER_FILES'];
    else process.env['VK_DRIVER_FILES'] = before;
  }
});
