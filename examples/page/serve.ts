// Serves the page beside this file with a bundle that `sinter build` made: `npx tsx examples/page/serve.ts BUNDLE [PORT]`. The headers
// let the page share memory among threads.

import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.json': 'application/json',
  '.wasm': 'application/wasm',
};

/** A server that listens on 127.0.0.1, and its address; any free port by default. */
export async function servePage(bundle: string, port = 0): Promise<{ server: Server; origin: string }> {
  const page = fileURLToPath(new URL('.', import.meta.url));
  const send = async ({ url = '/' }: IncomingMessage, response: ServerResponse): Promise<void> => {
    // Paths of addresses begin with a slash, and normal ones do not leave it.
    const path = normalize(decodeURIComponent(new URL(url, 'http://page').pathname));
    const file = path.startsWith('/bundle/')
      ? join(bundle, path.slice('/bundle/'.length))
      : join(page, path === '/' ? 'index.html' : path);
    const body = await readFile(file);
    response.writeHead(200, {
      'content-type': types[extname(file)] ?? 'application/octet-stream',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-embedder-policy': 'require-corp',
    });
    response.end(body);
  };
  const server = createServer((request, response) => {
    send(request, response).catch(() => response.writeHead(404).end());
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  return { server, origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const [bundle, port = '8080'] = process.argv.slice(2);
  if (bundle === undefined || !existsSync(join(bundle, 'index.js'))) {
    console.error('usage: npx tsx examples/page/serve.ts BUNDLE [PORT]');
    process.exitCode = 2;
  } else console.log(`open ${(await servePage(bundle, Number(port))).origin}`);
}
