// The MPIs of this machine: what starts processes, and the library that goes with it.

import { spawnSync } from 'node:child_process';

export interface InstalledMpi {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly library: string;
}

const known: readonly InstalledMpi[] = [
  {
    name: 'Open MPI',
    command: 'mpirun.openmpi',
    args: ['--allow-run-as-root', '--oversubscribe'],
    library: 'libmpi.so.40',
  },
  { name: 'MPICH', command: 'mpiexec.hydra', args: [], library: 'libmpich.so.12' },
];

/** An MPI, or why it is not tested here. */
export const mpis: readonly (InstalledMpi & { readonly absent: string | undefined })[] = known.map((mpi) => {
  const { error } = spawnSync(mpi.command, ['--version'], { stdio: 'ignore' });
  return { ...mpi, absent: error === undefined ? undefined : `there is no ${mpi.command}: ${error.message}` };
});
