// Mutations of files and texts: small changes to something valid, drawn from a seed.

/** Draws numbers below a bound. */
export type Draw = (below: number) => number;

/** The draws of one case: each case of a seed can be repeated by itself. */
export function drawsOf(seed: number, index: number): Draw {
  let state = (Math.imul(seed, 0x9e3779b1) ^ Math.imul(index + 1, 0x85ebca6b)) >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let word = Math.imul(state ^ (state >>> 15), state | 1);
    word ^= word + Math.imul(word ^ (word >>> 7), word | 61);
    return Math.floor((((word ^ (word >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

const one = <T>(draw: Draw, list: readonly T[]): T => list[draw(list.length)]!;

const names = ['__proto__', 'then', '../', 'constructor', '..\\', 'file:///etc/passwd', '//b/c', '\t../', ''];
const numbers =
  '0 -0 -1 1 3 255 65536 2147483648 4294967296 9007199254740993 1e400 1.5 null 18446744073709551616'.split(
    ' ',
  );
const words = [0n, 1n, 2n, 0x7fn, 0xffn, 0xffffn, 0x10000n, 0x7fff_ffffn, 0x8000_0000n, 0xffff_ffffn];
const wide = [...words, 2n ** 32n, 2n ** 40n, 2n ** 53n, 2n ** 63n, 2n ** 64n - 1n];

const latin = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, 'latin1'));

function spliced(bytes: Uint8Array, from: number, to: number, added: Uint8Array): Uint8Array {
  const out = new Uint8Array(bytes.length - (to - from) + added.length);
  out.set(bytes.subarray(0, from));
  out.set(added, from);
  out.set(bytes.subarray(to), from + added.length);
  return out;
}

/** A run of characters that `pattern` finds, replaced by one of `texts`, as long as it was half of the time. */
function replaced(draw: Draw, bytes: Uint8Array, pattern: RegExp, texts: readonly string[]): Uint8Array {
  const found = [...Buffer.from(bytes).toString('latin1').matchAll(pattern)];
  if (found.length === 0) return bytes;
  const { index, 0: run } = one(draw, found);
  const text = one(draw, texts);
  const fitted = draw(2) === 0 ? text : text.slice(0, run.length).padEnd(run.length);
  return spliced(bytes, index, index + run.length, latin(fitted));
}

function withSize(draw: Draw, bytes: Uint8Array): Uint8Array {
  const out = bytes.slice();
  const view = new DataView(out.buffer);
  const width = one(draw, [1, 2, 4, 8]);
  if (out.length < width) return out;
  const at = draw(out.length - width + 1);
  const isLittle = draw(3) > 0;
  if (width === 8) view.setBigUint64(at, one(draw, wide), isLittle);
  else if (width === 4) view.setUint32(at, Number(one(draw, words)), isLittle);
  else if (width === 2) view.setUint16(at, Number(one(draw, words) & 0xffffn), isLittle);
  else out[at] = Number(one(draw, words) & 0xffn);
  return out;
}

const mutations: readonly ((draw: Draw, bytes: Uint8Array) => Uint8Array)[] = [
  (draw, bytes) => {
    const at = draw(bytes.length);
    return bytes.with(at, bytes[at]! ^ (1 << draw(8)));
  },
  (draw, bytes) => bytes.with(draw(bytes.length), draw(256)),
  (draw, bytes) => bytes.slice(0, draw(bytes.length + 1)),
  (draw, bytes) => {
    const from = draw(bytes.length);
    const to = Math.min(bytes.length, from + 1 + draw(one(draw, [8, 64, 512])));
    const at = draw(bytes.length);
    return spliced(bytes, at, at, bytes.subarray(from, to));
  },
  (draw, bytes) => {
    const from = draw(bytes.length);
    return spliced(bytes, from, Math.min(bytes.length, from + 1 + draw(16)), new Uint8Array());
  },
  withSize,
  withSize,
  (draw, bytes) => replaced(draw, bytes, /-?\d+/g, numbers),
  (draw, bytes) => replaced(draw, bytes, /[A-Za-z_./]{2,}/g, names),
];

/** Something else, by one to three changes. */
export function mutated(draw: Draw, bytes: Uint8Array): Uint8Array {
  let out = bytes;
  for (let left = 1 + draw(3); left > 0 && out.length > 0; left--) out = one(draw, mutations)(draw, out);
  return out;
}

/** The same of a text. */
export function mutatedText(draw: Draw, text: string): string {
  return Buffer.from(mutated(draw, latin(text))).toString('latin1');
}
