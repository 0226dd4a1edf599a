// The smoke program in a page: what it gives, or what went wrong, is sent back to where the page comes from.

import { smoke, type Load } from './smoke.ts';

const asked = new URLSearchParams(location.search);
const listed = (name: string): string[] => (asked.get(name) ?? '').split(',').filter((each) => each !== '');

async function report(): Promise<unknown> {
  const at = '/bundle/index.js';
  const { load } = (await import(/* @vite-ignore */ at)) as { load: Load };
  return smoke(
    { runtime: navigator.userAgent, devices: listed('devices'), targets: listed('targets') },
    load,
  );
}

report()
  .catch((error: unknown) => ({
    failure: error instanceof Error ? `${error.message}\n${error.stack}` : String(error),
  }))
  .then((body) => fetch('/report', { method: 'POST', body: JSON.stringify(body) }));
