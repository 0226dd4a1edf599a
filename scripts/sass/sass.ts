// `npm run sass`: what generated kernels could reach, counted without a GPU. model.ts says how it is modelled.

import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { table } from '../../src/table.ts';
import {
  codeFile,
  codeRows,
  countedTargets,
  loopFile,
  loopRows,
  type CodeFigures,
  type CodeRow,
  type CountedTarget,
  type LoopRow,
  type Rows,
} from './figures.ts';
import { machines, type Arch } from './machines.ts';
import { compiledPrograms, counted } from './programs.ts';
import { findTools, type Tools } from './tools.ts';

const usage = `usage: npm run sass -- [options]

Compiles the kernels of the counted programs, disassembles them, and prints what they could reach on a GPU by a model
(scripts/sass/model.ts). Nothing is timed and no GPU is needed, but nvcc and nvdisasm are: in PATH, in the bin of
CUDA_HOME, or nvdisasm where SINTER_NVDISASM says. With --target wgsl, or --loops, no tool is needed.

  --workload NAMES  counts these only, separated by commas
  --arch ARCHS      ${Object.keys(machines).join(' or ')}, or both, separated by a comma (the default)
  --target wgsl     counts the Loops of kernels in WGSL
  --loops           counts the Loops of kernels in CUDA C instead of machine code
  --json            prints all figures as JSON
  --write           writes the committed figures anew: test/golden/loop-counts.json, and machine-code.json
  --help            this text`;

const percent = (share: number): string => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;

const mixText = (row: CodeRow): string =>
  Object.entries(row.hottest.mix)
    .toSorted((a, b) => b[1] - a[1])
    .map(([pipe, count]) => `${count} ${pipe}`)
    .join(' ');

function codeTable(rows: Rows<CodeRow>): string {
  const head = [
    'workload',
    'kernel',
    'times',
    'registers',
    'spills',
    'shared',
    'threads',
    'grid',
    'held',
    'warps',
    'waves',
    'in flight',
    'divisions',
    'instructions',
    'tensor',
    'issue µs',
    'memory µs',
    'share',
    'bound',
    'hottest loop',
  ];
  const lines = Object.entries(rows).flatMap(([workload, list]) =>
    list.map((row) => [
      workload,
      row.kernel,
      String(row.times),
      String(row.registers),
      String(row.spills),
      String(row.staticShared + row.dynamicShared),
      String(row.threads),
      String(row.grid),
      String(row.held),
      percent(row.occupancy),
      row.waves.toFixed(2),
      `${row.inFlight.loads} loads, ${row.inFlight.bytes} B`,
      String(row.divisions),
      String(row.instructions),
      percent(row.tensorShare),
      String(row.issue),
      String(row.memory),
      percent(row.share),
      row.bound,
      `${row.hottest.instructions}: ${mixText(row)}`,
    ]),
  );
  return table(head, lines, head.map((_, i) => i).slice(2, 18));
}

function loopTable(rows: Rows<LoopRow>): string {
  const head = [
    'workload',
    'kernel',
    'times',
    'workgroups',
    'invocations',
    'shared',
    'barriers',
    'loads',
    'in a turn',
    'divisions',
    'per byte',
    'arithmetic µs',
    'memory µs',
    'share',
  ];
  const lines = Object.entries(rows).flatMap(([workload, list]) =>
    list.map(
      ({ kernel, times, workgroups, invocations, workgroupBytes, counts, loading, perByte, model }) => [
        workload,
        kernel,
        String(times),
        String(workgroups),
        String(invocations),
        String(workgroupBytes),
        String(counts['barriers'] ?? 0),
        Object.entries(counts['loads'] ?? {})
          .map(([size, count]) => `${String(count)}×${size} B`)
          .join(' '),
        `${loading.loads}, ${loading.loadBytes} B`,
        String(counts['divisions'] ?? 0),
        String(perByte),
        String(model?.arithmetic ?? ''),
        String(model?.memory ?? ''),
        model === undefined ? '' : percent(model.share),
      ],
    ),
  );
  return table(head, lines, head.map((_, i) => i).slice(2));
}

function toolsOrExit(): Tools {
  const tools = findTools();
  if (!('missing' in tools)) return tools;
  console.error(`machine code cannot be counted: there is no ${tools.missing}`);
  process.exit(1);
}

const compiledOf = (list: typeof counted): typeof counted =>
  list.filter((one) => compiledPrograms.includes(one));

/** Writes the committed figures; those of programs that are not counted now stay. */
function write(targets: readonly CountedTarget[], list: typeof counted): void {
  const merge = <T>(file: URL, key: string, rows: Rows<T>): Rows<T> => {
    let old: Readonly<Record<string, Rows<T>>> = {};
    try {
      const text = JSON.parse(readFileSync(file, 'utf8')) as { readonly rows?: typeof old } & typeof old;
      old = text.rows ?? text;
    } catch {
      // There is no file yet.
    }
    const all = { ...old[key], ...rows };
    return Object.fromEntries(
      counted.flatMap(({ name }) => (all[name] === undefined ? [] : [[name, all[name]]])),
    );
  };
  const loops = Object.fromEntries(
    countedTargets.map((target) => [
      target,
      merge(loopFile, target, targets.includes(target) ? loopRows(target, list) : {}),
    ]),
  );
  writeFileSync(loopFile, spelled(loops));
  const archs = targets.filter((target) => target !== 'wgsl');
  if (archs.length === 0) return;
  const tools = toolsOrExit();
  const rows = Object.fromEntries(
    (Object.keys(machines) as Arch[]).map((arch) => [
      arch,
      merge(codeFile, arch, archs.includes(arch) ? codeRows(arch, tools, compiledOf(list)) : {}),
    ]),
  );
  writeFileSync(codeFile, spelled({ tools: tools.version, rows } as CodeFigures));
}

/** JSON with a row a line. */
function spelled(value: unknown): string {
  const text = JSON.stringify(value);
  return `${text.replaceAll('{"kernel"', '\n{"kernel"').replaceAll(/(?<=[{,])("\w+":[[{]\n?)/g, '\n$1')}\n`;
}

function main(): void {
  const { values } = parseArgs({
    options: {
      workload: { type: 'string' },
      arch: { type: 'string', default: Object.keys(machines).join(',') },
      target: { type: 'string', default: 'cuda' },
      loops: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(usage);
    return;
  }
  const names = values.workload?.split(',');
  const unknown = names?.filter((name) => !counted.some((one) => one.name === name)) ?? [];
  const archs = values.arch.split(',');
  const problems = [
    ...unknown.map((name) => `no program is called ${name}: ${counted.map((one) => one.name).join(', ')}`),
    ...archs.filter((arch) => !Object.hasOwn(machines, arch)).map((arch) => `no machine is known of ${arch}`),
    ...(['wgsl', 'cuda'].includes(values.target) ? [] : [`--target is wgsl or cuda, not ${values.target}`]),
  ];
  if (problems.length > 0) {
    console.error(problems.join('\n'));
    process.exitCode = 2;
    return;
  }
  const list = names === undefined ? counted : counted.filter(({ name }) => names.includes(name));
  if (values.write) {
    write(values.target === 'wgsl' ? ['wgsl'] : ['wgsl', ...(archs as Arch[])], list);
    return;
  }
  if (values.target === 'wgsl' || values.loops) {
    const all = (values.target === 'wgsl' ? (['wgsl'] as const) : (archs as Arch[])).map(
      (target) => [target, loopRows(target, list)] as const,
    );
    if (values.json) console.log(JSON.stringify(Object.fromEntries(all)));
    else for (const [target, rows] of all) console.log(`${target}\n${loopTable(rows)}\n`);
    return;
  }
  const tools = toolsOrExit();
  const all = (archs as Arch[]).map((arch) => [arch, codeRows(arch, tools, list)] as const);
  if (values.json) console.log(JSON.stringify({ tools: tools.version, rows: Object.fromEntries(all) }));
  else
    for (const [arch, rows] of all)
      console.log(`${arch} (${machines[arch].name}), ${tools.version}\n${codeTable(rows)}\n`);
}

main();
