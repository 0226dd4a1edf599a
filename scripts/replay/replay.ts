// `npm run replay`: what a change does to generated kernels. Without options it compares them with the manifest of main,
// test/golden/kernels.json, by their hashes; with `--against REV` with those that the revision generates, line by line.

import { execFileSync, spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { hashesOf, replayed } from './programs.ts';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const manifest = path.join(root, 'test/golden/kernels.json');

const usage = `usage: npm run replay -- [options]

Generates every kernel of the counted workloads, the operations, their gradients and the golden programs for WGSL (a GPU's
and the software adapter's schedules), CUDA and WebAssembly, and prints the programs whose kernels differ from the manifest
test/golden/kernels.json. Nothing is printed, and the exit code is 0, where none does.

  --against REV   compares with the kernels that REV generates, and prints the differing lines
  --write         writes the manifest anew
  --out DIR       writes the kernels into DIR, a file a program and target
  --json          prints the names that differ as JSON
  --help          this text`;

type Sources = ReadonlyMap<string, Readonly<Record<string, string>>>;

async function generate(): Promise<Sources> {
  const programs = await replayed();
  return new Map(
    programs.map(({ name, sources }, i) => {
      if (process.stderr.isTTY) process.stderr.write(`\r${i + 1}/${programs.length} programs`);
      return [name, sources()];
    }),
  );
}

function writeSources(folder: string, all: Sources): void {
  for (const [name, sources] of all) {
    for (const [target, text] of Object.entries(sources)) {
      const file = path.join(folder, target, `${name}.txt`);
      fs.mkdirSync(path.dirname(file), { recursive: true });
      fs.writeFileSync(file, `${text}\n`);
    }
  }
}

/** The names of the programs whose hashes are not those of the manifest, and of those that are in one of both only. */
function changedSinceManifest(all: Sources): string[] {
  const before = JSON.parse(fs.readFileSync(manifest, 'utf8')) as Readonly<Record<string, string>>;
  const names = new Set([...Object.keys(before), ...all.keys()]);
  return [...names].filter((name) => {
    const sources = all.get(name);
    return sources === undefined || before[name] !== hashesOf(sources);
  });
}

/** Generates the kernels of a revision in a work tree of its own; gives the folder with them. */
function generateAt(revision: string, folder: string): string {
  const tree = path.join(folder, 'tree');
  const out = path.join(folder, 'before');
  const git = (...args: readonly string[]): void =>
    void execFileSync('git', args, { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] });
  git('worktree', 'add', '--detach', '--force', tree, revision);
  try {
    fs.symlinkSync(path.join(root, 'node_modules'), path.join(tree, 'node_modules'));
    if (!fs.existsSync(path.join(tree, 'scripts/replay/replay.ts')))
      throw new Error(`${revision} has no scripts/replay: name a later revision`);
    execFileSync(process.execPath, ['--import', 'tsx', 'scripts/replay/replay.ts', '--out', out], {
      cwd: tree,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
  } finally {
    git('worktree', 'remove', '--force', tree);
  }
  return out;
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      against: { type: 'string' },
      write: { type: 'boolean', default: false },
      out: { type: 'string' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(usage);
    return 0;
  }
  if (values.against !== undefined) {
    const folder = fs.mkdtempSync(path.join(tmpdir(), 'sinter-replay-'));
    try {
      const before = generateAt(values.against, folder);
      const now = path.join(folder, 'now');
      writeSources(now, await generate());
      const args = ['diff', '--no-index', ...(values.json ? ['--name-only'] : []), before, now];
      const { stdout, status } = spawnSync('git', args, { encoding: 'utf8', maxBuffer: 2 ** 30 });
      const text = stdout.replaceAll(`${folder.slice(1)}/`, '');
      if (values.json) console.log(JSON.stringify(text.split('\n').filter((line) => line !== '')));
      else process.stdout.write(text);
      return status ?? 1;
    } finally {
      fs.rmSync(folder, { recursive: true, force: true });
    }
  }
  const all = await generate();
  if (values.out !== undefined) {
    writeSources(values.out, all);
    return 0;
  }
  if (values.write) {
    const hashes = [...all].map(([name, sources]) => [name, hashesOf(sources)] as const);
    fs.writeFileSync(manifest, `${JSON.stringify(Object.fromEntries(hashes), null, 1)}\n`);
    return 0;
  }
  const changed = changedSinceManifest(all);
  if (values.json) console.log(JSON.stringify(changed));
  else for (const name of changed) console.log(name);
  return changed.length === 0 ? 0 : 1;
}

process.exitCode = await main();
