// How a rank finds the others of NCCL: at the place that torchrun or Kubernetes names, or by a world of MPI, over which rank 0 says where
// it listens.

import { randomUUID } from 'node:crypto';
import { hostname, networkInterfaces } from 'node:os';
import { SinterError } from '../../errors.ts';
import type { Communicator } from '../../runtime/communicator.ts';
import { timeoutFrom } from '../call.ts';
import type { EngineMember } from '../member.ts';
import { starterOf } from '../place.ts';
import { Board } from './board.ts';
import type { BoardSeat } from './board-thread.ts';
import { NcclCommunicator } from './nccl.ts';
import type { NcclOptions } from './nccl-library.ts';

/** Joins the ranks that have a GPU each. Rejects with E_UNSUPPORTED where this process was started alone. */
export async function ncclMember(options: NcclOptions = {}): Promise<EngineMember> {
  const { env = process.env } = options;
  const starter = starterOf(env);
  const timeout = timeoutFrom(env);
  if (starter?.engine === 'mpi') return throughMpi(options, timeout);
  if (starter === undefined)
    throw new SinterError(
      'E_UNSUPPORTED',
      'join: this process was not started as one of several\n  try: sinter launch -n 2 --engine nccl script.js, torchrun, or mpirun',
    );
  const { rank, size, store } = starter;
  const board = await Board.open({ rank, size, hosts: [store.host], port: store.port, key: '', timeout });
  return memberOf(new NcclCommunicator(board, rank, size), options);
}

function memberOf(communicator: NcclCommunicator, options: NcclOptions): EngineMember {
  // Node prints an error that nobody catches when it has called what listens to `exit`: others may end this process before that.
  process.once('uncaughtExceptionMonitor', (error) => {
    process.stderr.write(`${error.stack ?? error.message}\n`);
    communicator.fail(error);
  });
  process.once('exit', (code) => communicator.leave(code));
  return {
    engine: 'nccl',
    communicator,
    open: () => communicator.open(options),
    leave: () => communicator.leave(),
  };
}

/** Where rank 0 listens, as it says it over MPI. */
interface Told {
  readonly hosts: readonly string[];
  readonly port: number;
  readonly key: string;
}

const toldBytes = 4096;

async function throughMpi(options: NcclOptions, timeout: number): Promise<EngineMember> {
  const { mpiMember } = await import('./mpi.ts');
  const mpi = await mpiMember(options);
  const { rank, size } = mpi.communicator;
  const open = (seat: Told): Promise<Board> =>
    Board.open({ ...seat, rank, size, timeout } satisfies BoardSeat);
  let board: Board;
  if (rank === 0) {
    const key = randomUUID();
    board = await open({ hosts: [], port: 0, key });
    told(mpi.communicator, { hosts: ownHosts(), port: board.port, key });
  } else board = await open(told(mpi.communicator, undefined));
  const communicator = new NcclCommunicator(board, rank, size);
  return {
    ...memberOf(communicator, options),
    leave: () => {
      communicator.leave();
      mpi.leave();
    },
  };
}

/** What rank 0 says. */
function told(communicator: Communicator, own: Told | undefined): Told {
  const bytes = new Uint8Array(toldBytes).fill(0x20);
  const text = new TextEncoder().encode(JSON.stringify(own ?? {}));
  if (text.length > toldBytes) throw new SinterError('E_UNSUPPORTED', 'join: rank 0 has too many addresses');
  bytes.set(text);
  const group = Array.from({ length: communicator.size }, (_, rank) => rank);
  communicator.run({ action: { kind: 'broadcast', root: 0 }, dtype: 'u8', group }, bytes, bytes);
  return JSON.parse(new TextDecoder().decode(bytes)) as Told;
}

/** The names and addresses of this machine: others try one after the other. */
function ownHosts(): readonly string[] {
  const addresses = Object.values(networkInterfaces()).flatMap((list) =>
    (list ?? []).filter(({ address }) => !address.startsWith('fe80')),
  );
  const outer = addresses.filter(({ internal }) => !internal).map(({ address }) => address);
  return [hostname(), ...outer.slice(0, 16), '127.0.0.1'];
}
