// A web server for pages, on a free port of 127.0.0.1 (which browsers trust enough for WebGPU).

import { readdirSync, readFileSync } from 'node:fs';
import * as http from 'node:http';
import type { AddressInfo } from 'node:net';
import * as path from 'node:path';

export interface Served {
  readonly origin: string;
  close(): Promise<void>;
}

const TYPES: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  mjs: 'text/javascript; charset=utf-8',
  html: 'text/html; charset=utf-8',
  wasm: 'application/wasm',
};

/** A file and the headers that go with it. */
export interface Answer {
  readonly body: string | Uint8Array;
  /** 200 by default. */
  readonly status?: number;
  /** The connection breaks after so many bytes, once `when` resolves. */
  readonly breakAt?: { readonly bytes: number; readonly when: Promise<unknown> };
  /** It is not sent before this resolves. */
  readonly after?: Promise<unknown>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What lets a page share memory among threads. */
export const isolated: Readonly<Record<string, string>> = {
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-embedder-policy': 'require-corp',
};

/** A folder's files by their paths in it. */
export function filesUnder(folder: string): ReadonlyMap<string, Uint8Array> {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name));
  return new Map(
    files.map((file) => [path.relative(folder, file).replaceAll(path.sep, '/'), readFileSync(file)]),
  );
}

/** Serves what `find` has for a path such as `/page.js`; the rest is not found. */
export async function serve(
  find: (path: string, headers: http.IncomingHttpHeaders, body: string) => Answer | undefined,
): Promise<Served> {
  const answer = (request: http.IncomingMessage, response: http.ServerResponse, body: string): void => {
    const { pathname } = new URL(request.url ?? '/', 'http://127.0.0.1');
    const found = find(pathname, request.headers, body);
    const { after } = found ?? {};
    if (after === undefined) send(response, pathname, found);
    else void after.then(() => send(response, pathname, found));
  };
  const send = (response: http.ServerResponse, pathname: string, found: Answer | undefined): void => {
    const type = TYPES[pathname.slice(pathname.lastIndexOf('.') + 1)] ?? 'application/octet-stream';
    response.writeHead(found === undefined ? 404 : (found.status ?? 200), {
      'content-type': type,
      ...found?.headers,
    });
    if (found?.breakAt === undefined) return void response.end(found?.body);
    response.write(found.body.slice(0, found.breakAt.bytes));
    void found.breakAt.when.then(() => response.destroy());
  };
  const server = http.createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => answer(request, response, Buffer.concat(pieces).toString()));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
