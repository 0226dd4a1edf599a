// What the thread that compiles runs: it loads the parts of the compiler that a graph needs, compiles one
// graph after another, and answers each. `thread.ts` starts it.

import { parentPort } from 'node:worker_threads';
import { chunksOf, load, loadedCompiler } from '../chunks.ts';
import { graphOfPlain, type CompileAnswer, type CompileRequest } from './message.ts';
import { transforms } from '../../ir/fft/types.ts';
import { meshRules } from '../../ir/typing/collective.ts';
import { factors } from '../../ir/typing/factor.ts';
import { factorTypes, meshTypes, transformTypes } from '../../ir/typing/slots.ts';

factorTypes.fill(factors);
meshTypes.fill(meshRules);
transformTypes.fill(transforms);

async function answerTo({ id, graph: plain, target, options }: CompileRequest): Promise<CompileAnswer> {
  try {
    const graph = graphOfPlain(plain);
    await load(chunksOf(graph, target, options).add(target.id));
    return { kind: 'compiled', id, program: loadedCompiler().compileGraph(graph, target, options).program };
  } catch (error) {
    return { kind: 'failed', id, problem: error instanceof Error ? error.message : String(error) };
  }
}

function answer(given: CompileAnswer): void {
  parentPort?.postMessage(given, []);
}

parentPort?.on('message', async (request: CompileRequest) => answer(await answerTo(request)));
answer({ kind: 'ready' });
