// Operations against PyTorch's figures in a page: `?device=NAME&spread=N`. The figures come from where the page does.

import { runOperations } from '../gpu/operations.ts';

const asked = new URLSearchParams(location.search);

async function run(): Promise<unknown> {
  const names = (await (await fetch('/figures')).json()) as readonly string[];
  const figures = await Promise.all(
    names.map(async (name) => [name, await (await fetch(`/figures/${name}`)).text()] as const),
  );
  // What reads them takes them for files.
  (globalThis as { sinterFiles?: ReadonlyMap<string, string> }).sinterFiles = new Map(figures);
  return runOperations(asked.get('device') ?? '', { spread: Number(asked.get('spread')) });
}

run()
  .catch((error: unknown) => ({ failure: String(error) }))
  .then((body) => fetch('/report', { method: 'POST', body: JSON.stringify(body) }));
