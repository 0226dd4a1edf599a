// Compilers that misbehave: they are the machine's own for everything but kernels.

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';

const folders: string[] = [];

/** A folder for one test. */
export function newFolder(): string {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'sinter-test-native-'));
  folders.push(folder);
  return folder;
}

export function removeFolders(): void {
  for (const folder of folders.splice(0)) fs.rmSync(folder, { recursive: true, force: true });
}

export interface Imitation {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** How often kernels were handed to it. */
  count(): number;
  /** The number of its process, the last time. */
  process(): number;
}

/** A compiler that runs these lines of a shell when it gets kernels, and then compiles them. */
export function compilerThat(lines: string): Imitation {
  const folder = newFolder();
  const [file, log] = [path.join(folder, 'cc'), path.join(folder, 'log')];
  fs.writeFileSync(log, '');
  fs.writeFileSync(
    file,
    `#!/bin/sh
case "$*" in *--version*|*-dM*) exec cc "$@" ;; esac
text='${folder}/'$$.c
cat > "$text"
if grep -q SINTER_KERNEL "$text"; then
echo $$ >> '${log}'
${lines}
fi
exec cc "$@" < "$text"
`,
    { mode: 0o755 },
  );
  const pids = (): string[] => fs.readFileSync(log, 'utf8').split('\n').filter(Boolean);
  return {
    env: { ...process.env, SINTER_CC: file },
    count: () => pids().length,
    process: () => Number(pids().at(-1)),
  };
}
