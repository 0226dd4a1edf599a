// `sinter explain`: what a workload or a function of the user's becomes, from graph to kernels.

import { writeFile } from 'node:fs/promises';
import {
  explainFor,
  explainPasses,
  explainShared,
  expectedTarget,
  type ExplainedKernel,
  type ExplainedNode,
  type ExplainedFusionDiagnostic,
  type Explanation,
} from '../../explain/explain.ts';
import { passesText } from '../../explain/passes.ts';
import { kernelPage } from '../../explain/text.ts';
import { setDevice } from '../../index.ts';
import { softwareTarget, targetOf, type Target } from '../../schedule/target.ts';
import { device } from '../../tensor/device.ts';
import { chosenProgram, programDetails, programOperand, programOptions } from '../program/choice.ts';
import { meshDetails, plannedArguments } from './mesh.ts';
import { text, UsageError, type Command, type Output, type OptionValues } from '../command.ts';

/** Recorded graphs of more nodes are shown only when asked for. */
const longGraph = 60;

export const explainCommand: Command = {
  name: 'explain',
  about: 'show what a program becomes: graph, kernels, reasons, sources',
  details:
    'Compiles a function without a device, and shows the recorded graph and the kernels that it becomes, for --device or\n' +
    'SINTER_DEVICE, or else for a GPU: what each kernel computes, reads and writes, its arithmetic, the bytes that it moves,\n' +
    'its modelled time, and why two kernels are not one.\n\n' +
    `${programDetails}\n\n${meshDetails}\n\n` +
    '--html writes one self-contained page with a drawing of the graph. It needs the package @dagrejs/dagre.',
  operand: programOperand,
  options: {
    ...programOptions,
    kernel: {
      type: 'string',
      value: 'NAME',
      about: 'print everything about one kernel, by its name or number',
    },
    passes: { type: 'boolean', about: 'print only what each pass changes, and by which rule' },
    graph: { type: 'boolean', about: `print the recorded graph even if it has more than ${longGraph} nodes` },
    sources: { type: 'boolean', about: 'print the sources of the kernels too' },
    mesh: {
      type: 'string',
      value: 'AXES',
      about: 'explain what a process of this mesh runs: data=2,model=4',
    },
    device: { type: 'string', value: 'NAME', about: 'kernels for this device, see `sinter devices`' },
    software: { type: 'boolean', about: 'kernels for the software adapter instead of a GPU' },
    html: { type: 'string', value: 'FILE', about: 'write one self-contained page' },
  },
  examples: [
    'sinter explain model.ts',
    'sinter explain model.ts --export trainStep --html step.html',
    'sinter explain model.onnx --dim batch=1',
    'sinter explain train.js --mesh data=2,model=4',
    'sinter explain --workload softmax --kernel 0',
    'sinter explain --workload softmax --passes',
    'sinter explain --workload gptBlockForward --json',
  ],
  run: async (values, output) => {
    const named = await namedTarget(values);
    const program = await chosenProgram(values, 'explain');
    const { name, subject, args } = program;
    const mesh = text(values, 'mesh');
    if (mesh !== undefined && typeof subject !== 'function')
      throw new UsageError('explain --mesh takes a function, not a tensor');
    const planned = mesh === undefined ? undefined : plannedArguments(program, mesh);
    // A program may choose its device.
    const target = named ?? expectedTarget();
    if (values['passes'] === true) {
      if (['kernel', 'html', 'graph', 'sources'].some((other) => values[other] !== undefined))
        throw new UsageError('explain --passes shows the passes alone: drop the other parts');
      const passes = explainPasses(target, subject, args, planned);
      const report = { version: 1, target: target.name, passes };
      output.line(values['json'] === true ? JSON.stringify(report) : passesText(passes));
      return;
    }
    const explanation =
      planned === undefined || typeof subject !== 'function'
        ? explainFor(target, subject, ...args)
        : explainShared(target, planned, subject, args);
    const kernel = chosenKernel(explanation, text(values, 'kernel'));
    const file = text(values, 'html');
    if (file !== undefined) {
      await writeFile(file, await pageOf(explanation, name));
      output.note(`wrote ${file}`);
    }
    if (values['json'] === true)
      output.line(JSON.stringify(kernel === undefined ? explanation : onlyKernel(explanation, kernel)));
    else if (kernel !== undefined) output.line(kernelPage(explanation, kernel, output.columns));
    else if (file === undefined) show(explanation, values, output);
  },
};

function show(explanation: Explanation, values: OptionValues, output: Output): void {
  const nodes = explanation.graph.split('\n').length - 4;
  const graph = values['graph'] === true || nodes <= longGraph;
  if (!graph) output.note(`the recorded graph has ${nodes} nodes: --graph shows it`);
  const sources = values['sources'] === true;
  const columns = output.columns === undefined ? {} : { columns: output.columns };
  output.line(explanation.toText({ graph, details: true, sources, ...columns }));
}

/**
 * What `--kernel --json` prints: one kernel, the nodes that it names by place, and its fusion diagnostics.
 */
export interface OneKernel {
  readonly place: number;
  readonly kernel: ExplainedKernel;
  readonly nodes: Readonly<Record<number, ExplainedNode>>;
  readonly fusionDiagnostics: readonly ExplainedFusionDiagnostic[];
}

function onlyKernel(explanation: Explanation, place: number): OneKernel {
  const kernel = explanation.kernels[place]!;
  const fusionDiagnostics = explanation.fusionDiagnostics.filter(
    ({ first, second }) => first === place || second === place,
  );
  const { prologue, body, epilogue, reads, writes } = kernel;
  const accessed = [...reads, ...writes].map(({ node }) => node);
  const named = [
    ...prologue,
    ...body,
    ...epilogue,
    ...accessed,
    ...fusionDiagnostics.map(({ value }) => value),
  ];
  const nodes = Object.fromEntries(named.map((node) => [node, explanation.nodes[node]!]));
  return { place, kernel, nodes, fusionDiagnostics };
}

/** The target that options name. */
async function namedTarget(values: OptionValues): Promise<Target | undefined> {
  const name = text(values, 'device');
  if (name === undefined) return values['software'] === true ? softwareTarget : undefined;
  if (values['software'] === true) throw new UsageError('explain takes --device or --software, not both');
  if (name === 'interpreter')
    throw new UsageError('--device: the interpreter runs no kernels: see `sinter devices` for others');
  setDevice(name);
  return targetOf((await device()).facts);
}

/** Place of the kernel asked for. Throws UsageError listing what there is. */
function chosenKernel({ kernels }: Explanation, asked: string | undefined): number | undefined {
  if (asked === undefined) return undefined;
  const place = kernels.findIndex(({ name }, i) => name === asked || String(i) === asked);
  if (place >= 0) return place;
  const names = kernels.map(({ name }, i) => `  ${i}  ${name}`);
  throw new UsageError([`there is no kernel '${asked}': expected one of`, ...names].join('\n'));
}

async function pageOf(explanation: Explanation, title: string): Promise<string> {
  const { explanationPage } = await import('../../explain/index.ts');
  return explanationPage(explanation, { title });
}
