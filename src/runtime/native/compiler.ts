// Node only: the machine's C compiler. In: C text; out: a shared object, or its errors as typed ones.
// Compilers run in process groups of their own, so that a driver is ended together with what it has
// started.

import { spawn, spawnSync, type SpawnSyncOptionsWithStringEncoding } from 'node:child_process';
import type { Socket } from 'node:net';
import { DeviceError } from '../../errors.ts';
import { compilerCommands, noCompiler, type Environment } from './commands.ts';

/** Warnings of text that is not ours alone would be noise: errors are reported. */
const flags: readonly string[] = [
  '-std=c11',
  '-O3',
  // GCC 12 makes masks of what is 0 or 1 there: a quotient of a number by itself was −1. Vectors are written out anyway.
  '-fno-tree-slp-vectorize',
  '-ffp-contract=off',
  '-fno-math-errno',
  '-fno-trapping-math',
  '-fvisibility=hidden',
  '-fPIC',
  '-w',
];

/** How a machine is named: x86 and older compilers by the first, some ARM compilers by the second. */
const machines: readonly string[] = ['-march=native', '-mcpu=native'];

/** Milliseconds a compiler may take; it is ended then. */
const usualPatience = 120_000;
const probePatience = 20_000;
/** Lines of a compiler's output that an error shows. */
const shownLines = 8;

export interface CCompiler {
  readonly command: readonly string[];
  /** `gcc 12.2.0`, for people. */
  readonly title: string;
  /** All that objects depend on besides their text: command, version, machine and flags. */
  readonly identity: string;
  readonly features: readonly string[];
  readonly flags: readonly string[];
  readonly patience: number;
}

/** Instruction sets by what compilers predefine where the machine has them. */
const sets: readonly (readonly [macro: string, feature: string])[] = [
  ['__SSE4_2__', 'sse4.2'],
  ['__AVX__', 'avx'],
  ['__AVX2__', 'avx2'],
  ['__FMA__', 'fma'],
  ['__F16C__', 'f16c'],
  ['__AVXVNNI__', 'avxvnni'],
  ['__AVX512F__', 'avx512f'],
  ['__AVX512BW__', 'avx512bw'],
  ['__AVX512DQ__', 'avx512dq'],
  ['__AVX512VL__', 'avx512vl'],
  ['__AVX512VNNI__', 'avx512vnni'],
  ['__AVX512BF16__', 'avx512bf16'],
  ['__AVX512FP16__', 'avx512fp16'],
  ['__AMX_TILE__', 'amx-tile'],
  ['__AMX_BF16__', 'amx-bf16'],
  ['__AMX_INT8__', 'amx-int8'],
  ['__ARM_NEON', 'neon'],
  ['__ARM_FEATURE_FMA', 'fma'],
  ['__ARM_FEATURE_DOTPROD', 'dotprod'],
  ['__ARM_FEATURE_FP16_VECTOR_ARITHMETIC', 'fp16'],
  ['__ARM_FEATURE_BF16', 'bf16'],
  ['__ARM_FEATURE_MATMUL_INT8', 'i8mm'],
  ['__ARM_FEATURE_SVE', 'sve'],
  ['__riscv_v', 'rvv'],
];

export interface CompilerOptions {
  /** Where `SINTER_CC` and `PATH` are looked up; the environment of the process by default. */
  readonly env?: Environment | undefined;
  /** Milliseconds that a compiler may take: 120,000 by default. */
  readonly patience?: number | undefined;
}

/**
 * The first compiler that works; with a signal, the search does not keep the process, and ends when it says so.
 * Rejects with E_DEVICE and what was tried.
 */
export async function findCompiler(
  device: string,
  { env = process.env, patience = usualPatience }: CompilerOptions = {},
  signal?: AbortSignal,
): Promise<CCompiler> {
  const tried = new Map<string, string>();
  for (const text of compilerCommands(env)) {
    const found = await probe(text.split(/\s+/), env, signal);
    if (typeof found !== 'string') return { ...found, patience };
    tried.set(text, found);
  }
  throw noCompiler(device, tried);
}

/** What a command says of itself, or why it is no compiler. */
async function probe(
  command: readonly string[],
  env: Environment,
  signal: AbortSignal | undefined,
): Promise<Omit<CCompiler, 'patience'> | string> {
  const ask = (...args: readonly string[]): ReturnType<typeof runCommand> =>
    runCommand([...command, ...args], '', probePatience, env, signal);
  const version = await ask('--version');
  if (version.problem !== undefined) return version.problem;
  const title = titleOf(command, version.stdout);
  for (const machine of machines) {
    const macros = await ask(machine, '-dM', '-E', '-x', 'c', '-');
    if (macros.problem !== undefined) continue;
    const defined = new Map(
      [...macros.stdout.matchAll(/^#define (\w+) ?(.*)$/gm)].map((line) => [line[1]!, line[2]!]),
    );
    const features = sets.flatMap(([macro, feature]) =>
      (defined.get(macro) ?? '0') === '0' ? [] : [feature],
    );
    const all = [machine, ...flags];
    const identity = JSON.stringify([command, version.stdout, macros.stdout, all]);
    return { command, title, identity, features, flags: all };
  }
  return 'it does not know the flags -march=native or -mcpu=native';
}

/** `gcc 12.2.0` or `clang 17.0.6`, from the first line of `--version`. */
function titleOf(command: readonly string[], text: string): string {
  const line = text.split('\n')[0] ?? '';
  const number = /\d+\.\d+(?:\.\d+)?/.exec(line.replace(/\([^)]*\)/g, ''))?.[0];
  const clang = /clang/i.test(line);
  const name = clang ? 'clang' : /gcc|free software foundation/i.test(text) ? 'gcc' : command.join(' ');
  return number === undefined ? name : `${name} ${number}`;
}

/** Compiles C text to an object file, or to a shared one that is linked. Throws E_VALIDATION, E_DEVICE. */
export function compileNow(compiler: CCompiler, device: string, text: string, file: string): void {
  const [name, ...args] = commandFor(compiler, file);
  // Node hands `detached` on, though its types do not list it here.
  const options: SpawnSyncOptionsWithStringEncoding & { readonly detached: true } = {
    input: text,
    encoding: 'utf8',
    timeout: compiler.patience,
    killSignal: 'SIGKILL',
    maxBuffer: 2 ** 26,
    detached: true,
    stdio: ['pipe', 'ignore', 'pipe'],
  };
  const ended = spawnSync(name!, args, options);
  const late = (ended.error as NodeJS.ErrnoException | undefined)?.code === 'ETIMEDOUT';
  if (late) endGroup(ended.pid);
  const problem = problemOf({
    command: compiler.command,
    late,
    patience: compiler.patience,
    error: ended.error,
    status: ended.status,
    signal: ended.signal,
    stderr: ended.stderr ?? '',
  });
  if (problem !== undefined) throw refusal(device, problem);
}

/** The same in a process beside this one; rejects with the same errors. */
export async function compileBeside(
  compiler: CCompiler,
  device: string,
  text: string,
  file: string,
  signal: AbortSignal,
): Promise<void> {
  const command = commandFor(compiler, file);
  const { problem } = await runCommand(command, text, compiler.patience, process.env, signal);
  if (problem !== undefined) throw refusal(device, problem);
}

function refusal(device: string, problem: string): DeviceError {
  return new DeviceError('E_DEVICE', device, `a program was not compiled: ${problem}`);
}

function commandFor({ command, flags: all }: CCompiler, file: string): string[] {
  return [...command, ...all, '-shared', '-pthread', '-o', file, '-x', 'c', '-', '-x', 'none', '-lm', '-ldl'];
}

interface Ended {
  readonly command: readonly string[];
  readonly late: boolean;
  readonly patience: number;
  readonly error?: Error | undefined;
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stderr: string;
}

/** What went wrong, with the first lines that the compiler wrote; undefined where nothing did. */
function problemOf({ command, late, patience, error, status, signal, stderr }: Ended): string | undefined {
  const name = command.join(' ');
  if (late) return `${name} was ended after ${patience / 1000} s`;
  const lines = stderr
    .split('\n')
    .filter((line) => line.trim() !== '')
    .slice(0, shownLines)
    .map((line) => `\n  ${line}`)
    .join('');
  if (error !== undefined) {
    const { code } = error as NodeJS.ErrnoException;
    return code === 'ENOENT' ? 'not found' : `${name} does not run: ${error.message}`;
  }
  if (signal !== null) return `${name} was ended by ${signal}${lines}`;
  return status === 0 ? undefined : `${name} ended with ${status}${lines}`;
}

/**
 * Runs a command to its end; a process that ends first takes it along. With a signal it does not keep the
 * process, and ends when the signal says so.
 */
function runCommand(
  [name, ...args]: readonly string[],
  input: string,
  patience: number,
  env: Environment,
  signal?: AbortSignal,
): Promise<{ readonly stdout: string; readonly problem: string | undefined }> {
  return new Promise((resolve) => {
    let [late, stdout, stderr, settled] = [false, '', '', false];
    const child = spawn(name!, args, { detached: true, stdio: ['pipe', 'pipe', 'pipe'], env });
    const stop = (): void => endGroup(child.pid);
    const timer = setTimeout(() => {
      late = true;
      stop();
      // A process that left the group may hold the pipes open.
      child.stdout.destroy();
      child.stderr.destroy();
    }, patience);
    timer.unref();
    process.once('exit', stop);
    if (signal !== undefined) {
      child.unref();
      for (const pipe of [child.stdin, child.stdout, child.stderr]) (pipe as Socket).unref();
      signal.addEventListener('abort', stop);
      if (signal.aborted) stop();
    }
    const settle = (error: Error | undefined, status: number | null, by: NodeJS.Signals | null): void => {
      if (settled) return;
      settled = true;
      clearTimeout(timer);
      process.off('exit', stop);
      signal?.removeEventListener('abort', stop);
      const ended = { command: [name!], late, patience, error, status, signal: by, stderr };
      resolve({ stdout, problem: problemOf(ended) });
    };
    child.stdout.setEncoding('utf8').on('data', (part: string) => (stdout += part));
    child.stderr.setEncoding('utf8').on('data', (part: string) => (stderr += part));
    // A compiler that ends before it has read everything says so by how it ends.
    child.stdin.on('error', () => undefined);
    child.on('error', (error) => settle(error, null, null));
    child.on('close', (status, by) => settle(undefined, status, by));
    child.stdin.end(input);
  });
}

/** Ends a process and those that it has started. */
function endGroup(pid: number | undefined): void {
  if (pid === undefined || pid <= 0) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}
