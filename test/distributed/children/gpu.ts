// One rank of a test, as a process with a CUDA device, that of the stand-in: plays the scenario that it is given, between memories of
// devices, and writes its outcome to a file of its own in a folder. It ends when all others have written theirs.

import { existsSync, renameSync, writeFileSync } from 'node:fs';
import * as path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ncclMember } from '../../../src/distributed/engines/nccl-member.ts';
import { NcclCommunicator } from '../../../src/distributed/engines/nccl.ts';
import { ownGpu } from '../../../src/distributed/place.ts';
import type { CollectiveCall, Communicator, StreamCollectives } from '../../../src/runtime/communicator.ts';
import { CudaContext } from '../../../src/runtime/cuda/api/context.ts';
import { openDriver } from '../../../src/runtime/cuda/api/driver.ts';
import { findGpu } from '../../../src/runtime/cuda/api/gpu.ts';
import { openCuda } from '../../../src/runtime/cuda/open.ts';
import { Failures } from '../../../src/runtime/failures.ts';
import { combinesOnStream } from '../../../src/runtime/program.ts';
import { runPrograms } from './gpu-programs.ts';
import { play, type Rank } from './scenarios.ts';

const [scenario, seed, folder] = process.argv.slice(2) as [string, string, string];
const ordinal = Number(ownGpu(process.env).split(':')[1]);
const fileOf = (one: number | string): string => path.join(folder, `${one}.json`);

/** What became of this rank, where the others and the test find it. */
function tell(own: number | string, outcome: object): void {
  writeFileSync(`${fileOf(own)}.part`, JSON.stringify(outcome));
  renameSync(`${fileOf(own)}.part`, fileOf(own));
}

const outcomeOfError = ({ code, name, message }: Error & { readonly code?: string }): object => ({
  code: code ?? name,
  message,
});

const { communicator, open, leave } = await ncclMember().catch((error: Error) => {
  // The others may have failed before this rank came.
  tell(process.env['RANK']!, outcomeOfError(error));
  return process.exit(0);
});
await open!();
const { rank, size } = communicator;

/** The same from memory of a GPU to memory of a GPU. */
class BetweenGpus implements Communicator {
  readonly rank = rank;
  readonly size = size;
  readonly #context: CudaContext;

  constructor(context: CudaContext) {
    this.#context = context;
  }

  get description(): string {
    return communicator.description;
  }

  run(call: CollectiveCall, from: Uint8Array, to: Uint8Array): void {
    const collectives = communicator.onStream!;
    const isShared = from === to && (call.action.kind === 'allReduce' || call.action.kind === 'broadcast');
    const source = this.#put(from);
    const target = isShared ? source : this.#put(to);
    const at = (address: number, { length }: Uint8Array) => ({ address, bytes: length });
    // What is not taken is the device's to clear.
    const isTaken =
      call.action.kind !== 'permute' ||
      call.action.pairs.some(([, taker]) => taker === call.group.indexOf(rank));
    collectives.queue(call, at(source, from), at(target, to), this.#context);
    this.#settle(collectives);
    if (isTaken) this.#get(target, to);
    else to.fill(0);
    const { cu } = this.#context.driver;
    for (const address of new Set([source, target])) cu.cuMemFree_v2(address);
  }

  #put(bytes: Uint8Array): number {
    const { driver, stream } = this.#context;
    const { cu, cell } = driver;
    this.#context.use();
    this.#context.check(
      cu.cuMemAlloc_v2(cell.address, Math.max(16, bytes.length)),
      'cuMemAlloc_v2',
      'testing',
    );
    const address = cell.number();
    const block = driver.block(Math.max(8, bytes.length));
    new Uint8Array(block.memory).set(bytes);
    cu.cuMemcpyHtoDAsync_v2(address, block.address, bytes.length, stream);
    return address;
  }

  #get(address: number, to: Uint8Array): void {
    const { driver, stream } = this.#context;
    const block = driver.block(Math.max(8, to.length));
    driver.cu.cuMemcpyDtoHAsync_v2(block.address, address, to.length, stream);
    this.#settle(communicator.onStream!);
    to.set(new Uint8Array(block.memory, 0, to.length));
  }

  #settle(collectives: StreamCollectives): void {
    const since = performance.now();
    while (!this.#context.isIdle() || !collectives.look()) this.#context.lookAfter(collectives, since);
  }
}

const driver = await openDriver(`cuda:${ordinal}`);
const gpu = findGpu(driver, ordinal);
const between = new BetweenGpus(new CudaContext(gpu, new Failures(gpu.name)));

async function others(): Promise<void> {
  const all = Array.from({ length: size }, (_, other) => other).filter(
    (other) => other !== rank && !(other === 2 && /leaves|exits|dies/.test(scenario)),
  );
  while (!all.every((other) => existsSync(fileOf(other)))) await sleep(5);
}

/** What NCCL does not do as it has to be is an error before anything runs, and others go on. */
function refuses(): readonly unknown[] {
  const group = Array.from({ length: size }, (_, other) => other);
  const codeOf = (call: CollectiveCall): unknown => {
    try {
      between.run(call, new Uint8Array(8), new Uint8Array(8));
      return 'done';
    } catch (error) {
      return (error as { readonly code: unknown }).code;
    }
  };
  const sum = { kind: 'allReduce', monoid: 'sum' } as const;
  return [
    codeOf({ action: sum, dtype: 'f16', group }),
    codeOf({ action: { ...sum, monoid: 'max' }, dtype: 'f32', group }),
    codeOf({ action: sum, dtype: 'f32', group }),
  ];
}

async function outcomeOf(): Promise<unknown> {
  if (scenario.startsWith('programs'))
    return runPrograms(await openCuda(ordinal), communicator, scenario, Number(seed));
  if (scenario === 'refuses') return refuses();
  const own: Rank = scenario.startsWith('host ')
    ? { communicator, leave, others }
    : { communicator: between, leave, others, combines: combinesOnStream };
  return play(scenario.replace('host ', ''), Number(seed), own);
}

const outcome = await outcomeOf().then(
  (value) => ({ value }),
  (error: Error & { readonly code?: string }) => {
    (communicator as NcclCommunicator).fail(error);
    return outcomeOfError(error);
  },
);
tell(rank, { ...outcome, description: communicator.description });
await others();
