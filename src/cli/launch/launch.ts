// `sinter launch`: a script on several ranks at once: threads of one process, processes of MPI, or processes with a GPU each.

import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startThreads } from '../../distributed/engines/threads-start.ts';
import { SinterError } from '../../errors.ts';
import {
  text,
  texts,
  UsageError,
  wholeNumber,
  type Command,
  type OptionValues,
  type Output,
} from '../command.ts';
import { freePort } from './port.ts';
import { taskKey, type RankTask } from './task.ts';

/** What ranks speak by. */
export type LaunchEngine = (typeof engines)[number];

const engines = ['threads', 'mpi', 'nccl'] as const;

/** What `--json` prints, on the last line. */
export interface LaunchResult {
  readonly ranks: number;
  readonly engine: LaunchEngine;
  readonly seconds: number;
  /** How often all ranks were started again. */
  readonly restarts: number;
  readonly exit: 0 | 1;
}

/** Milliseconds that ranks have to end by themselves when one has failed. */
const grace = 2000;

export const launchCommand: Command = {
  name: 'launch',
  about: 'run a script on several ranks',
  details:
    'Starts SCRIPT as several ranks, which find each other by `join()` of sinter/distributed. SCRIPT may be TypeScript, if Node or\n' +
    'tsx can read it. Each line that a rank writes stands behind its rank: `[1] …`. What follows SCRIPT goes to the script.\n\n' +
    'Ranks are threads of this process, processes that mpirun starts, also on other machines, or processes of this machine with a\n' +
    'GPU each (nccl). The error of one rank ends all, and exits with 1. With --restarts, all start again: a script that saves checkpoints goes on where it was.',
  operand: { name: 'script', value: 'SCRIPT', about: 'the module that each rank runs' },
  rest: { name: 'args', value: 'ARGS', about: 'what the script finds in process.argv' },
  options: {
    ranks: { type: 'string', value: 'N', short: 'n', about: 'how many ranks (default 2)' },
    engine: { type: 'string', value: 'NAME', about: 'threads (the default), mpi or nccl' },
    show: { type: 'string', value: 'LIST', about: 'show the output of these ranks only: 0 or 0,3' },
    restarts: {
      type: 'string',
      value: 'N',
      about: 'start all again so many times when a rank has failed (default 0)',
    },
    mpirun: {
      type: 'string',
      value: 'COMMAND',
      about: "what starts processes of MPI, with its own options (default mpirun): 'mpirun --hosts a,b'",
    },
  },
  examples: [
    'sinter launch -n 4 train.ts --epochs 3',
    'sinter launch -n 2 --engine mpi --show 0 train.js',
    "sinter launch -n 8 --engine mpi --mpirun 'mpirun --oversubscribe' train.js",
  ],
  run: launch,
};

/** Why ranks have ended before they were done; undefined where all is well. */
type Failure = { readonly why: string; readonly isFinal: boolean } | undefined;

function failed(why: string, isFinal = false): Failure {
  return { why, isFinal };
}

async function launch(values: OptionValues, output: Output): Promise<void> {
  const script = text(values, 'script');
  if (script === undefined) throw new UsageError('launch: which script? sinter launch -n 2 SCRIPT');
  if (!existsSync(script)) throw new UsageError(`there is no file ${script}`);
  const ranks = wholeNumber(values, 'ranks', 2, 1);
  const most = wholeNumber(values, 'restarts', 0, 0);
  const engine = text(values, 'engine') ?? 'threads';
  if (!isEngine(engine)) throw new UsageError(`--engine: expects threads, mpi or nccl, got '${engine}'`);
  const task: RankTask = {
    script: resolve(script),
    args: texts(values, 'args'),
    shown: shownRanks(values, ranks),
  };
  const [command = 'mpirun', ...options] = (text(values, 'mpirun') ?? 'mpirun').trim().split(/\s+/);
  const start = performance.now();
  let failure: Failure;
  let restarts = 0;
  for (;;) {
    failure = await {
      threads: () => onThreads(ranks, task),
      mpi: () => onMpi(command, options, ranks, task),
      nccl: () => onProcesses(ranks, task),
    }[engine]();
    if (failure === undefined || failure.isFinal || restarts === most) break;
    restarts += 1;
    output.note(`${failure.why}; all ranks start again (${restarts} of ${most})`);
  }
  const seconds = Math.round(performance.now() - start) / 1000;
  const result: LaunchResult = { ranks, engine, seconds, restarts, exit: failure === undefined ? 0 : 1 };
  if (values['json'] === true) output.line(JSON.stringify(result));
  if (failure !== undefined) throw new SinterError('E_WORKER', `launch: ${failure.why}`);
}

function isEngine(name: string): name is LaunchEngine {
  return (engines as readonly string[]).includes(name);
}

function shownRanks(values: OptionValues, ranks: number): readonly number[] | undefined {
  const given = text(values, 'show');
  if (given === undefined) return undefined;
  const shown = given.split(',').map((part) => (/^\d+$/.test(part.trim()) ? Number(part) : NaN));
  if (shown.every((rank) => rank < ranks)) return shown;
  throw new UsageError(`--show: expects ranks of 0 to ${ranks - 1}, got '${given}'`);
}

/** The module that each rank runs: a source where this one is. */
const rankModule = new URL(`./rank${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url);

async function onThreads(ranks: number, task: RankTask): Promise<Failure> {
  const { workers, ended } = startThreads(ranks, rankModule, () => ({ workerData: { [taskKey]: task } }));
  let end: NodeJS.Timeout | undefined;
  for (const worker of workers)
    worker.once('exit', (code) => {
      // The others hear of it, and have an error of their own; a rank that computes without end does not.
      if (code !== 0) end ??= setTimeout(() => workers.forEach((other) => void other.terminate()), grace);
    });
  const ends = await ended;
  clearTimeout(end);
  const first = ends.find(({ code }) => code !== 0);
  if (first === undefined) return undefined;
  const { rank, code, error } = first;
  if (error === undefined) return failed(`rank ${rank} has ended with exit code ${code}`);
  return failed(`rank ${rank} has failed: ${error instanceof Error ? error.message : String(error)}`);
}

async function onMpi(
  command: string,
  options: readonly string[],
  ranks: number,
  task: RankTask,
): Promise<Failure> {
  const child = spawn(command, [...options, '-n', String(ranks), ...programOf(task)], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  return stoppable([child], (isStopped) => endOfMpi(child, command, isStopped));
}

function endOfMpi(child: ChildProcess, command: string, isStopped: () => boolean): Promise<Failure> {
  return new Promise((done, fail) => {
    child.once('error', (cause) =>
      fail(
        new SinterError(
          'E_UNSUPPORTED',
          `launch: ${command} cannot be started: ${cause.message}\n  try: install Open MPI or MPICH, or --engine threads`,
          { cause },
        ),
      ),
    );
    child.once('close', (code, signal) =>
      done(
        code === 0
          ? undefined
          : failed(
              `a rank has failed: ${command} has ended with ${signal ?? `exit code ${code}`}`,
              isStopped(),
            ),
      ),
    );
  });
}

/** A command line of one rank. */
function programOf(task: RankTask): readonly [string, ...string[]] {
  const loader = rankModule.pathname.endsWith('.ts') ? ['--import', 'tsx'] : [];
  return [process.execPath, ...loader, fileURLToPath(rankModule), JSON.stringify(task)];
}

/** Processes of this machine, which find each other as those of torchrun do. */
async function onProcesses(ranks: number, task: RankTask): Promise<Failure> {
  const [node, ...args] = programOf(task);
  const world = {
    WORLD_SIZE: String(ranks),
    MASTER_ADDR: '127.0.0.1',
    MASTER_PORT: String(await freePort()),
  };
  const children = Array.from({ length: ranks }, (_, rank) => {
    const own = { RANK: String(rank), LOCAL_RANK: String(rank) };
    return spawn(node, args, {
      env: { ...process.env, ...world, ...own },
      stdio: ['ignore', 'inherit', 'inherit'],
    });
  });
  return stoppable(children, async (isStopped) => {
    let end: NodeJS.Timeout | undefined;
    let first: string | undefined;
    const ends = children.map(
      (child, rank) =>
        new Promise<void>((done) => {
          const over = (how: string): void => {
            first ??= `rank ${rank} ${how}`;
            // The others hear of it, and have an error of their own; a rank that computes without end does not.
            end ??= setTimeout(() => children.forEach((other) => other.kill('SIGKILL')), grace);
            done();
          };
          child.once('error', ({ message }) => over(`cannot be started: ${message}`));
          child.once('close', (code, signal) =>
            code === 0 ? done() : over(`has ended with ${signal ?? `exit code ${code}`}`),
          );
        }),
    );
    await Promise.all(ends);
    clearTimeout(end);
    return first === undefined ? undefined : failed(first, isStopped());
  });
}

/** Waits for processes, which end where this one is told to. */
async function stoppable(
  children: readonly ChildProcess[],
  wait: (isStopped: () => boolean) => Promise<Failure>,
): Promise<Failure> {
  let isStopped = false;
  const stop = (signal: NodeJS.Signals): void => {
    isStopped = true;
    for (const child of children) child.kill(signal);
  };
  const signals = ['SIGINT', 'SIGTERM'] as const;
  for (const signal of signals) process.on(signal, stop);
  try {
    return await wait(() => isStopped);
  } finally {
    for (const signal of signals) process.off(signal, stop);
  }
}
