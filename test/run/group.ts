// The processes of one worker: the worker, what it started, and what those started, in whatever process group they put
// themselves, as browsers do. On Linux they are found by a mark in their environment, and by their parents; elsewhere the group
// that the worker leads stands for them, and their processor time is not known.

import { type ChildProcess, spawn } from 'node:child_process';
import * as fs from 'node:fs';

const marker = 'SINTER_TEST_MARK';
const linux = process.platform === 'linux';

/** What /proc/PID/stat tells of a process. */
interface Stat {
  readonly pid: number;
  readonly parent: number;
  /** When it began: a number that tells it from an earlier process of the same `pid`. */
  readonly began: string;
  /** Hundredths of a second of processor time, its own and that of the children that it waited for. */
  readonly ticks: number;
  /** Those of the children alone. */
  readonly waited: number;
}

export function statOf(pid: number): Stat | undefined {
  try {
    const text = fs.readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const [user, system, ofChildren, inSystem] = fields.slice(11, 15).map(Number) as [
      number,
      number,
      number,
      number,
    ];
    const waited = ofChildren + inSystem;
    return { pid, parent: Number(fields[1]), began: fields[19]!, ticks: user + system + waited, waited };
  } catch {
    return undefined; // It has ended.
  }
}

const processes = (): number[] =>
  fs
    .readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0);

/** Whether the processor time of a group is known here. */
export const knowsSeconds: boolean = linux;

/** Processor seconds that this process used, and the programs that it started and that have ended. */
export function ownSeconds(): number {
  const { user, system } = process.cpuUsage();
  return linux ? statOf(process.pid)!.ticks / 100 : (user + system) / 1e6;
}

/** A program and all processes that come from it. */
export class ProcessGroup {
  readonly child: ChildProcess;
  readonly #mark: string;
  /** Whether a process, by its number and beginning, is one of the group. */
  readonly #known = new Map<string, boolean>();
  #used = 0;
  #last = 0;

  /** Starts a program; what it prints is appended to the file `output`. */
  constructor(command: string, args: readonly string[], env: NodeJS.ProcessEnv, output: string) {
    // A group inside a group carries the marks of both.
    const outer = env[marker] === undefined ? '' : `${env[marker]} `;
    this.#mark = `${process.pid}.${Math.random().toString(36).slice(2)}`;
    const file = fs.openSync(output, 'a');
    this.child = spawn(command, args, {
      detached: true,
      env: { ...env, [marker]: `${outer}${this.#mark}` },
      stdio: ['ignore', file, file],
    });
    fs.closeSync(file);
  }

  /**
   * Processor seconds of the group so far; 0 where they are not known. What a process used that its parent did not wait for
   * counts as far as it was seen.
   */
  seconds(): number {
    if (!linux) return 0;
    const now = this.#members().reduce((sum, { ticks }) => sum + ticks, 0) / 100;
    this.#used += Math.max(0, now - this.#last);
    this.#last = now;
    return this.#used;
  }

  /** Ends every process of the group. */
  kill(): void {
    try {
      process.kill(-this.child.pid!, 'SIGKILL');
    } catch {
      this.child.kill('SIGKILL');
    }
    if (!linux) return;
    // A process may start another while the list is made.
    for (let round = 0; round < 5; round += 1) {
      const members = this.#members();
      if (members.length === 0) return;
      for (const { pid } of members) {
        try {
          process.kill(pid, 'SIGKILL');
        } catch {
          // It has ended.
        }
      }
    }
  }

  #members(): Stat[] {
    const all = processes().flatMap((pid) => statOf(pid) ?? []);
    const keyOf = ({ pid, began }: Stat): string => `${pid} ${began}`;
    const byPid = new Map(all.map((stat) => [stat.pid, stat]));
    for (const stat of all) {
      const key = keyOf(stat);
      if (!this.#known.has(key)) this.#known.set(key, environmentOf(stat.pid).includes(this.#mark));
    }
    // Who belongs to the group keeps doing so, also when its parent ends.
    const belongs = (stat: Stat): boolean => {
      const key = keyOf(stat);
      if (this.#known.get(key) === true) return true;
      const parent = byPid.get(stat.parent);
      if (parent === undefined || !belongs(parent)) return false;
      this.#known.set(key, true);
      return true;
    };
    return all.filter(belongs);
  }
}

/** The marks that a process carries. */
function environmentOf(pid: number): string {
  try {
    const variables = fs.readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0');
    return variables.find((each) => each.startsWith(`${marker}=`)) ?? '';
  } catch {
    return ''; // It has ended, or is another user's.
  }
}
