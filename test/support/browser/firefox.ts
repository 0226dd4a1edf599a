// Firefox, where the machine has one: it is told which page to open on its command line and the page reports back by itself, so that
// nothing but the browser is needed. Its WebGPU is wgpu, on lavapipe where Mesa's Vulkan drivers are installed. Goes out: a process
// over a fresh profile; both are gone once it is closed.

import { spawn, spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { waitLimit } from '../limits.ts';

const NAMES = ['firefox-esr', 'firefox'];

/** WebGPU on whatever adapter there is, and nothing that a first start would show or fetch. */
const PREFERENCES: Readonly<Record<string, boolean | number | string>> = {
  'dom.webgpu.enabled': true,
  'gfx.webgpu.ignore-blocklist': true,
  'browser.aboutwelcome.enabled': false,
  'browser.shell.checkDefaultBrowser': false,
  'browser.startup.homepage_override.mstone': 'ignore',
  'datareporting.policy.dataSubmissionEnabled': false,
  'app.update.auto': false,
  'app.normandy.enabled': false,
  'extensions.update.enabled': false,
  'network.captive-portal-service.enabled': false,
  'network.connectivity-service.enabled': false,
  'services.settings.server': 'data:,',
  'toolkit.telemetry.server': 'data:,',
};

/** The program and its version; undefined where there is none. */
export function findFirefox(): { readonly program: string; readonly version: string } | undefined {
  for (const program of NAMES) {
    const { status, stdout } = spawnSync(program, ['--version'], { encoding: 'utf8', timeout: waitLimit });
    if (status === 0) return { program, version: stdout.trim() };
  }
  return undefined;
}

/** Opens a page, without a window. `close` ends the browser, and may be called twice. */
export function openFirefox(program: string, url: string): { close(): Promise<void> } {
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'sinter-firefox-'));
  const lines = Object.entries(PREFERENCES).map(
    ([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});\n`,
  );
  fs.writeFileSync(path.join(profile, 'user.js'), lines.join(''));
  const child = spawn(program, ['--headless', '--no-remote', '--profile', profile, url], {
    // A group of its own, which ends as one.
    detached: true,
    stdio: 'ignore',
    // Nothing of the user's is read or written; lavapipe wants a folder to run in.
    env: { PATH: process.env['PATH'], HOME: profile, TMPDIR: profile, XDG_RUNTIME_DIR: profile },
  });
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
    child.once('error', () => resolve());
  });
  const kill = (): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    } catch {
      // All of the group is gone.
    }
  };
  process.once('exit', kill);
  return {
    close: async () => {
      kill();
      await ended;
      process.removeListener('exit', kill);
      fs.rmSync(profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    },
  };
}
