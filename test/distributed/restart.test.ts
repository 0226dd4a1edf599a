// A training that was interrupted goes on from its checkpoint: bit for bit on the same mesh, and within rounding on another.

import { execFile } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, expect, test } from 'vitest';
import { isQuick } from '../support/sample.ts';

const cli = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const script = fileURLToPath(new URL('../../examples/distributed/transformer.ts', import.meta.url));
const root = fs.mkdtempSync(path.join(os.tmpdir(), 'sinter-restart-'));
afterAll(() => fs.rmSync(root, { recursive: true, force: true }));

/** The losses of a training by so many threads, which goes on from the checkpoint in the folder. */
async function trained(count: number, parallel: string, steps: number, folder?: string): Promise<number[]> {
  const saving = folder === undefined ? [] : ['--save', folder, '--every', '1'];
  const own = ['--parallel', parallel, '--steps', String(steps), '--device', 'wasm:1', '--json', ...saving];
  const launch = [cli, 'launch', '-n', String(count), '--show', '0', script, ...own];
  const { stdout } = await promisify(execFile)(process.execPath, launch);
  return (JSON.parse(stdout) as { readonly losses: number[] }).losses;
}

test('a training goes on bit for bit on the same mesh, and within 1e-5 on another', async () => {
  const undisturbed = await trained(2, 'fsdp', 3);
  const folder = path.join(root, 'run');
  expect(await trained(2, 'fsdp', 2, folder)).toEqual(undisturbed.slice(0, 2));
  const copy = path.join(root, 'copy');
  fs.cpSync(folder, copy, { recursive: true });
  expect(await trained(2, 'fsdp', 3, folder)).toEqual(undisturbed);
  if (isQuick) return;
  for (const [i, loss] of (await trained(4, 'data', 3, copy)).entries())
    expect(Math.abs(loss - undisturbed[i]!) / undisturbed[i]!).toBeLessThan(1e-5);
});
