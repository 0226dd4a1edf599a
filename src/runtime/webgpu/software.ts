// Node only: a software Vulkan driver out of an npm package. `@sparticuz/chromium` ships
// SwiftShader as a brotli-packed tar; its three driver files are unpacked once into a cache folder
// (temporary folder, then one rename, so that processes may race), and handed to the Vulkan loader
// by environment variables and an early dlopen.

import { randomUUID } from 'node:crypto';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { brotliDecompressSync } from 'node:zlib';
import { DeviceError } from '../../errors.ts';
import { resolveFromProject, type Resolve } from '../../packages/node.ts';

const DEVICE = 'webgpu:software';
const PACKAGE = '@sparticuz/chromium';
const LOADER = 'libvulkan.so.1';
const MANIFEST = 'vk_swiftshader_icd.json';
const DRIVER_FILES = [LOADER, 'libvk_swiftshader.so', MANIFEST];
/** Names and sizes of the unpacked files, by which a complete folder is recognised. */
const INVENTORY = 'inventory.json';

/** Absolute paths of an unpacked driver. */
export interface SoftwareDriver {
  readonly loader: string;
  readonly manifest: string;
}

/**
 * The packed driver's path and version; throws E_DEVICE, saying what to install, when the package
 * is absent.
 */
export function findArchive(resolve: Resolve = resolveFromProject): { file: string; version: string } {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    throw new DeviceError(
      'E_DEVICE',
      DEVICE,
      `the software driver is built for linux-x64 and this is ${process.platform}-${process.arch}`,
    );
  }
  let entry: string;
  try {
    entry = resolve(PACKAGE);
  } catch (cause) {
    throw new DeviceError(
      'E_DEVICE',
      DEVICE,
      `the package ${PACKAGE}, which carries the driver, is missing`,
      {
        hint: `npm install ${PACKAGE}`,
        cause,
      },
    );
  }
  for (let folder = path.dirname(entry); ; folder = path.dirname(folder)) {
    const file = path.join(folder, 'bin', 'swiftshader.tar.br');
    if (fs.existsSync(file)) return { file, version: packageVersion(folder) };
    if (folder === path.dirname(folder)) break;
  }
  throw new DeviceError('E_DEVICE', DEVICE, `${entry} has no bin/swiftshader.tar.br beside it`, {
    hint: `npm install ${PACKAGE}@147`,
  });
}

/** The unpacked driver inside `cache`, unpacking it first when it is absent or incomplete. */
export function unpackDriver(archive: { file: string; version: string }, cache: string): SoftwareDriver {
  const folder = path.join(cache, `swiftshader-${archive.version}`);
  unpackOnce(folder, DRIVER_FILES, function* () {
    for (const file of readTar(brotliDecompressSync(fs.readFileSync(archive.file)))) {
      if (DRIVER_FILES.includes(file.name)) yield file;
    }
  });
  return { loader: path.join(folder, LOADER), manifest: path.join(folder, MANIFEST) };
}

/** Files read from an archive. */
export type Unpacked = Iterable<{ readonly name: string; readonly bytes: Uint8Array }>;

/**
 * Fills `folder` with `unpack()`, in one step that may race; leaves it alone when it has all
 * `names` whole already.
 */
export function unpackOnce(folder: string, names: readonly string[], unpack: () => Unpacked): void {
  if (isComplete(folder, names)) return;
  const cache = path.dirname(folder);
  const unpacked = path.join(cache, `unpack-${randomUUID()}`);
  try {
    fs.mkdirSync(unpacked);
    const inventory: Record<string, number> = {};
    for (const { name, bytes } of unpack()) {
      const file = path.join(unpacked, name);
      fs.mkdirSync(path.dirname(file), { recursive: true });
      fs.writeFileSync(file, bytes, { mode: 0o755 });
      inventory[name] = bytes.length;
    }
    const lacking = names.filter((name) => inventory[name] === undefined);
    if (lacking.length > 0) {
      const problem = `the package ${PACKAGE} lacks ${lacking.join(', ')}`;
      throw new DeviceError('E_DEVICE', DEVICE, problem, { hint: `npm install ${PACKAGE}@147` });
    }
    fs.writeFileSync(path.join(unpacked, INVENTORY), JSON.stringify(inventory));
    for (let attempt = 0; !isComplete(folder, names); attempt++) {
      try {
        fs.renameSync(unpacked, folder);
      } catch (cause) {
        // Either another process was faster (then the folder is complete) or an incomplete folder
        // exists.
        if (isComplete(folder, names)) break;
        if (attempt === 3) throw cause;
        const broken = path.join(cache, `broken-${randomUUID()}`);
        try {
          fs.renameSync(folder, broken);
        } catch {
          continue; // Another process has just moved it away.
        }
        fs.rmSync(broken, { recursive: true, force: true });
      }
    }
  } finally {
    fs.rmSync(unpacked, { recursive: true, force: true });
  }
}

/** The regular files of a ustar archive, without copying their bytes. */
export function* readTar(archive: Uint8Array): Generator<{ name: string; bytes: Uint8Array }> {
  const text = (from: number, length: number): string => {
    const field = archive.subarray(from, from + length);
    const end = field.indexOf(0);
    return new TextDecoder().decode(end < 0 ? field : field.subarray(0, end));
  };
  for (let header = 0; header + 512 <= archive.length && archive[header] !== 0;) {
    const bytes = Number.parseInt(text(header + 124, 12).trim() || '0', 8);
    const start = header + 512;
    if (!(start + bytes <= archive.length)) {
      throw new DeviceError('E_DEVICE', DEVICE, `the driver archive is cut short at byte ${archive.length}`);
    }
    const type = text(header + 156, 1);
    if (type === '' || type === '0') {
      const prefix = text(header + 345, 155);
      const name = text(header, 100);
      yield {
        name: prefix === '' ? name : `${prefix}/${name}`,
        bytes: archive.subarray(start, start + bytes),
      };
    }
    header = start + Math.ceil(bytes / 512) * 512;
  }
}

function isComplete(folder: string, names: readonly string[]): boolean {
  try {
    const inventory: unknown = JSON.parse(fs.readFileSync(path.join(folder, INVENTORY), 'utf8'));
    if (typeof inventory !== 'object' || inventory === null) return false;
    const sizes = new Map<string, unknown>(Object.entries(inventory));
    return names.every((name) => fs.statSync(path.join(folder, name)).size === sizes.get(name));
  } catch {
    return false;
  }
}

function packageVersion(folder: string): string {
  const description: unknown = JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8'));
  if (typeof description === 'object' && description !== null && 'version' in description) {
    return String(description.version);
  }
  return 'unknown';
}
