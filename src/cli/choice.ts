// Choosing a workload by name.

import { workloads } from '../workloads/all.ts';
import type { Workload } from '../workloads/workload.ts';
import { UsageError } from './command.ts';

/** The workload of this name. Throws UsageError listing what there is. */
export function chosenWorkload(name: string | undefined): Workload {
  const found = workloads.find((workload) => workload.name === name);
  if (found !== undefined) return found;
  const width = Math.max(...workloads.map((workload) => workload.name.length));
  const problem = name === undefined ? '--workload NAME is missing' : `there is no workload '${name}'`;
  const known = workloads.map((workload) => `  ${workload.name.padEnd(width)}  ${workload.about}`);
  throw new UsageError([`${problem}: expected one of`, ...known].join('\n'));
}
