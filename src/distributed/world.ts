// The ranks that run one program together, seen from one of them. `join` finds where this process stands: on a thread of
// `sinter launch`, in a world of MPI, or alone.

import { DeviceError, showValue, SinterError } from '../errors.ts';
import type { CollectiveCall, Communicator } from '../runtime/communicator.ts';
import { device, expectedDevice, setDevice } from '../tensor/device.ts';
import { restoreRngState, saveRngState } from '../tensor/generator.ts';
import { AloneCommunicator } from './engines/alone.ts';
import type { EngineMember } from './member.ts';
import { ownGpu, starterOf } from './place.ts';
import { CountingCommunicator, type Traffic } from './traffic.ts';

/** What moves bytes between ranks. */
export type Engine = 'alone' | 'threads' | 'mpi' | 'nccl';

export interface JoinOptions {
  /**
   * The device that computes, as `setDevice` takes it; the current one by default, and with NCCL a GPU: that of the rank's place on its
   * machine, which is also meant by `cuda`. False: no device, only the world.
   */
  readonly device?: string | false;
  /** What ranks speak by; by default, what they were started by, and NCCL where the device is CUDA. */
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
  /** Collectives that this rank has run so far, by kind: how many, and the bytes that it sent for them. */
  readonly traffic: Readonly<Record<string, Traffic>>;
  /** Returns when all ranks have called it. Throws E_COLLECTIVE where one does not come. */
  barrier(): void;
  /** Says that this rank comes to no further collective. A program that ends well leaves by itself. */
  leave(): void;
}

interface Joined extends World {
  /** Opens what a device needs. */
  open(): Promise<void>;
}

/** `left`: this process was one of several ranks, and is none any more. */
let joined: Promise<Joined> | 'left' | undefined;

const engines: readonly Engine[] = ['alone', 'threads', 'mpi', 'nccl'];

/**
 * Joins the ranks that this program was started as: by `sinter launch`, mpirun or srun, torchrun or Kubernetes, or alone as one rank. Opens the
 * device, which runs the collectives of its programs from then on. All ranks go on with the random generator of rank 0. Joining again gives the same world. Rejects with
 * E_UNSUPPORTED where the processes have nothing to speak by or the device runs no collectives, and E_DEVICE where a library or
 * the device is missing.
 */
export async function join(options: JoinOptions = {}): Promise<World> {
  const { device: name, engine } = options;
  if (engine !== undefined && !engines.includes(engine))
    throw new SinterError(
      'E_VALUE',
      `join: there is no engine ${showValue(engine)}: expected 'threads', 'mpi', 'nccl' or 'alone'`,
    );
  const wanted = await engineFor(engine, name);
  chooseDevice(wanted, name);
  const isNew = joined === undefined || joined === 'left';
  const attempt = joined === undefined || joined === 'left' ? enter(wanted) : joined;
  joined = attempt;
  attempt.catch(() => {
    if (joined === attempt) joined = undefined;
  });
  const world = await attempt;
  if (engine !== undefined && engine !== world.engine)
    throw new SinterError('E_STATE', `join: this process has joined by ${world.engine}, not ${engine}`);
  if (name !== false) await joinDevice(world);
  if (isNew) agreeOnRandom(world);
  return world;
}

/** The world that this process has joined; where it has joined none, it does, without a device. Rejects with E_STATE where it has left. */
export async function currentWorld(op: string): Promise<World> {
  if (joined === 'left')
    throw new SinterError(
      'E_STATE',
      `${op}: this rank has left the others, without whom it cannot\n  try: world.leave() afterwards`,
    );
  return joined ?? join({ device: false });
}

/** All ranks draw the same random numbers, those of rank 0, so that values that they all make are equal. */
function agreeOnRandom({ communicator, size }: World): void {
  if (size === 1) return;
  const { seed, counter } = saveRngState();
  const words = BigUint64Array.of(BigInt(seed), BigInt(counter));
  const bytes = new Uint8Array(words.buffer);
  const group = Array.from({ length: size }, (_, rank) => rank);
  communicator.run({ action: { kind: 'broadcast', root: 0 }, dtype: 'u64', group }, bytes, bytes);
  restoreRngState({ seed: String(words[0]), counter: String(words[1]) });
}

/** The name of the device that `join` gets, or finds chosen; undefined for the default one. */
function nameOfDevice(given: string | false | undefined): string | undefined {
  if (given !== undefined) return given || undefined;
  const expected = expectedDevice();
  return typeof expected === 'object' ? expected.name : expected;
}

function isCuda(name: string | undefined): boolean {
  return name !== undefined && /^cuda(?::|$)/.test(name);
}

/** What ranks speak by. */
async function engineFor(given: Engine | undefined, device: string | false | undefined): Promise<Engine> {
  const { process } = globalThis;
  if (process?.getBuiltinModule === undefined) return 'alone';
  if (given !== undefined) return given;
  const { threadMember } = await import('./engines/threads.ts');
  if (threadMember() !== undefined) return 'threads';
  const starter = starterOf(process.env);
  if (starter === undefined || starter.size === 1) return 'alone';
  return starter.engine === 'mpi' && isCuda(nameOfDevice(device)) ? 'nccl' : starter.engine;
}

/** Makes the device current that the rank computes on. Throws E_UNSUPPORTED where the engine cannot reach its memory. */
function chooseDevice(engine: Engine, given: string | false | undefined): void {
  if (engine !== 'nccl') {
    if (typeof given === 'string') setDevice(given);
    return;
  }
  if (given === false) return;
  const name = nameOfDevice(given) ?? 'cuda';
  if (!isCuda(name))
    throw new DeviceError('E_UNSUPPORTED', name, 'NCCL, by which these ranks meet, is for the device cuda', {
      hint: "join({ device: 'cuda' }), or mpirun -n 2 node script.js",
    });
  if (given !== undefined || typeof expectedDevice() !== 'object')
    setDevice(name === 'cuda' ? ownGpu(process.env) : name);
}

async function joinDevice({ communicator, size, open }: Joined): Promise<void> {
  await open();
  const found = await device();
  if (found.join !== undefined) found.join(communicator);
  else if (size > 1)
    throw new DeviceError('E_UNSUPPORTED', found.facts.name, 'it runs no collectives', {
      hint: "join({ device: 'native' }) or 'wasm', or 'cuda' with NCCL",
    });
}

async function enter(engine: Engine): Promise<Joined> {
  const member = await memberOf(engine);
  const communicator = new CountingCommunicator(member.communicator);
  const { rank, size } = communicator;
  const group = Array.from({ length: size }, (_, other) => other);
  const call: CollectiveCall = { action: { kind: 'allReduce', monoid: 'sum' }, dtype: 'u8', group };
  return {
    rank,
    size,
    engine: member.engine,
    get description() {
      return communicator.description;
    },
    communicator,
    open: async () => member.open?.(),
    get traffic() {
      return communicator.traffic;
    },
    barrier: () => communicator.run(call, new Uint8Array(1), new Uint8Array(1)),
    leave: () => {
      joined = size > 1 ? 'left' : undefined;
      member.leave();
    },
  };
}

async function memberOf(engine: Engine): Promise<EngineMember> {
  switch (engine) {
    case 'alone':
      return { engine, communicator: new AloneCommunicator(), leave: () => undefined };
    case 'threads': {
      const { threadMember } = await import('./engines/threads.ts');
      const member = threadMember();
      if (member !== undefined) return member;
      throw new SinterError(
        'E_UNSUPPORTED',
        'join: this is no thread of several ranks\n  try: sinter launch -n 2 --engine threads script.js',
      );
    }
    case 'mpi': {
      const { mpiMember } = await import('./engines/mpi.ts');
      return mpiMember({ env: process.env });
    }
    case 'nccl': {
      const { ncclMember } = await import('./engines/nccl-member.ts');
      return ncclMember({ env: process.env });
    }
    default:
      return engine satisfies never;
  }
}
