// The ranks that run one program together, seen from one of them. `join` finds where this process stands: on a thread of
// `sinter launch`, in a world of MPI, or alone.

import { DeviceError, showValue, SinterError } from '../errors.ts';
import type { CollectiveCall, Communicator } from '../runtime/communicator.ts';
import { device, setDevice } from '../tensor/device.ts';
import { AloneCommunicator } from './engines/alone.ts';
import type { EngineMember } from './member.ts';
import { starterOf } from './place.ts';

/** What moves bytes between ranks. */
export type Engine = 'alone' | 'threads' | 'mpi';

export interface JoinOptions {
  /** The device that computes, as `setDevice` takes it; the current one by default. False: no device, only the world. */
  readonly device?: string | false;
  /** What ranks speak by; by default, what they were started by. */
  readonly engine?: Engine;
}

/** The ranks that run this program. */
export interface World {
  /** Which of them this one is, from 0. */
  readonly rank: number;
  readonly size: number;
  readonly engine: Engine;
  /** The engine with what stands behind it, for reports. */
  readonly description: string;
  /** What the collectives of programs run on. */
  readonly communicator: Communicator;
  /** Returns when all ranks have called it. Throws E_COLLECTIVE where one does not come. */
  barrier(): void;
  /** Says that this rank comes to no further collective. A program that ends well leaves by itself. */
  leave(): void;
}

let joined: Promise<World> | undefined;

/**
 * Joins the ranks that this program was started as: by `sinter launch`, by mpirun or srun, or alone as one rank. Opens the
 * device, which runs the collectives of its programs from then on. Joining again gives the same world. Rejects with
 * E_UNSUPPORTED where the processes have nothing to speak by or the device runs no collectives, and E_DEVICE where a library or
 * the device is missing.
 */
export async function join(options: JoinOptions = {}): Promise<World> {
  const { device: name, engine } = options;
  if (engine !== undefined && !['alone', 'threads', 'mpi'].includes(engine))
    throw new SinterError(
      'E_VALUE',
      `join: there is no engine ${showValue(engine)}: expected 'threads', 'mpi' or 'alone'`,
    );
  if (typeof name === 'string') setDevice(name);
  const attempt = (joined ??= enter(engine));
  attempt.catch(() => {
    if (joined === attempt) joined = undefined;
  });
  const world = await attempt;
  if (engine !== undefined && engine !== world.engine)
    throw new SinterError('E_STATE', `join: this process has joined by ${world.engine}, not ${engine}`);
  if (name !== false) await joinDevice(world);
  return world;
}

async function joinDevice({ communicator, size }: World): Promise<void> {
  const found = await device();
  if (found.join !== undefined) found.join(communicator);
  else if (size > 1)
    throw new DeviceError('E_UNSUPPORTED', found.facts.name, 'it runs no collectives', {
      hint: "join({ device: 'native' }) or 'wasm'",
    });
}

async function enter(engine: Engine | undefined): Promise<World> {
  const member = await memberOf(engine);
  const { communicator } = member;
  const { rank, size, description } = communicator;
  const group = Array.from({ length: size }, (_, other) => other);
  const call: CollectiveCall = { action: { kind: 'allReduce', monoid: 'sum' }, dtype: 'u8', group };
  return {
    rank,
    size,
    engine: member.engine,
    description,
    communicator,
    barrier: () => communicator.run(call, new Uint8Array(1), new Uint8Array(1)),
    leave: () => {
      joined = undefined;
      member.leave();
    },
  };
}

async function memberOf(engine: Engine | undefined): Promise<EngineMember> {
  const alone = (): EngineMember => ({
    engine: 'alone',
    communicator: new AloneCommunicator(),
    leave: () => undefined,
  });
  const { process } = globalThis;
  if (engine === 'alone' || process?.getBuiltinModule === undefined) return alone();
  if (engine !== 'mpi') {
    const { threadMember } = await import('./engines/threads.ts');
    const member = threadMember();
    if (member !== undefined) return member;
    if (engine === 'threads')
      throw new SinterError(
        'E_UNSUPPORTED',
        'join: this is no thread of several ranks\n  try: sinter launch -n 2 --engine threads script.js',
      );
  }
  const starter = engine === 'mpi' ? undefined : starterOf(process.env);
  if (engine === undefined && (starter === undefined || starter.size === 1)) return alone();
  const { mpiMember } = await import('./engines/mpi.ts');
  return mpiMember({ env: process.env });
}
