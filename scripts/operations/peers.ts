// What an operation is called in PyTorch and JAX. Its comment says so by the tags @torch and @jax, or `none`. Without a tag the rule
// holds: the name in snake_case, where that library has one.

import { readFileSync } from 'node:fs';
import { operations, type Operation } from './declared.ts';

/** A library, and how its names are found. */
export interface Peer {
  readonly tag: 'torch' | 'jax';
  readonly title: string;
  /** What its names stand behind: `torch.`. */
  readonly prefix: string;
  /** Its names, each with all names of the same function. */
  readonly names: ReadonlyMap<string, readonly string[]>;
  /** Where names of one of our namespaces, or of none (''), are found. */
  readonly modules: Readonly<Record<string, readonly string[]>>;
}

function read(tag: Peer['tag']): Peer['names'] {
  const lines = readFileSync(new URL(`peers/${tag}.txt`, import.meta.url), 'utf8')
    .trim()
    .split('\n');
  return new Map(lines.map((line) => line.split(' ')).flatMap((group) => group.map((name) => [name, group])));
}

export const peers: readonly Peer[] = [
  {
    tag: 'torch',
    title: 'PyTorch',
    prefix: 'torch.',
    names: read('torch'),
    modules: {
      '': ['', 'nn.functional.', 'Tensor.'],
      distributions: ['distributions.'],
      fft: ['fft.'],
      linalg: ['linalg.'],
      masked: ['masked.'],
      special: ['special.'],
    },
  },
  {
    tag: 'jax',
    title: 'JAX',
    prefix: '',
    names: read('jax'),
    modules: {
      '': ['jnp.', 'jax.nn.'],
      fft: ['jnp.fft.'],
      linalg: ['jnp.linalg.', 'jax.scipy.linalg.'],
      special: ['jax.scipy.special.'],
    },
  },
];

const snake = (name: string): string => name.replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2').toLowerCase();
const pascal = (name: string): string => name.charAt(0).toUpperCase() + name.slice(1);

/** The names that a public name has by the rule. */
function byRule(peer: Peer, name: string): string[] {
  const [space, own] = name.includes('.') ? (name.split('.') as [string, string]) : ['', name];
  const spellings = [snake(own), snake(own).replaceAll('_', ''), pascal(own)];
  const found = (peer.modules[space] ?? []).flatMap((module) =>
    spellings.map((spelling) => module + spelling).filter((each) => peer.names.has(each)),
  );
  return [...new Set(found)];
}

/** The names that an operation has in a library by the rule. */
export function namesByRule(peer: Peer, { names }: Operation): readonly string[] {
  return [...new Set(names.flatMap((name) => byRule(peer, name)))];
}

/** The names of an operation in a library, without its prefix. Throws where a tag names what that library does not have. */
export function namesIn(peer: Peer, operation: Operation): readonly string[] {
  const tagged = operation.peers[peer.tag];
  if (tagged === undefined) return namesByRule(peer, operation);
  const unknown = tagged.find((name) => !peer.names.has(name));
  if (unknown !== undefined)
    throw new Error(`${operation.path}: ${operation.own}: ${peer.title} has no ${peer.prefix}${unknown}`);
  return tagged;
}

/** The public names of operations by the names of a library, in the order of the alphabet. */
export function namesFrom(peer: Peer): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (const operation of operations().filter(({ kind, names }) => kind !== 'type' && names.length > 0)) {
    for (const name of namesIn(peer, operation).flatMap((each) => peer.names.get(each)!)) {
      const exact = operation.names.filter((own) => byRule(peer, own).includes(name));
      const ours = exact.length > 0 ? exact : operation.names.slice(0, 1);
      found.set(name, [...new Set([...(found.get(name) ?? []), ...ours])]);
    }
  }
  const order = (name: string): string => name.toLowerCase();
  return new Map([...found].toSorted(([a], [b]) => (order(a) < order(b) ? -1 : 1)));
}

/** The table of the names of a library. */
function table(peer: Peer): string[] {
  const rows = [...namesFrom(peer)].map(
    ([name, ours]) => `| \`${peer.prefix}${name}\` | ${ours.map((own) => `\`${own}\``).join(', ')} |`,
  );
  return [`| ${peer.title} | Sinter |`, '| --- | --- |', ...rows];
}

/** docs/names.md: which operation of Sinter has which name in the other libraries. */
export function namesPage(): string {
  const lines = [
    '# Names in PyTorch and JAX',
    '',
    'This page lists the operations of PyTorch and JAX by their names there, with the name of the same operation in Sinter. `npm run docs`',
    'makes it of the comments of the operations. [pytorch.md](pytorch.md) and [jax.md](jax.md) show how programs differ beyond names.',
    '',
    '`jnp` is `jax.numpy`, `lax` is `jax.lax`. Arguments and defaults are those of PyTorch. They differ from JAX in these places:',
    '',
    '- `std` and `var` divide by n − 1 unless you pass `{ correction: 0 }`; `jnp.std` and `jnp.var` divide by n.',
    "- `meshgrid` has rows first (`'ij'`); `jnp.meshgrid` has columns first (`'xy'`).",
    "- `gelu` is exact unless you pass `{ approximate: 'tanh' }`, which is JAX's default.",
    '- `transpose` swaps two axes; `jnp.transpose` takes all axes, as `permute` does.',
    '- `repeat` repeats the whole tensor; `jnp.repeat` repeats each element, as `repeatInterleave` does.',
    '- `median` of an even number of elements is the lower one of the middle two, and `split` takes sizes in place of a number of parts.',
    '  Neither has a counterpart in JAX.',
  ];
  for (const peer of peers) lines.push('', `## ${peer.title}`, '', ...table(peer));
  return `${lines.join('\n')}\n`;
}
