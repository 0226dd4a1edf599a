// `npm run distributed -- --ranks 4 --engine threads --parallel tensor --mesh 2,2`: trains the transformer of examples/distributed/ by several ranks
// and by one, and compares the losses. With --json the last line is { losses, reference, worst, bytesByCollective, seconds }.

import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    ranks: { type: 'string', default: '2' },
    engine: { type: 'string', default: 'threads' },
    parallel: { type: 'string', default: 'data' },
    mesh: { type: 'string' },
    steps: { type: 'string', default: '20' },
    layers: { type: 'string' },
    device: { type: 'string' },
    mpirun: { type: 'string' },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

const usage = `usage: npm run distributed -- [options]

Trains a small transformer by several ranks and by one, and compares the losses of each step.

  --ranks N        how many ranks (default 2)
  --engine NAME    threads (default), mpi or nccl
  --parallel NAME  data (default), fsdp, tensor, sequence or pipeline
  --mesh LIST      sizes of the mesh, 2,2 for two axes, of which the first is data; by default all ranks on one axis
  --steps N        steps of the training (default 20)
  --layers N       layers of the transformer (default 2, or one for each stage of a pipeline)
  --device NAME    the device of each rank (default wasm:1, with nccl cuda)
  --mpirun COMMAND what starts processes of MPI (default mpirun)
  --json           print { losses, reference, worst, bytesByCollective, seconds } as the last line`;

/** What a training of so many ranks prints. */
interface Trained {
  readonly losses: readonly number[];
  readonly bytesByCollective: Readonly<Record<string, number>>;
  readonly seconds: number;
}

// The built one: threads of Node 20 read no TypeScript of their own.
const cli = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const script = fileURLToPath(new URL('../../examples/distributed/transformer.ts', import.meta.url));

const stages = values.parallel === 'pipeline' ? Number((values.mesh ?? values.ranks).split(',').at(-1)) : 1;
const layers = Number(values.layers ?? Math.max(2, stages));

function train(ranks: number, engine: string, parallel: string, mesh: string): Trained {
  const device = values.device ?? (engine === 'nccl' ? 'cuda' : 'wasm:1');
  const launch = ['launch', '-n', String(ranks), '--engine', engine, '--show', '0'];
  if (values.mpirun !== undefined) launch.push('--mpirun', values.mpirun);
  const own = ['--parallel', parallel, '--mesh', mesh, '--steps', values.steps];
  own.push('--layers', String(layers), '--device', device, '--json');
  const { stdout, stderr, status } = spawnSync(
    process.execPath,
    ['--import', 'tsx', cli, ...launch, script, ...own],
    {
      encoding: 'utf8',
      maxBuffer: 2 ** 26,
    },
  );
  const line = stdout.split('\n').find((text) => text.includes('"losses"'));
  if (status !== 0 || line === undefined)
    throw new Error(`the ranks ended with ${status}\n${stdout}\n${stderr}`);
  return JSON.parse(line.slice(line.indexOf('{'))) as Trained;
}

if (values.help) console.log(usage);
else {
  const ranks = Number(values.ranks);
  const shared = train(ranks, values.engine, values.parallel, values.mesh ?? String(ranks));
  const alone = train(1, 'threads', 'data', '1');
  const worst = Math.max(
    ...shared.losses.map((loss, i) => Math.abs(loss - alone.losses[i]!) / Math.abs(alone.losses[i]!)),
  );
  const { losses, bytesByCollective, seconds } = shared;
  if (values.json)
    console.log(JSON.stringify({ losses, reference: alone.losses, worst, bytesByCollective, seconds }));
  else {
    losses.forEach((loss, i) =>
      console.log(`step ${i + 1}: ${loss.toFixed(6)}, one rank ${alone.losses[i]!.toFixed(6)}`),
    );
    console.log(`largest relative difference ${worst.toExponential(1)}, ${seconds.toFixed(1)} s`);
    for (const [kind, bytes] of Object.entries(bytesByCollective))
      console.log(`${kind}: ${bytes} bytes sent by a rank`);
  }
}
