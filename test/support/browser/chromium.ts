// A real browser for tests, out of npm alone: the headless Chromium that `@sparticuz/chromium` ships, with its SwiftShader as
// the WebGPU adapter and the libraries that a bare machine lacks. Comes in: nothing; goes out: a browser context over a fresh
// profile, gone with everything it wrote once closed. A system Chromium is used only where the packaged one cannot start.

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { brotliDecompressSync } from 'node:zlib';
import { chromium, type BrowserContext } from 'playwright-core';
import { cacheFolder } from '../../../src/runtime/cache.ts';
import { findArchive, readTar, unpackOnce } from '../../../src/runtime/webgpu/software.ts';
import { waitLimit } from '../limits.ts';

/** A running browser. */
export interface Chromium {
  readonly context: BrowserContext;
  /** Which one it is, and where it lies. */
  readonly program: string;
  /** Its profile, home and temporary folder in one; named on the command lines of all its processes but the helpers'. */
  readonly profile: string;
  /** Ends all its processes and removes its profile; may be called twice. */
  close(): Promise<void>;
}

const FLAGS = [
  '--no-sandbox',
  '--enable-unsafe-webgpu',
  '--use-webgpu-adapter=swiftshader',
  '--enable-features=Vulkan',
];

const EXECUTABLE = 'chromium';
const LIBRARIES = 'lib';
/** What must be there for the unpacked browser to count as whole. */
const MEMBERS = [
  EXECUTABLE,
  'libvulkan.so.1',
  'libvk_swiftshader.so',
  'vk_swiftshader_icd.json',
  ...['libnspr4.so', 'libnss3.so', 'libnssutil3.so', 'libsoftokn3.so', 'libexpat.so.1'].map(
    (name) => `${LIBRARIES}/${name}`,
  ),
];

/** A way to start a browser. */
interface Candidate {
  readonly program: string;
  readonly executable: string;
  readonly libraries?: string;
}

/** Starts Chromium over a fresh profile; rejects with everything that was tried and why it failed. */
export async function openChromium(flags: readonly string[] = []): Promise<Chromium> {
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'sinter-chromium-'));
  const remove = (): void => fs.rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  const reasons: string[] = [];
  try {
    for (const candidate of candidates(reasons)) {
      try {
        const context = await launch(candidate, profile, flags);
        context.setDefaultTimeout(waitLimit);
        const close = async (): Promise<void> => {
          await context.close();
          remove();
        };
        return { context, program: candidate.program, profile, close };
      } catch (error) {
        reasons.push(`${candidate.program}: ${gist(error)}`);
      }
    }
  } catch (error) {
    remove();
    throw error;
  }
  remove();
  throw new Error(`no Chromium starts on this machine:\n  ${reasons.join('\n  ')}`);
}

function* candidates(reasons: string[]): Generator<Candidate> {
  try {
    const folder = unpackChromium();
    const executable = path.join(folder, EXECUTABLE);
    const libraries = path.join(folder, LIBRARIES);
    yield { program: `the packaged Chromium ${executable}`, executable, libraries };
    // Its libraries want a C library as new as theirs; where it is older, the system's may do.
    yield { program: `${executable} on the system's libraries`, executable };
  } catch (error) {
    reasons.push(`the packaged Chromium cannot be unpacked: ${gist(error)}`);
  }
  const system = ['chromium', 'chromium-browser', 'google-chrome']
    .map(onPath)
    .find((file) => file !== undefined);
  if (system === undefined) reasons.push('no system Chromium is on the PATH');
  else yield { program: `the system's ${system}`, executable: system };
}

/** Unpacks the browser into Sinter's cache, once; gives its folder. */
function unpackChromium(): string {
  const { file, version } = findArchive();
  const packed = (name: string): Uint8Array =>
    brotliDecompressSync(fs.readFileSync(path.join(path.dirname(file), name)));
  const folder = path.join(cacheFolder(), `chromium-${version}`);
  unpackOnce(folder, MEMBERS, function* () {
    yield { name: EXECUTABLE, bytes: packed('chromium.br') };
    yield* readTar(packed('swiftshader.tar.br'));
    yield* readTar(packed('al2023.tar.br'));
  });
  return folder;
}

function launch(
  { executable, libraries }: Candidate,
  profile: string,
  flags: readonly string[],
): Promise<BrowserContext> {
  return chromium.launchPersistentContext(path.join(profile, 'user-data'), {
    executablePath: executable,
    headless: true,
    args: [...FLAGS, ...flags],
    timeout: waitLimit,
    // Nothing of the user's is read or written, and all that is written lies in one folder.
    env: {
      PATH: process.env['PATH'],
      HOME: profile,
      TMPDIR: profile,
      ...(libraries === undefined ? {} : { LD_LIBRARY_PATH: libraries }),
    },
  });
}

function onPath(name: string): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(path.delimiter);
  return folders.map((folder) => path.join(folder, name)).find((file) => fs.existsSync(file));
}

/** What of a launch failure says why: its first line, and what the browser or the dynamic loader printed. */
function gist(error: unknown): string {
  const lines = stripVTControlCharacters(error instanceof Error ? error.message : String(error)).split('\n');
  const printed = lines.flatMap((line) => /\[err\] (.*)/.exec(line)?.[1] ?? []);
  const telling = printed.filter((line) => /error|fatal|cannot|no such|not found|denied/i.test(line));
  return [...new Set([lines[0], ...telling.slice(0, 4)])].join('\n    ');
}
