// Where CUDA's libraries are looked for, and what is said when they are not there.
//
// Runs in a process of its own: the CUDA device takes its settings once in a process.

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openCuda } from '../../src/runtime/cuda/open.ts';
import { driverPlaces, nvrtcPlaces, triedInWords } from '../../src/runtime/cuda/api/search.ts';

let home: string;
beforeAll(() => {
  home = fs.mkdtempSync(path.join(os.tmpdir(), 'sinter-search-'));
});
afterAll(() => fs.rmSync(home, { recursive: true }));

const filesOf = (places: Iterable<{ readonly file: string }>): string[] =>
  [...places].map(({ file }) => file);

/** What openCuda says first. */
async function refusal(env: Readonly<Record<string, string>>): Promise<string> {
  const error: unknown = await openCuda(0, { env }).catch((reason: unknown) => reason);
  expect(error).toMatchObject({ name: 'DeviceError', code: 'E_DEVICE' });
  return (error as Error).message.split('\n')[0]!;
}

test('a variable that names a library is the only place looked at', () => {
  expect(filesOf(driverPlaces({ SINTER_CUDA_DRIVER: '/a/driver.so' }, 'linux'))).toEqual(['/a/driver.so']);
  expect(filesOf(nvrtcPlaces({ NVRTC_PATH: '/a/nvrtc.so' }, 'linux', 13))).toEqual(['/a/nvrtc.so']);
});

test('the driver is libcuda.so.1 by name, then in the folders of systems and containers', () => {
  const places = filesOf(driverPlaces({}, 'linux'));
  expect(places[0]).toBe('libcuda.so.1');
  expect(places).toContain('/usr/local/nvidia/lib64/libcuda.so.1');
  expect(filesOf(driverPlaces({}, 'win32'))).toEqual(['nvcuda.dll']);
});

test('NVRTC is looked for from the driver downwards: never newer than the driver, never older than 12', () => {
  const names = (major: number): string[] =>
    filesOf(nvrtcPlaces({}, 'linux', major)).filter((file) => !path.isAbsolute(file));
  expect(names(14)).toEqual(['libnvrtc.so.14', 'libnvrtc.so.13', 'libnvrtc.so.12', 'libnvrtc.so']);
  expect(names(12)).toEqual(['libnvrtc.so.12', 'libnvrtc.so']);
  const windows = filesOf(nvrtcPlaces({}, 'win32', 13));
  expect(windows.slice(0, 2)).toEqual(['nvrtc64_130_0.dll', 'nvrtc64_120_0.dll']);
});

test('toolkits come before wheels, CUDA_HOME before CUDA_PATH, wheels of 13 before those of 12', () => {
  const site = path.join(home, 'lib', 'python3.11', 'site-packages');
  fs.mkdirSync(site, { recursive: true });
  const env = { CUDA_HOME: '/first', CUDA_PATH: '/second', VIRTUAL_ENV: home };
  const folders = filesOf(nvrtcPlaces(env, 'linux', 13)).map((file) => path.dirname(file));
  const wanted = [
    '/first/lib64',
    '/second/lib64',
    '/usr/local/cuda/lib64',
    path.join(site, 'nvidia', 'cu13', 'lib'),
    path.join(site, 'nvidia', 'cuda_nvrtc', 'lib'),
  ];
  const found = wanted.map((folder) => folders.indexOf(folder));
  expect(found).toEqual([...found].sort((a, b) => a - b));
  expect(found).not.toContain(-1);
});

test('what was tried is told in one line', () => {
  const tried = [
    { file: 'libx.so' },
    { file: '/a/libx.so' },
    { file: '/b/libx.so', problem: 'is version 9.0' },
  ];
  expect(triedInWords(tried)).toBe('the loader does not know libx.so; not in /a; /b/libx.so is version 9.0');
});

test('a library that is named and absent, or none, is refused by its name', async () => {
  const absent = path.join(home, 'absent.so');
  expect(await refusal({ SINTER_CUDA_DRIVER: absent })).toBe(
    `cuda: no CUDA driver on this machine: ${absent} is not there (SINTER_CUDA_DRIVER)`,
  );
  const text = path.join(home, 'text.so');
  fs.writeFileSync(text, 'not a library');
  expect(await refusal({ SINTER_CUDA_DRIVER: text })).toContain(
    `${text} cannot be opened (SINTER_CUDA_DRIVER): `,
  );
});

test('without koffi the error says what to install', async () => {
  const resolve = (): string => {
    throw new Error('Cannot find module');
  };
  await expect(openCuda(0, { resolve })).rejects.toThrow(/koffi.+is missing\n {2}try: npm install koffi/);
});
