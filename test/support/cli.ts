// The command line as tests run it: in this process, with what it writes kept.

import { runCli } from '../../src/cli/commands.ts';

export interface Said {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs `sinter` with these arguments; gives its exit code, and what it wrote. */
export async function sinter(...args: readonly string[]): Promise<Said> {
  const [out, err, open]: [string[], string[], string[]] = [[], [], []];
  const code = await runCli(args, {
    columns: undefined,
    line: (text) => out.push(open.splice(0).join('') + text),
    part: (text) => open.push(text),
    note: (text) => err.push(text),
    mark: (text) => err.push(text),
    live: () => undefined,
  });
  return { code, out: out.join('\n'), err: err.join('\n') };
}
