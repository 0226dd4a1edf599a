// The texts of a bundle: `index.js` and `files.js`, types, and a README whose snippet runs as it is.

import { valueOf } from '../bundle-runtime/sizes.ts';
import { bundleArrays } from './arrays.ts';
import { uniqueName } from './names.ts';
import type {
  BundledImage,
  BundleTarget,
  BundleEntry,
  EntryInput,
  Manifest,
  OpenType,
  Sizes,
} from '../bundle-runtime/manifest.ts';

/** Where users import a bundle from. */
const script = './index.js';

/** `index.js`: the bundle runtime, under a line that says what it is. */
export function scriptOf({ producer }: Manifest, runtime: string): string {
  return `// Made by ${producer}; README.md shows how to use it.\n${runtime}`;
}

/** `files.js`: where the files lie that `index.js` reads, and the modules that it imports, in the words that bundlers of pages follow. */
export function filesOf(names: readonly string[], modules: readonly string[]): string {
  const files = names.map((name) => {
    const place = JSON.stringify(`./${name}`);
    return `  ${JSON.stringify(name)}: new URL(${place}, import.meta.url),\n`;
  });
  const imports = modules.map((name) => `  '${name}': () => ${importOf(name)},\n`);
  return `// Where the files of the bundle lie: bundlers of pages read these lines, and move the files along.
export const files = {\n${files.join('')}};
export const modules = {\n${imports.join('')}};\n`;
}

/** The import of a module beside; pages never come to that of CUDA's. */
function importOf(name: string): string {
  const place = `'./${name}'`;
  if (name !== 'cuda.js') return `import(${place})`;
  const ignored = '/* @vite-ignore */ /* webpackIgnore: true */';
  return `import(${ignored} new URL(${ignored} ${place}, import.meta.url).href)`;
}

/** `index.d.ts`. */
export function typesOf({ entries, weights }: Manifest, targets: readonly BundleTarget[]): string {
  const names = weights.map(({ name }) => JSON.stringify(name)).join(' | ') || 'never';
  const hasCuda = targets.includes('cuda');
  return `// Elements lie in rows; f16 and bf16 are given by their bits.

export interface LoadOptions {
  /** Which target; the first that works here by default: ${targets.join(', then ')}. */
  target?: ${targets.map((target) => `'${target}'`).join(' | ')};
  /** A device of your own, for webgpu (a GPUDevice); disposing of the model leaves it alone.${hasCuda ? ' Which GPU, for cuda; 0 by default.' : ''} */
${hasCuda ? '  device?: object | number;' : '  device?: object;'}
  /** Threads, for wasm; by default as many as there are cores, where memory can be shared. */
  threads?: number;
  /** The address of these files' folder, with a slash at its end; that of index.js by default. */
  base?: string | URL;
  /** Told of the bytes that have come; none by default. */
  onProgress?: (progress: Progress) => void;
  /** Ends the loading, with the signal's reason; none by default. */
  signal?: AbortSignal;
}

export interface Progress {
  readonly loadedBytes: number;
  readonly totalBytes: number;
  readonly compiledKernels: number;
  readonly totalKernels: number;
}

/** Elements, and their shape where sizes are open and the elements do not tell them. */
export type Sized<T> = T | { readonly data: T; readonly shape: readonly number[] };

export type WeightName = ${names};

export interface Model {
  readonly target: ${targets.map((target) => `'${target}'`).join(' | ')};
  /** What it runs on, in words. */
  readonly description: string;
${Object.entries(entries).map(methodOf).join('\n')}
  /** A weight as it is now. */
  weight(name: WeightName): Promise<ArrayBufferView>;
  /** The seed of random draws from now on. */
  seed(seed: number | bigint): void;
  /** Gives memory and threads back. */
  dispose(): void;
}

/** Fetches weights and compiles kernels, both at once; when it resolves, the first call costs what every call costs. */
export function load(options?: LoadOptions): Promise<Model>;
`;
}

/** `check.d.ts`. */
export function checkTypesOf(targets: readonly BundleTarget[]): string {
  return `// Checks the bundle on a device, kernel by kernel.

import type { LoadOptions } from '${script}';

export interface CheckOptions extends Pick<LoadOptions, 'target' | 'device' | 'threads' | 'base' | 'signal'> {
  /** Called with the number of kernels of a program that ran, and of all. */
  onProgress?: (done: number, total: number) => void;
}

/** A kernel beside what the interpreter computed when the bundle was built. */
export interface CheckedKernel {
  /** The function that it is of. */
  readonly program: string;
  readonly name: string;
  readonly kind: string;
  readonly schedule: string;
  /** How many kernels are like it; the first of them is compared. */
  readonly count: number;
  readonly reads: readonly string[];
  readonly writes: readonly string[];
  readonly verdict: 'right' | 'wrong' | 'failed';
  readonly difference?: {
    readonly wrong: number;
    readonly count: number;
    readonly at: readonly number[];
    readonly got: number;
    readonly expected: number;
  };
  readonly problem?: string;
}

/** What was found; its text says it. */
export interface BundleCheck {
  readonly device: ${targets.map((target) => `'${target}'`).join(' | ')};
  /** The adapter, as far as it says what it is. */
  readonly description: string;
  readonly kernels: readonly CheckedKernel[];
  /** Those that are not right. */
  readonly wrong: readonly CheckedKernel[];
  /** Kernels that were not compared, because they read what a wrong kernel wrote. */
  readonly skipped: number;
  /** Where kernels are wrong: which target of the bundle is right \`instead\`, if there is one. */
  readonly workarounds: { readonly entries: readonly { readonly instead?: ${targets.map((target) => `'${target}'`).join(' | ')} }[] } | undefined;
  toString(): string;
}

/** Runs every kernel on inputs of a seed, in memory of its own. */
export function check(options?: CheckOptions): Promise<BundleCheck>;
`;
}

function methodOf([name, entry]: [string, BundleEntry]): string {
  const { inputs, outputs } = entry;
  const given = inputs.map(
    (input) => `    /** ${remark(typeText(input))} */\n    ${key(input.name)}: ${inputArray(input)};`,
  );
  const got = outputs.map(
    (output) =>
      `    /** ${remark(shapeText(output))} */\n    ${key(output.name)}: ${bundleArrays[output.dtype].name};`,
  );
  return `${entry.built === undefined ? '' : `  /** Built for ${remark(entry.built)}. */\n`}  ${key(name)}(inputs: {\n${given.join('\n')}\n  }): Promise<{\n${got.join('\n')}\n  }>;`;
}

/** README.md. */
export function guideOf(
  { entries, weights, producer }: Manifest,
  title: string,
  targets: readonly BundleTarget[],
  files: ReadonlyMap<string, string | Uint8Array>,
): string {
  const [name, entry] = Object.entries(entries)[0]!;
  const sizes = [...files].map(([path, content]) => [path, byteLength(content)] as const);
  const sum = (test: (path: string) => boolean): string =>
    `${Math.ceil(sizes.reduce((total, [path, bytes]) => total + (test(path) ? bytes : 0), 0) / 1024)} KiB`;
  const inputs = entry.inputs.map((input) => `  ${key(input.name)}: ${exampleOf(input, sizesOf(entry))},`);
  const call = `await model${isWord(name) ? `.${name}` : `[${JSON.stringify(name)}]`}`;
  const variables = variablesFor(entry.outputs.map((output) => output.name));
  const hasCuda = targets.includes('cuda');
  const archs = new Set(
    Object.values(entries).flatMap(({ programs }) =>
      (programs.cuda ?? []).flatMap(({ images = [] }) => images),
    ),
  );
  const compiled = hasCuda ? `; CUDA's are compiled ${archsText([...archs])}` : '';
  const rows = Object.entries(entries).map(
    ([title, one]) =>
      `| ${code(title)} | ${one.inputs.map((input) => `${code(input.name)} ${plain(typeText(input))}`).join(', ')} | ${one.outputs
        .map((output) => `${code(output.name)} ${plain(shapeText(output))}`)
        .join(', ')} |`,
  );
  const open = Object.entries(entries).flatMap(([title, one]) => {
    return one.built === undefined ? [] : [`\n${code(title)} was built for ${plain(one.built)}.`];
  });
  const shapes =
    open.length === 0
      ? ''
      : `${open.join('')} Which of them a call is of, its elements tell by their number; where they do not, give\n\`{ data, shape }\`.\n`;
  const own = { cuda: 'CUDA', webgpu: 'WebGPU', wasm: 'WebAssembly' };
  const lazilyLoaded = targets
    .filter((target) => files.has(`${target}.js`))
    .map((target) => {
      const size = sum((path) => path === `${target}.js`);
      return `| \`${target}.js\` | what ${own[target]} needs besides (${size}); loaded where that is taken |\n`;
    })
    .join('');
  return `# ${title}

Made by ${producer}, for ${listed(targets)}. ${hasCuda ? 'CUDA runs in Node, by way of the package koffi (`npm install koffi`); else the' : 'The'} folder needs no package: serve it, or import it in Node 20 or newer.

\`\`\`js
import { load } from '${script}';

const model = await load();
const { ${[...variables].map(([output, variable]) => (output === variable ? output : `${key(output)}: ${variable}`)).join(', ')} } = ${call}({
${inputs.join('\n')}
});
console.log(${[...variables.values()][0] ?? ''});
model.dispose();
\`\`\`

| call | takes | gives |
| --- | --- | --- |
${rows.join('\n')}
${shapes}
| file | what it is |
| --- | --- |
| \`index.js\`, \`index.d.ts\` | the code (${sum((path) => path === 'index.js')}) and its types |
| \`files.js\` | where the other files lie, as bundlers of pages read it |
${lazilyLoaded}${files.has('sizes.js') ? '| `sizes.js` | what sizes within ranges need |\n' : ''}${files.has('check.js') ? "| `check.js`, `check.d.ts`, `check.json` | compare every kernel on a device with the interpreter: `import { check } from './check.js'` |\n" : ''}| \`program.json\` | calls, buffers and steps |
| \`kernels/\` | the kernels as they run (${sum((path) => path.startsWith('kernels/'))})${compiled} |
${weights.length === 0 ? '' : `| \`*.safetensors\` | ${weights.length} weights (${sum((path) => path.endsWith('.safetensors'))}) |\n`}${
    targets.includes('wasm')
      ? `
WebAssembly uses several threads where memory can be shared: in Node, and in pages served with
\`Cross-Origin-Opener-Policy: same-origin\` and \`Cross-Origin-Embedder-Policy: require-corp\`.
`
      : ''
  }`;
}

/** The GPUs that kernels are compiled for, and what happens on others. */
function archsText(images: readonly BundledImage[]): string {
  const archs = [...new Set(images.map(({ arch }) => arch))];
  const others = 'by NVRTC where they run';
  return archs.length === 0 ? others : `for ${listed(archs)}, for other GPUs ${others}`;
}

/** `a, b and c`. */
function listed(words: readonly string[]): string {
  return words.join(', ').replace(/, ([^,]*)$/, ' and $1');
}

/** package.json: what makes the folder a package, and lets installers say what is missing. */
export function packageOf(targets: readonly BundleTarget[]): string {
  const koffi = {
    peerDependencies: { koffi: '^3.3.4' },
    peerDependenciesMeta: { koffi: { optional: true } },
  };
  const all = {
    type: 'module',
    main: 'index.js',
    types: 'index.d.ts',
    ...(targets.includes('cuda') && koffi),
  };
  return `${JSON.stringify(all, null, 2)}\n`;
}

function byteLength(content: string | Uint8Array): number {
  return typeof content === 'string' ? new TextEncoder().encode(content).length : content.length;
}

function isWord(name: string): boolean {
  return /^[A-Za-z_$][\w$]*$/.test(name);
}

/** A name as a key of an object or a type; `__proto__: x` would set an object's prototype. */
function key(name: string): string {
  if (name === '__proto__') return '["__proto__"]';
  return isWord(name) ? name : JSON.stringify(name);
}

/**
 * Words that are no names of variables in a module, and what the snippet itself declares and calls.
 */
const taken: ReadonlySet<string> = new Set(
  (
    'arguments await break case catch class const continue debugger default delete do else enum eval export extends false finally ' +
    'for function if implements import in instanceof interface let new null package private protected public return static super ' +
    'switch this throw true try typeof undefined var void while with yield model load console'
  ).split(' '),
);

/** Variables for outputs, of their names where these can be: no two the same. */
function variablesFor(names: readonly string[]): ReadonlyMap<string, string> {
  const used = new Set([...taken, ...names]);
  return new Map(
    names.map((name) => [name, isWord(name) && !taken.has(name) ? name : uniqueName('value', used)]),
  );
}

/** Text in a comment, which must not end it. */
function remark(text: string): string {
  return oneLine(text).replaceAll('*/', '*\\/');
}

/** Text in one line. */
function oneLine(text: string): string {
  return text.replaceAll(/[\p{Cc}\u2028\u2029]/gu, (letter) => JSON.stringify(letter).slice(1, -1));
}

/** Text in a table of Markdown. */
function plain(text: string): string {
  return oneLine(text).replaceAll(/[\\`*_<>|#~&]/g, '\\$&');
}

/** A name in a table of Markdown, between more backticks than it has. */
function code(name: string): string {
  const fence = '`'.repeat(1 + Math.max(0, ...(name.match(/`+/g) ?? []).map(({ length }) => length)));
  const space = /^`|`$|^\s|\s$/.test(name) || name === '' ? ' ' : '';
  return `${fence}${space}${oneLine(name).replaceAll('|', '\\|')}${space}${fence}`;
}

function inputArray(input: EntryInput): string {
  if (input.kind === 'number') return 'number';
  const { dtype, shape } = input;
  const { name } = bundleArrays[dtype];
  const elements = /^[iu]/.test(dtype) ? `${name} | ArrayLike<number> | ArrayLike<bigint>` : name;
  return shape.some((size) => typeof size === 'string') ? `Sized<${elements}>` : elements;
}

function exampleOf(input: EntryInput, sizes: Sizes): string {
  if (input.kind === 'number') return '0.01';
  const shape = input.shape.map((size) => (typeof size === 'string' ? sizes[size]! : size));
  return `new ${bundleArrays[input.dtype].name}(${shape.reduce((size, extent) => size * extent, 1)})`;
}

function typeText(input: EntryInput): string {
  return input.kind === 'number' ? 'a number' : shapeText(input);
}

function shapeText({ dtype, shape }: OpenType): string {
  return `${dtype}[${shape.join(', ')}]`;
}

/** Sizes of a call of an entry. */
function sizesOf({ programs, derived = {} }: BundleEntry): Sizes {
  const { sizes } = Object.values(programs)[0]![0]!;
  const more = Object.entries(derived).map(([name, formula]) => [name, valueOf(formula, sizes)]);
  return { ...sizes, ...Object.fromEntries(more) };
}
