// What the files of a compilation say: each stage in the text form of its level, under a name that
// begins with its number. 00 is the graph as recorded, then come the passes that changed it, by
// their places in the list of passes; 20 fusion groups, 21 kernels, 30 Loops and sources, 40 the
// program.

import { printLoop } from '../codegen/loop/print.ts';
import type { Loop } from '../codegen/loop/loop.ts';
import { print } from '../ir/text/print.ts';
import type { AppliedRule } from '../ir/origin/trace.ts';
import type { Program } from '../runtime/program.ts';
import { printFusionGroups } from '../schedule/text/fusion-groups.ts';
import { printKernels } from '../schedule/text/print.ts';
import type { CompileStage } from './stage.ts';

export interface StageFile {
  readonly name: string;
  /** Undefined: the file is of a stage that was done again, and goes. */
  readonly text: string | undefined;
}

/** What files of a target's sources end with. */
const suffixes: Readonly<Record<string, string>> = { wgsl: 'wgsl', cuda: 'cu', wasm: 'wat' };

/** The files of one compilation's stages, as they come. */
export function filesOf(): (stage: CompileStage) => readonly StageFile[] {
  /** The file's name of every Loop so far, without its ending. */
  const stems = new Map<Loop, string>();
  const order: Loop[] = [];
  const loopFile = (stem: string): string => `${stem}.loop.txt`;
  let suffix = 'txt';
  /** The file of the graph as it is now. */
  let graphFile = '';
  return (stage) => {
    switch (stage.kind) {
      case 'recorded': {
        suffix = suffixes[stage.target.id] ?? 'txt';
        const text = `// as recorded, for ${stage.target.name}\n${print(stage.graph)}`;
        graphFile = '00-recorded.graph.txt';
        return [{ name: graphFile, text }];
      }
      case 'pass': {
        const [before, after] = [print(stage.before), print(stage.graph)];
        if (before === after) return [];
        const number = String(stage.place + 1).padStart(2, '0');
        const lines = [
          `// after ${stage.name}: ${stage.guarantees}`,
          ...tally([...stage.trace.rules.values()].flat()).map((line) => `// ${line}`),
        ];
        graphFile = `${number}-${stage.name}.graph.txt`;
        return [{ name: graphFile, text: `${lines.join('\n')}\n${after}` }];
      }
      case 'schedule': {
        const { graph, schedule } = stage;
        const note = `// nodes are called as in ${graphFile}\n`;
        return [
          { name: '20-fusion-groups.txt', text: note + printFusionGroups(schedule, graph) },
          { name: '21-kernels.txt', text: note + printKernels(schedule, graph) },
        ];
      }
      case 'loop': {
        const { place, count, loop } = stage;
        const gone = place === 0 ? Array.from(stems.values(), loopFile) : [];
        if (place === 0) {
          stems.clear();
          order.length = 0;
        }
        const files: StageFile[] = gone.map((name) => ({ name, text: undefined }));
        order.push(loop);
        if (stems.has(loop)) return files;
        const number = String(place).padStart(String(Math.max(10, count - 1)).length, '0');
        const stem = `30-k${number}-${loop.name}`;
        stems.set(loop, stem);
        files.push({ name: loopFile(stem), text: `${printLoop(loop)}\n` });
        return files;
      }
      case 'program': {
        const sources = new Map<string, string>();
        order.forEach((loop, i) => {
          const name = `${stems.get(loop)}.${suffix}`;
          const source = stage.sources[i];
          if (source !== undefined && !sources.has(name)) sources.set(name, source());
        });
        return [
          ...Array.from(sources, ([name, text]) => ({ name, text })),
          { name: '40-program.json', text: programText(stage.program) },
        ];
      }
      case 'error': {
        const { error } = stage;
        return [{ name: '99-error.txt', text: `${error instanceof Error ? error.stack : String(error)}\n` }];
      }
      default:
        return stage satisfies never;
    }
  };
}

/** `mul-one: x · 1 = x, 3 times`. */
function tally(rules: readonly AppliedRule[]): readonly string[] {
  const counts = new Map<string, number>();
  for (const { name, law } of rules) {
    const line = `${name}: ${law}`;
    counts.set(line, (counts.get(line) ?? 0) + 1);
  }
  return Array.from(counts, ([line, count]) => (count === 1 ? line : `${line}, ${count} times`));
}

/** The program without its sources, which have files of their own. */
function programText(program: Program): string {
  const kernels = program.kernels.map((kernel) => ({ ...kernel, source: undefined }));
  return `${JSON.stringify({ ...program, kernels }, undefined, 1)}\n`;
}
