// Node only: the folder where Sinter keeps files between runs (drivers, cubins, measured
// schedules).

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { DeviceError } from '../errors.ts';

/**
 * Where Sinter keeps files between runs: `SINTER_CACHE`, else the user's cache folder, else the
 * temporary one.
 */
export function cacheFolder(env: Readonly<Record<string, string | undefined>> = process.env): string {
  const home = env['XDG_CACHE_HOME'] ?? path.join(env['HOME'] ?? os.homedir(), '.cache');
  const explicit = env['SINTER_CACHE'];
  const candidates = explicit === undefined || explicit === '' ? [path.join(home, 'sinter')] : [explicit];
  const user = process.getuid?.() ?? 0;
  const temporary = path.join(os.tmpdir(), `sinter-${user}`);
  candidates.push(temporary);
  for (const folder of candidates) {
    try {
      fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
      fs.accessSync(folder, fs.constants.W_OK);
      // Any user may make a folder in the temporary one: libraries of another user's folder are
      // never loaded.
      if (folder !== temporary || fs.statSync(folder).uid === user) return folder;
    } catch {
      // Not writable: try the next one.
    }
  }
  throw new DeviceError('E_DEVICE', 'cache', `no writable cache folder among ${candidates.join(', ')}`, {
    hint: 'set SINTER_CACHE to a writable folder',
  });
}
