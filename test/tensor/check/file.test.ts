// The file that `SINTER_WORKAROUNDS` names, which each session reads before it opens its device.

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import * as sn from '../../../src/index.ts';
import { Session, withSession } from '../../../src/tensor/session.ts';

let folder = '';
beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'sinter-workarounds-'));
});
afterEach(() => delete process.env['SINTER_WORKAROUNDS']);
afterAll(() => fs.rmSync(folder, { recursive: true }));

/** The device of a new session that asks for `wasm:1` where the variable names this file. */
async function deviceWith(file: string, content?: string): Promise<string> {
  const place = path.join(folder, file);
  if (content !== undefined) fs.writeFileSync(place, content);
  process.env['SINTER_WORKAROUNDS'] = place;
  const found = await withSession(new Session(), () => {
    sn.setDevice('wasm:1');
    return sn.check(() => undefined);
  });
  return found.device;
}

test('another device computes where the table says so', async () => {
  const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
  const description = 'WebAssembly SIMD, one thread';
  const entry = { device: 'wasm:1', description, avoid: [], schedules: {}, wrong: [], instead: 'wasm:2' };
  const table = (one: object): string => JSON.stringify({ version: 1, entries: [one] });
  expect(await deviceWith('instead.json', table(entry))).toBe('wasm:2');
  expect(warn.mock.calls).toEqual([
    [expect.stringContaining('wasm:2 computes instead of wasm:1 (WebAssembly SIMD')],
  ]);
  expect(await deviceWith('other.json', table({ ...entry, description: 'another driver' }))).toBe('wasm:1');
  warn.mockRestore();
});

test('a file that is no table is an error where a device is asked for', async () => {
  await expect(deviceWith('none.json')).rejects.toMatchObject({
    code: 'E_IO',
    message: expect.stringContaining('sinter check MODEL --write FILE') as string,
  });
  for (const [name, text, words] of [
    ['cut.json', '{', /cut\.json.*is not JSON/],
    ['old.json', '{"version":2,"entries":[]}', /old\.json.*expects \{ version: 1/],
  ] as const)
    await expect(deviceWith(name, text)).rejects.toMatchObject({
      code: 'E_FORMAT',
      message: expect.stringMatching(words) as string,
    });
});
