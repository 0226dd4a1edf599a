// `npm run runtimes`: installs Node 24, Bun and Deno (380 MB) into Sinter's cache folder, for the tests that run Sinter on other runtimes
// than their own. Their packages carry the programs themselves; no script of theirs is run. `--ci` is what runs before the tests: it
// installs where the environment says CI, and leaves it at a line where that cannot be done.

import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { findRuntime, packages, runtimeNames, runtimesFolder } from '../test/support/runtimes.ts';

/** Why there is nothing to do. */
function idle(): string | undefined {
  if (process.argv.includes('--ci') && !process.env['CI']) return '';
  if (runtimeNames.every((name) => !('absent' in findRuntime(name)))) return 'Node 24, Bun and Deno are here';
  if (process.platform === 'linux' && process.arch === 'x64') return undefined;
  return `no runtimes are installed: they are programs for linux-x64, and this is ${process.platform}-${process.arch}`;
}

const reason = idle();
if (reason !== undefined) {
  if (reason !== '') console.log(reason);
} else {
  const folder = runtimesFolder();
  mkdirSync(folder, { recursive: true });
  const quiet = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-save', '--loglevel=error'];
  const patience = ['--fetch-retries=1', '--fetch-timeout=30000'];
  const args = ['install', '--prefix', folder, ...quiet, ...patience, ...packages];
  const { status } = spawnSync('npm', args, { stdio: 'inherit', timeout: 300_000 });
  console.log(
    status === 0 ? `installed in ${folder}: ${packages.join(', ')}` : `npm gave ${status}: no runtimes`,
  );
  if (!process.argv.includes('--ci')) process.exitCode = status ?? 1;
}
