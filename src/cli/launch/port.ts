// Where ranks of one machine meet.

import { createServer } from 'node:net';

/** Ports below those that systems give to connections by themselves: rank 0 would find such a one taken by a rank that looks for it. */
const [first, count] = [20_000, 10_000];

/** A port of this machine at which nobody listens. Rejects where ten that were drawn are taken. */
export async function freePort(attempts = 10): Promise<number> {
  const port = first + Math.floor(Math.random() * count);
  const isFree = await new Promise<boolean>((done) => {
    const server = createServer();
    server.once('error', () => done(false));
    server.listen(port, '127.0.0.1', () => server.close(() => done(true)));
  });
  if (isFree) return port;
  if (attempts > 1) return freePort(attempts - 1);
  throw new Error(`no port between ${first} and ${first + count} is free`);
}
