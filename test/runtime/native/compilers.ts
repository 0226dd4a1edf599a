// Compilers that misbehave: they are the machine's own for everything but kernels.

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';

const made: string[] = [];
const temporary = (): string => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'sinter-test-native-'));
  made.push(folder);
  return folder;
};

/** One compiler for all tests, so that the device's own object is compiled once. */
const home = temporary();
const [file, log, lines] = ['cc', 'log', 'lines'].map((name) => path.join(home, name)) as [
  string,
  string,
  string,
];
const kept = path.join(home, 'kept');
fs.writeFileSync(
  file,
  `#!/bin/sh
case "$*" in *--version*|*-dM*) exec cc "$@" ;; esac
text='${home}/'$$.c
cat > "$text"
if grep -q SINTER_KERNEL "$text"; then
echo $$ >> '${log}'
. '${lines}'
fi
exec cc "$@" < "$text"
`,
  { mode: 0o755 },
);

/** A folder for compiled programs, in which the device's own object is. */
export function newFolder(): string {
  const folder = temporary();
  if (fs.existsSync(kept)) fs.cpSync(kept, folder, { recursive: true });
  return folder;
}

/** Keeps what a folder holds, for all that are made from now on. */
export function keep(folder: string): void {
  fs.cpSync(folder, kept, { recursive: true });
}

export function removeFolders(): void {
  for (const folder of made.splice(0)) fs.rmSync(folder, { recursive: true, force: true });
}

export interface Imitation {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** How often kernels were handed to it. */
  count(): number;
  /** The number of its process, the last time. */
  process(): number;
}

/** The compiler, which from now on runs these lines of a shell when it gets kernels, and then compiles them. */
export function compilerThat(does: string): Imitation {
  fs.writeFileSync(lines, `${does}\n`);
  fs.writeFileSync(log, '');
  const pids = (): string[] => fs.readFileSync(log, 'utf8').split('\n').filter(Boolean);
  return {
    env: { ...process.env, SINTER_CC: file },
    count: () => pids().length,
    process: () => Number(pids().at(-1)),
  };
}
