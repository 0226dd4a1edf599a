// Which rank of how many this process is, by what those who start processes leave in the environment.

import { SinterError } from '../errors.ts';

type Env = Readonly<Record<string, string | undefined>>;

/** Who has started this process as one of several. */
export interface Starter {
  /** What to say of it. */
  readonly name: string;
  readonly engine: 'mpi';
  readonly rank: number;
  /** Ranks, where it says how many. */
  readonly size: number | undefined;
}

/** Variables that launchers of MPI set for each process: the rank, and the number of ranks. */
const launchers: readonly (readonly [rank: string, size: string | undefined, name: string])[] = [
  ['OMPI_COMM_WORLD_RANK', 'OMPI_COMM_WORLD_SIZE', 'Open MPI'],
  ['PMI_RANK', 'PMI_SIZE', 'a launcher with PMI'],
  ['PMIX_RANK', undefined, 'a launcher with PMIx'],
];

/**
 * Who has started this process as one of several; undefined where it stands alone. Throws E_UNSUPPORTED where it is one of several
 * that have nothing to speak by.
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
  if (isNumber(env['RANK']) && isNumber(env['WORLD_SIZE']) && Number(env['WORLD_SIZE']) > 1)
    throw needsNccl('RANK and WORLD_SIZE are set, as torchrun sets them');
  if (isNumber(env['SLURM_PROCID']) && Number(env['SLURM_STEP_NUM_TASKS'] ?? '1') > 1)
    throw new SinterError(
      'E_UNSUPPORTED',
      'join: Slurm has started several processes without a PMI, by which MPI would find them\n  try: srun --mpi=pmix (or pmi2)',
    );
  if (isNumber(env['JOB_COMPLETION_INDEX']))
    throw needsNccl('JOB_COMPLETION_INDEX is set, as Kubernetes sets it for the pods of an indexed job');
  return undefined;
}

function needsNccl(found: string): SinterError {
  return new SinterError(
    'E_UNSUPPORTED',
    `join: ${found}; processes that are started so need NCCL, which Sinter does not use yet\n` +
      '  try: mpirun -n 2 node script.js, or sinter launch -n 2 script.js',
  );
}

function isNumber(text: string | undefined): boolean {
  return text !== undefined && /^\d+$/.test(text);
}
