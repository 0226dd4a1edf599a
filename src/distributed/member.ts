// What an engine gives a rank that joins.

import type { Communicator } from '../runtime/communicator.ts';

export interface EngineMember {
  readonly engine: 'alone' | 'threads' | 'mpi' | 'nccl';
  readonly communicator: Communicator;
  /** Opens what a device needs to join it. */
  open?(): Promise<void>;
  /** Says that this rank comes to no further collective, and gives back what the engine holds. */
  leave(): void;
}
