// Where a worker is: its JavaScript stack, asked of Node's inspector, which answers even while a loop holds the thread.

import { createServer } from 'node:net';
import { WebSocket } from 'ws';

/** A port that is free. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === 'object' && address !== null ? address.port : 0;
}

interface Frame {
  readonly functionName: string;
  readonly location: {
    readonly scriptId: string;
    readonly lineNumber: number;
    readonly columnNumber: number;
  };
}

interface Message {
  readonly method?: string;
  readonly params?: {
    readonly scriptId?: string;
    readonly url?: string;
    readonly callFrames?: readonly Frame[];
  };
}

/** How long the inspector may take to open, and the worker to reach a place where it can be halted, in milliseconds. */
const openMs = 5000;
const haltMs = 3000;

/**
 * Halts the process `pid`, whose inspector is to listen on `port`, and gives its stack; or why there is none. It stays halted.
 */
export async function whereIs(pid: number, port: number): Promise<string> {
  try {
    // The signal that opens the inspector, which works from a thread of its own.
    process.kill(pid, 'SIGUSR1');
    const frames = await haltedAt(await inspectorAt(port));
    if (frames === undefined)
      return 'no JavaScript ran: it waits, or is in other code, such as a driver or a program that it waits for';
    return `it was at\n${frames.slice(0, 20).join('\n')}`;
  } catch (error) {
    return `where it was is not known: ${(error as Error).message}`;
  }
}

async function inspectorAt(port: number): Promise<string> {
  const until = performance.now() + openMs;
  for (;;) {
    try {
      const response = await fetch(`http://127.0.0.1:${port}/json/list`, {
        signal: AbortSignal.timeout(openMs),
      });
      const [target] = (await response.json()) as readonly { readonly webSocketDebuggerUrl: string }[];
      if (target !== undefined) return target.webSocketDebuggerUrl;
    } catch (error) {
      if (performance.now() > until) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** The lines of the stack at which a process halts, or nothing where no JavaScript runs. */
function haltedAt(url: string): Promise<readonly string[] | undefined> {
  const socket = new WebSocket(url);
  const files = new Map<string, string>();
  const lineOf = ({ functionName, location: { scriptId, lineNumber, columnNumber } }: Frame): string =>
    `    at ${functionName || '<anonymous>'} (${files.get(scriptId) ?? 'unknown'}:${lineNumber + 1}:${columnNumber + 1})`;
  return new Promise<readonly string[] | undefined>((resolve, reject) => {
    const timer = setTimeout(() => resolve(undefined), haltMs);
    socket.on('error', reject);
    socket.on('open', () => {
      for (const [id, method] of ['Debugger.enable', 'Debugger.pause'].entries())
        socket.send(JSON.stringify({ id, method }));
    });
    socket.on('message', (data: Buffer) => {
      const { method, params } = JSON.parse(data.toString()) as Message;
      if (method === 'Debugger.scriptParsed') files.set(params!.scriptId!, params!.url!);
      if (method !== 'Debugger.paused') return;
      clearTimeout(timer);
      resolve(params!.callFrames!.map(lineOf));
    });
  }).finally(() => socket.terminate());
}
