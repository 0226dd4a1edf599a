// The thread of a board (board.ts): sends what its rank tells to rank 0, over TCP, and hands on what comes back. The thread of rank 0
// serves all others and has the ledger. Messages are JSON, a line each. It is a thread since a rank that waits for others
// blocks its own.

import * as net from 'node:net';
import { workerData, type MessagePort } from 'node:worker_threads';
import { Ledger, type LedgerAnswer, type LedgerNote } from './ledger.ts';

/** Where a rank stands, and where rank 0 is found. */
export interface BoardSeat {
  readonly rank: number;
  readonly size: number;
  /** Addresses of rank 0, tried in turn; where rank 0 itself listens, or all of its own addresses where there is none. */
  readonly hosts: readonly string[];
  readonly port: number;
  /** Ranks of another world have another one. */
  readonly key: string;
  /** Milliseconds until all ranks have to be there. */
  readonly timeout: number;
}

export interface BoardData {
  readonly seat: BoardSeat;
  readonly channel: MessagePort;
}

/** What the thread of a rank is asked. */
export type BoardRequest = readonly LedgerNote[] | 'close';

/** What it says: answers, that it is there (rank 0 at which port), and that it has ended. */
export type BoardEvent =
  | LedgerAnswer
  | { readonly kind: 'joined'; readonly port: number }
  | { readonly kind: 'closed' };

/** The first line of a connection. */
interface Hello {
  readonly rank: number;
  readonly size: number;
  readonly key: string;
}

const { seat, channel } = workerData as BoardData;
const { rank: own, size, hosts, port, key, timeout } = seat;
const post = (event: BoardEvent): void => channel.postMessage(event, []);

/** Bytes that somebody who has not said who it is may send. */
const mostStrange = 4096;

/** Calls `each` with every whole line. */
function lines(socket: net.Socket, each: (line: string) => void): void {
  let open = '';
  socket.setEncoding('utf8');
  socket.on('data', (text: string) => {
    const all = (open + text).split('\n');
    open = all.pop()!;
    if (open.length > mostStrange && !known.has(socket) && own === 0) socket.destroy();
    for (const line of all) each(line);
  });
}

/** Connections of ranks. */
const known = new Set<net.Socket>();

function serve(): void {
  const sockets = new Map<number, net.Socket>();
  const ledger = new Ledger(size, (rank, answer) => {
    if (rank === own) post(answer);
    else sockets.get(rank)?.write(`${JSON.stringify(answer)}\n`);
  });
  let isClosing = false;
  const close = (): void => {
    if (!isClosing || !ledger.isOver([])) return;
    for (const socket of sockets.values()) socket.end();
    server.close();
    post({ kind: 'closed' });
  };
  const welcome = (socket: net.Socket, line: string): number | undefined => {
    const hello = parsed<Hello>(line);
    const problem =
      hello?.key !== key || !(Number.isInteger(hello.rank) && hello.rank > 0)
        ? 'this is another world of ranks'
        : hello.size !== size || hello.rank >= size
          ? `rank ${hello.rank} expects ${hello.size} ranks, and rank 0 expects ${size}`
          : sockets.has(hello.rank)
            ? `there are two of rank ${hello.rank}`
            : undefined;
    if (problem === undefined) return hello!.rank;
    socket.end(`${JSON.stringify({ kind: 'failed', problem } satisfies LedgerAnswer)}\n`);
    return undefined;
  };
  const server = net.createServer((socket) => {
    let rank: number | undefined;
    socket.setNoDelay(true).setKeepAlive(true, 10_000);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => {
      if (rank === undefined) return;
      sockets.delete(rank);
      ledger.lose(rank);
      close();
    });
    lines(socket, (line) => {
      if (rank !== undefined) {
        const notes = parsed<readonly LedgerNote[]>(line);
        for (const note of notes ?? []) ledger.take(rank, note);
        return close();
      }
      rank = welcome(socket, line);
      if (rank === undefined) return;
      known.add(socket);
      sockets.set(rank, socket);
      socket.write(`${JSON.stringify({ kind: 'joined', port } satisfies BoardEvent)}\n`);
      ledger.join(rank);
    });
  });
  server.once('error', (error) =>
    post({ kind: 'failed', problem: `rank 0 cannot listen at port ${port}: ${error.message}` }),
  );
  server.listen({ port, ...(hosts[0] !== undefined && { host: hosts[0] }) }, () => {
    post({ kind: 'joined', port: (server.address() as net.AddressInfo).port });
  });
  channel.on('message', (request: BoardRequest) => {
    if (request === 'close') isClosing = true;
    else for (const note of request) ledger.take(own, note);
    close();
  });
}

function reach(): void {
  const start = performance.now();
  let at: net.Socket | undefined;
  let isOver = false;
  const end = (event: BoardEvent): void => {
    if (isOver) return;
    isOver = true;
    post(event);
  };
  const attempt = (which: number): void => {
    const socket = net.connect({ host: hosts[which % hosts.length]!, port });
    let isJoined = false;
    socket.setNoDelay(true).setKeepAlive(true, 10_000);
    socket.once('connect', () => {
      // Where nobody listens yet, a port that systems give to connections by themselves can be connected with itself.
      if (socket.localPort === socket.remotePort && socket.localAddress === socket.remoteAddress)
        return void socket.resetAndDestroy();
      socket.write(`${JSON.stringify({ rank: own, size, key } satisfies Hello)}\n`);
    });
    socket.on('error', () => socket.destroy());
    lines(socket, (line) => {
      const event = parsed<BoardEvent>(line);
      if (event === undefined) return;
      if (event.kind === 'joined') {
        isJoined = true;
        at = socket;
      }
      post(event);
    });
    socket.once('close', () => {
      at = undefined;
      if (isOver) return;
      if (isJoined) return end({ kind: 'failed', problem: 'rank 0 has ended: its connection is closed' });
      if (performance.now() - start < timeout) return void setTimeout(attempt, 50, which + 1);
      const place = hosts.map((host) => `${host}:${port}`).join(' or ');
      return end({ kind: 'failed', problem: `rank 0 is not at ${place}, within ${timeout / 1000} s` });
    });
  };
  attempt(0);
  channel.on('message', (request: BoardRequest) => {
    if (request === 'close') {
      if (at === undefined) end({ kind: 'closed' });
      else at.end(() => end({ kind: 'closed' }));
    } else at?.write(`${JSON.stringify(request)}\n`);
  });
}

function parsed<T>(line: string): T | undefined {
  try {
    return JSON.parse(line) as T;
  } catch {
    return undefined;
  }
}

if (own === 0) serve();
else reach();
