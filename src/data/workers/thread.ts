// One worker, in Node or in a page: started from the text of what it does, spoken to by messages.

import { SinterError } from '../../errors.ts';
import { stackItems, typedDType } from '../stacking.ts';
import type { Answer, WorkerAssignment, Wanted } from './message.ts';
import { serveBatches } from './serve.ts';

/** A worker that serves batches. */
export interface Thread {
  ask(wanted: Wanted): void;
  /** Whether the process has to stay for what the worker does; of no meaning in pages. */
  hold(needed: boolean): void;
  end(): Promise<void>;
}

/** What is told of a worker. */
export interface Listener {
  answer(answer: Answer): void;
  /** It has ended, or cannot be spoken to. */
  ended(reason: string): void;
}

function workerThreads(): typeof import('node:worker_threads') | undefined {
  return globalThis.process?.getBuiltinModule?.('node:worker_threads');
}

/** The call of `serveBatches` as text, with these variables. */
function serving(port: string, assignment: string): string {
  const load = '(module) => import(module)';
  return `(${serveBatches.toString()})(${port}, ${assignment}, ${load}, ${stackItems.toString()}, ${typedDType.toString()});`;
}

/** Starts a worker. Throws E_UNSUPPORTED where there are none. */
export function startThread(assignment: WorkerAssignment, listener: Listener): Thread {
  const node = workerThreads();
  if (node !== undefined) return inNode(node, assignment, listener);
  if (typeof Worker === 'undefined')
    throw new SinterError('E_UNSUPPORTED', 'DataLoader: there are no workers here\n  try: no workers');
  return inPage(assignment, listener);
}

function inNode(
  { Worker }: typeof import('node:worker_threads'),
  assignment: WorkerAssignment,
  listener: Listener,
): Thread {
  const source = `const { parentPort, workerData } = require('node:worker_threads');
const port = {
  send: (answer, transfer) => parentPort.postMessage(answer, transfer),
  receive: (handle) => parentPort.on('message', handle),
};
${serving('port', 'workerData')}`;
  const worker = new Worker(source, { eval: true, workerData: assignment });
  let reason: string | undefined;
  worker.on('message', (answer: Answer) => listener.answer(answer));
  worker.once('messageerror', (error) => listener.ended(String(error)));
  worker.once('error', (error) => (reason = error instanceof Error ? error.message : String(error)));
  worker.once('exit', (code) => listener.ended(reason ?? `it exited with ${code}`));
  return {
    ask: (wanted) => worker.postMessage(wanted, []),
    hold: (needed) => (needed ? worker.ref() : worker.unref()),
    end: async () => void (await worker.terminate()),
  };
}

function inPage(assignment: WorkerAssignment, listener: Listener): Thread {
  const source = `const port = {
  send: (answer, transfer) => postMessage(answer, transfer),
  receive: (handle) => { onmessage = ({ data }) => handle(data); },
};
onmessage = ({ data }) => { ${serving('port', 'data')} };`;
  const url = URL.createObjectURL(new Blob([source], { type: 'text/javascript' }));
  const worker = new Worker(url, { type: 'module' });
  worker.addEventListener('message', ({ data }: MessageEvent<Answer>) => {
    URL.revokeObjectURL(url);
    listener.answer(data);
  });
  worker.addEventListener('messageerror', () => listener.ended('its answer cannot be read'));
  worker.addEventListener('error', ({ message }) =>
    listener.ended(message || 'the page allows no worker from a blob: worker-src blob:'),
  );
  worker.postMessage(assignment, []);
  return {
    ask: (wanted) => worker.postMessage(wanted, []),
    hold: () => undefined,
    end: async () => {
      worker.terminate();
      URL.revokeObjectURL(url);
    },
  };
}
