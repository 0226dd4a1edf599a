// All that a GPU machine is asked, in one command for the minutes that one has it: the suite in parts side by side (compiling keeps
// processors busy, not the GPU), checks of the runtime and times alone, and PyTorch's times beside ours. See --help.

import { spawn, spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { SuiteReport } from './suite.ts';

const help = `usage: ./run.sh all --out DIR [options]

Runs the suite in parts side by side, then what needs the GPU alone, and writes every report (JSON) and what was said (log) into DIR:
part-1 and so on, webgpu (a spread of operations), runtime, sanitizer (some programs under compute-sanitizer, where it is), bench, torch,
bench-webgpu. Prints a line of each, and a table of times. The exit status is 1 when anything failed or did not end in time.

  --out DIR         the folder, which is made
  --device NAME     the device (default: cuda)
  --parts N         processes side by side (default: one less than there are processors, at most 14)
  --seconds N       how long the parts may take (default 240); each of the rest may take half as long
  --only NAMES      these stages only, comma separated: parts, webgpu, runtime, sanitizer, bench, torch, bench-webgpu
  --small           a few of everything in small sizes, to try the command itself on the stand-in
  --help            this text`;

const root = fileURLToPath(new URL('../../', import.meta.url));
const isSource = import.meta.url.endsWith('.ts');

interface Stage {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly seconds: number;
  readonly env?: Readonly<Record<string, string>>;
}

interface Timed {
  readonly name: string;
  readonly way?: string;
  readonly ms: number;
  readonly ok?: boolean;
  readonly GBs?: number;
  readonly ofCopy?: number;
  readonly TFLOPs?: number;
}

const { values } = parseArgs({
  options: {
    out: { type: 'string' },
    device: { type: 'string' },
    parts: { type: 'string' },
    seconds: { type: 'string' },
    only: { type: 'string' },
    small: { type: 'boolean' },
    help: { type: 'boolean' },
  },
});
if (values.help === true || values.out === undefined) {
  console.log(help);
  if (values.help !== true) process.exitCode = 2;
} else {
  await runAll(path.resolve(values.out));
}

async function runAll(folder: string): Promise<void> {
  fs.mkdirSync(folder, { recursive: true });
  const device = values.device ?? 'cuda';
  const small = values.small === true;
  const only = values.only?.split(',');
  const limit = Number(values.seconds ?? 240);
  const parts = Number(values.parts ?? Math.max(1, Math.min(14, os.cpus().length - 1)));
  const isWanted = (name: string): boolean => only === undefined || only.includes(name);
  const suite = (name: string, seconds: number, ...args: readonly string[]): Stage =>
    ours(name, 'test/gpu/main', seconds, args);
  const few = small
    ? [
        '--family',
        'softmax,norm',
        '--golden',
        'softmax-cuda',
        '--products',
        'none',
        '--programs',
        'sum of all',
        '--bundles',
        'none',
      ]
    : [];
  const none = ['--golden', 'none', '--products', 'none', '--programs', 'none', '--bundles', 'none'];
  const together: Stage[] = [];
  if (isWanted('parts')) {
    for (let i = 1; i <= parts; i++) {
      const shard = ['--shard', `${i}/${parts}`, '--runtime', 'none'];
      together.push(suite(`part-${i}`, limit, '--device', device, ...few, ...shard));
    }
  }
  if (isWanted('webgpu')) {
    const spread = ['--device', 'webgpu', '--spread', '400', '--runtime', 'none', ...none];
    together.push(suite('webgpu', limit, ...spread));
  }
  const results = await Promise.all(together.map((stage) => start(stage, folder)));
  let isGood = results.every(Boolean);
  const alone: readonly Stage[] = [
    suite(
      'runtime',
      limit / 2,
      '--device',
      device,
      '--family',
      'none',
      ...none,
      ...(small ? ['--runtime', 'elements'] : []),
    ),
    ours('bench', 'bench/gpu', limit / 2, [
      '--device',
      device,
      ...(small ? ['--small', '--rounds', '1'] : []),
    ]),
    {
      name: 'torch',
      command: 'python3',
      args: [path.join(root, 'bench/gpu-torch.py'), '--rounds', '3'],
      seconds: limit / 2,
    },
    ours('bench-webgpu', 'bench/gpu', limit / 2, [
      '--device',
      'webgpu',
      ...(small ? ['--small', '--rounds', '1'] : []),
    ]),
  ];
  for (const stage of alone.filter(({ name }) => isWanted(name))) {
    if (!(await start(stage, folder))) isGood = false;
  }
  const sanitizer = isWanted('sanitizer') ? sanitized(device, limit / 2, few) : undefined;
  if (sanitizer !== undefined && !(await start(sanitizer, folder))) isGood = false;
  printTimes(folder);
  process.exitCode = isGood ? 0 : 1;
}

/** Programs of every kind of product under compute-sanitizer; nothing, and it says so, where that is not installed. */
function sanitized(device: string, seconds: number, few: readonly string[]): Stage | undefined {
  const tool = ['compute-sanitizer', '/usr/local/cuda/bin/compute-sanitizer'].find(
    (file) => spawnSync(file, ['--version'], { stdio: 'ignore' }).status === 0,
  );
  if (tool === undefined) {
    console.log('sanitizer: compute-sanitizer is not installed here');
    return undefined;
  }
  const programs =
    '1000 x 1032|^batched|heads that were|a slice|16/4|96 features|convolution of bf16, 16|loss of 5003|1000 keys';
  const chosen =
    few.length > 0
      ? few
      : ['--family', 'softmax', '--golden', 'none', '--products', 'none', '--bundles', 'none'];
  const own = [...chosen, ...(few.length > 0 ? [] : ['--programs', programs]), '--runtime', 'none'];
  const { command, args } = ours('sanitizer', 'test/gpu/main', seconds, ['--device', device, ...own]);
  const options = ['--tool', 'memcheck', '--error-exitcode', '9', command];
  const env = { SINTER_CUDA_OPTIONS: '-lineinfo' };
  return { name: 'sanitizer', command: tool, args: [...options, ...args], seconds, env };
}

/** One of our commands, in sources or packed. */
function ours(name: string, file: string, seconds: number, args: readonly string[]): Stage {
  const command = path.join(root, `${file}.${isSource ? 'ts' : 'js'}`);
  return {
    name,
    command: process.execPath,
    args: [...(isSource ? ['--import', 'tsx'] : []), command, ...args],
    seconds,
  };
}

/** Runs a stage to its end or its limit, keeps what it prints, and says how it went. */
function start({ name, command, args, seconds, env }: Stage, folder: string): Promise<boolean> {
  const since = performance.now();
  const file = path.join(folder, `${name}.json`);
  const log = path.join(folder, `${name}.log`);
  const [out, err] = [fs.openSync(file, 'w'), fs.openSync(log, 'w')];
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd: root,
      env: { ...process.env, ...env },
      stdio: ['ignore', out, err],
    });
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      child.kill('SIGKILL');
    }, 1000 * seconds);
    let startError = '';
    child.on('error', (error) => (startError = error.message));
    child.on('close', (status, signal) => {
      clearTimeout(timer);
      fs.closeSync(out);
      fs.closeSync(err);
      const took = `${Math.round((performance.now() - since) / 1000)} s`;
      const how = isLate ? `not done in time` : startError || (signal ?? `status ${status}`);
      console.log(`${name}: ${took}, ${how}${wentHow(file, log)}`);
      resolve(!isLate && status === 0);
    });
  });
}

/** What a report or, without one, the log says. */
function wentHow(file: string, log: string): string {
  const lines = fs.readFileSync(log, 'utf8').trim().split('\n');
  const failed = lines.filter((line) => line.startsWith('FAILED')).map((line) => `\n  ${line.slice(0, 300)}`);
  const report = reportIn(file);
  if (report === undefined) return `; ${(lines.at(-1) ?? '').slice(0, 300)}${failed.join('')}`;
  const { passed, refused } = report as Partial<SuiteReport>;
  const counts = passed === undefined ? '' : `: ${passed} passed, ${refused} refused`;
  return `${counts}${failed.join('')}`;
}

function reportIn(file: string): object | undefined {
  try {
    return JSON.parse(fs.readFileSync(file, 'utf8')) as object;
  } catch {
    return undefined;
  }
}

/** Ours beside PyTorch's better way. */
function printTimes(folder: string): void {
  const linesOf = (name: string): readonly Timed[] =>
    (reportIn(path.join(folder, `${name}.json`)) as { workloads?: Timed[] } | undefined)?.workloads ?? [];
  const [cuda, webgpu, torch] = [linesOf('bench'), linesOf('bench-webgpu'), linesOf('torch')];
  const ms = (line: Timed | undefined): string => (line === undefined ? '-' : line.ms.toPrecision(4));
  for (const line of cuda) {
    const peer = torch.filter(({ name }) => name === line.name).sort((a, b) => a.ms - b.ms)[0];
    const other = webgpu.find(({ name }) => name === line.name);
    const reached =
      line.TFLOPs === undefined ? `${line.GBs} GB/s, ${line.ofCopy} of a copy` : `${line.TFLOPs} TFLOP/s`;
    const ratio = peer === undefined ? '' : `, ${(peer.ms / line.ms).toFixed(2)}x of it`;
    const wrong = line.ok === false ? ', WRONG' : '';
    console.log(
      `${line.name}: ${ms(line)} ms, ${reached}${wrong}; PyTorch ${ms(peer)} ms${ratio}; WebGPU ${ms(other)} ms`,
    );
  }
}
