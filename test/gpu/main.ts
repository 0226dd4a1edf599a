// `npm run test:gpu`: the suite for GPUs as a command. Prints one line of JSON, what was going on before it on the error stream, and fails when
// anything failed. See --help.

import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { runSuite } from './suite.ts';

const help = `usage: npm run test:gpu -- [options]

Runs every operation against PyTorch's figures, and the golden kernels and every schedule of products on matrix units against the
interpreter, and bundles for CUDA against WebAssembly, on a device. Prints a report as JSON:
device, description, passed, refused, failed (name and error of each), seconds. The exit status is 1 when anything failed.

  --device NAME    the device (default: SINTER_DEVICE, or cuda)
  --family NAMES   these families of operations only, comma separated
  --spread N       so many operations, spread over all of them
  --golden NAMES   these golden kernels only, comma separated; none for none
  --products TEXT  these schedules of products only, whose names contain TEXT ('nt warpgroup 128'); none for none
  --programs TEXT  these whole programs only, by a regular expression ('attention'); none for none
  --runtime TEXT   these checks of the runtime only, by a regular expression; none for none
  --bundles NAMES  bundles for these GPUs only, comma separated (sm_90,compute_80); none for none
  --shard I/N      each N-th of what was chosen, from the I-th on (1/N to N/N)
  --out FILE       writes the report there too
  --help           this text

Under compute-sanitizer, with source lines of the generated kernels:
  SINTER_CUDA_OPTIONS=-lineinfo compute-sanitizer --tool memcheck npm run test:gpu -- --family softmax,norm
  SINTER_CUDA_OPTIONS=-lineinfo compute-sanitizer --tool racecheck npm run test:gpu -- --family none
A kernel that faults is named with SINTER_CUDA_SYNC=1.`;

const { values } = parseArgs({
  options: {
    device: { type: 'string' },
    family: { type: 'string' },
    spread: { type: 'string' },
    golden: { type: 'string' },
    products: { type: 'string' },
    programs: { type: 'string' },
    runtime: { type: 'string' },
    bundles: { type: 'string' },
    shard: { type: 'string' },
    out: { type: 'string' },
    help: { type: 'boolean' },
  },
});

/** `a,b` as a list, `none` as none, nothing as all. */
function listOf(names: string | undefined): { readonly list?: readonly string[] } {
  if (names === undefined) return {};
  return { list: names === 'none' ? [] : names.split(',') };
}

function shardOf(text: string): { readonly at: number; readonly of: number } {
  const [, at, of] = (/^(\d+)\/(\d+)$/.exec(text) ?? []).map(Number);
  if (at === undefined || of === undefined || at < 1 || at > of) {
    throw new Error(`--shard ${text}: expected I/N with I from 1 to N, such as 1/8`);
  }
  return { at: at - 1, of };
}

if (values.help === true) console.log(help);
else {
  const families = listOf(values.family).list;
  const golden = listOf(values.golden).list;
  const bundles = listOf(values.bundles).list;
  const name = values.device ?? (process.env['SINTER_DEVICE'] || 'cuda');
  const report = await runSuite(name, {
    ...(families === undefined ? {} : { families }),
    ...(values.spread === undefined ? {} : { spread: Number(values.spread) }),
    ...(golden === undefined ? {} : { golden }),
    ...(bundles === undefined ? {} : { bundles }),
    ...(values.products === undefined ? {} : { products: values.products }),
    ...(values.programs === undefined ? {} : { programs: values.programs }),
    ...(values.runtime === undefined ? {} : { runtime: values.runtime }),
    ...(values.shard === undefined ? {} : { shard: shardOf(values.shard) }),
    say: (line) => console.error(line),
  });
  const text = JSON.stringify(report);
  if (values.out !== undefined) writeFileSync(values.out, `${text}\n`);
  console.log(text);
  process.exitCode = report.failed.length > 0 ? 1 : 0;
}
