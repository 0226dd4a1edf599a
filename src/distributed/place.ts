// Which rank of how many this process is, and which GPU is its own, by what those who start processes leave in the environment.

import { SinterError } from '../errors.ts';

type Env = Readonly<Record<string, string | undefined>>;

/** Where rank 0 listens for the others. */
export interface StorePlace {
  readonly host: string;
  readonly port: number;
}

/** Who has started this process as one of several. */
export type Starter =
  | {
      /** What to say of it. */
      readonly name: string;
      readonly engine: 'mpi';
      readonly rank: number;
      /** Ranks, where it says how many. */
      readonly size: number | undefined;
    }
  | {
      readonly name: string;
      readonly engine: 'nccl';
      readonly rank: number;
      readonly size: number;
      readonly store: StorePlace;
    };

/** Variables that launchers of MPI set for each process: the rank, and the number of ranks. */
const launchers: readonly (readonly [rank: string, size: string | undefined, name: string])[] = [
  ['OMPI_COMM_WORLD_RANK', 'OMPI_COMM_WORLD_SIZE', 'Open MPI'],
  ['PMI_RANK', 'PMI_SIZE', 'a launcher with PMI'],
  ['PMIX_RANK', undefined, 'a launcher with PMIx'],
];

/** The place of a process on its machine, by launcher: torchrun, Open MPI, MPICH, MVAPICH, Slurm. */
const localRanks = [
  'LOCAL_RANK',
  'OMPI_COMM_WORLD_LOCAL_RANK',
  'MPI_LOCALRANKID',
  'MV2_COMM_WORLD_LOCAL_RANK',
  'SLURM_LOCALID',
] as const;

const usualPort = 29_500;

/**
 * Who has started this process as one of several; undefined where it stands alone. Throws E_UNSUPPORTED where it is one of several
 * that cannot find each other.
 */
export function starterOf(env: Env): Starter | undefined {
  for (const [rank, size, name] of launchers)
    if (isNumber(env[rank])) {
      const count = size === undefined ? undefined : env[size];
      return {
        name,
        engine: 'mpi',
        rank: Number(env[rank]),
        size: isNumber(count) ? Number(count) : undefined,
      };
    }
  if (isNumber(env['RANK']) && isNumber(env['WORLD_SIZE'])) return storedIn(env, 'RANK', 'torchrun');
  if (isNumber(env['SLURM_PROCID']) && Number(env['SLURM_STEP_NUM_TASKS'] ?? '1') > 1)
    throw new SinterError(
      'E_UNSUPPORTED',
      'join: Slurm has started several processes without a PMI, by which MPI would find them\n  try: srun --mpi=pmix (or pmi2)',
    );
  if (isNumber(env['JOB_COMPLETION_INDEX'])) return storedIn(env, 'JOB_COMPLETION_INDEX', 'Kubernetes');
  return undefined;
}

/** A starter whose processes find each other at rank 0. */
function storedIn(env: Env, variable: 'RANK' | 'JOB_COMPLETION_INDEX', name: string): Starter | undefined {
  const [rank, size] = [Number(env[variable]), env['WORLD_SIZE']];
  if (size === '1') return undefined;
  const given = env['SINTER_STORE'] ?? '';
  const address = env['MASTER_ADDR'] ?? '';
  if (!isNumber(size) || (given === '' && address === '')) {
    const missing = isNumber(size) ? 'MASTER_ADDR' : 'WORLD_SIZE';
    const what = `join: ${variable} is set, as ${name} sets it, and ${missing} is not`;
    const hint = 'WORLD_SIZE, the number of processes, and MASTER_ADDR, the name of the machine of rank 0';
    throw new SinterError('E_UNSUPPORTED', `${what}\n  try: set ${hint}`);
  }
  if (rank >= Number(size))
    throw new SinterError('E_VALUE', `join: ${variable} is ${rank}, and WORLD_SIZE is ${size}`);
  return { name, engine: 'nccl', rank, size: Number(size), store: storeOf(given, address, env) };
}

function storeOf(given: string, address: string, env: Env): StorePlace {
  if (given !== '') {
    const [, host, port] = /^\[?(.+?)\]?:(\d+)$/.exec(given) ?? [];
    if (host !== undefined) return { host, port: Number(port) };
    throw new SinterError('E_VALUE', `join: SINTER_STORE is host:port, not '${given}'`);
  }
  const port = Number(env['MASTER_PORT'] ?? usualPort);
  if (!(port > 0 && port < 65_535))
    throw new SinterError('E_VALUE', `join: MASTER_PORT is no port: '${env['MASTER_PORT']}'`);
  // A store of torchrun's own is there already.
  return { host: address, port: env['TORCHELASTIC_USE_AGENT_STORE'] === 'True' ? port + 1 : port };
}

/** Which CUDA device is this rank's: that of its place on the machine, or the only one that it may see. */
export function ownGpu(env: Env): string {
  const visible = env['CUDA_VISIBLE_DEVICES']?.split(',').filter((one) => one.trim() !== '');
  const local = localRanks.map((name) => env[name]).find((value) => isNumber(value)) ?? '0';
  return visible?.length === 1 ? 'cuda:0' : `cuda:${Number(local)}`;
}

function isNumber(text: string | undefined): text is string {
  return text !== undefined && /^\d+$/.test(text);
}
