// What is published means what was compiled: declarations that are joined in one file a room (scripts/slim/declarations.ts, on a
// small package), and code that is indented by tabs (scripts/slim/slim.ts).

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { joinDeclarations } from '../../scripts/slim/declarations.ts';
import { withTabs } from '../../scripts/slim/slim.ts';
import { root } from './source.ts';

/** The package: each file is a way in which joining could go wrong. */
const files: Readonly<Record<string, string>> = {
  'index.d.ts': `
import type { Leaf } from './parts/shape.ts';
export * from './parts/shape.ts';
export * from './parts/again.ts';
export { size as width } from './parts/size.ts';
export { event } from './parts/event.ts';
export { type Event as Happening, failed } from './parts/names.ts';
export * as whole from './parts/whole.ts';
export { kind, at } from './parts/sort.ts';
export { near } from './parts/deep/near.ts';
export declare function leaf(): Leaf;
export declare const late: import('./parts/size.ts').Size;
`,
  'base.d.ts': `
export declare class Node { readonly children: readonly Node[]; }
export type Name = string;
`,
  // Imports a class under its own name; extends it.
  'parts/shape.d.ts': `
import { Node } from '../base.ts';
/** A leaf. */
export declare class Leaf extends Node { readonly size: Size; readonly [tag]: 1; }
import type { Size } from './size.ts';
import { tag } from './size.ts';
`,
  'parts/size.d.ts': `
import { Node as Tree } from '../base.ts';
/** How many. */
export interface Size { readonly of: Tree; readonly count: number; }
export declare const tag: unique symbol;
export declare function size(of: string): number;
export declare function size(of: Tree): Size;
export {};
`,
  // Means something else by a name that another file has.
  'parts/sort.d.ts': `
import type { Name as Size } from '../base.ts';
export declare const kind: Size;
interface Leaf { readonly other: true; }
export declare const at: Leaf;
export {};
`,
  // Declares what the next one takes from the platform.
  'parts/event.d.ts': `
export declare const event: Error;
`,
  'parts/names.d.ts': `
export interface Event { readonly at: number; }
interface Error { readonly mine: true; }
export declare const failed: Error;
export {};
`,
  'parts/whole.d.ts': `
export declare const only: 1;
`,
  'parts/again.d.ts': `
export { only as alone } from './whole.ts';
import type { Node } from '../base.ts';
export { Node as Kind };
`,
  // Takes a name of its own room under another one; is in a folder of the room.
  'parts/deep/near.d.ts': `
import { type Size as Count } from '../size.ts';
import type { Hidden } from '../unused.ts';
export declare const near: Count;
export declare const unused: Hidden;
`,
  'parts/unused.d.ts': `
export interface Hidden { readonly unused: 1; }
`,
};

const program = `
import * as all from './index.js';
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends (<T>() => T extends B ? 1 : 2) ? true : false;
const is = <T extends true>(): T => true as T;
is<Same<typeof all.kind, string>>();
all.at.other satisfies true;
is<Same<typeof all.event, Error>>();
is<Same<typeof all.late.count, number>>();
is<Same<ReturnType<typeof all.leaf>, all.Leaf>>();
all.leaf().children satisfies readonly object[];
is<Same<keyof typeof all.whole, 'only'>>();
is<Same<keyof typeof all, 'Leaf' | 'alone' | 'at' | 'event' | 'failed' | 'kind' | 'late' | 'leaf' | 'near' | 'whole' | 'width'>>();
all.width('x') satisfies number;
all.width(all.leaf()).of satisfies object;
is<Same<keyof all.Happening, 'at'>>();
is<Same<keyof typeof all.failed, 'mine'>>();
is<Same<all.Kind['children'], readonly all.Kind[]>>();
all.near.count satisfies number;
is<Same<typeof all.near, typeof all.late>>();
export type { Leaf } from './index.js';
`;

describe('joined declarations', () => {
  let folder: string;
  const at = (name: string): string => join(folder, name);

  const check = (): string => {
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    const options = ['--noEmit', '--strict', '--skipLibCheck', 'false', '--types', ''];
    const target = ['--target', 'es2022', '--lib', 'es2022', '--module', 'nodenext'];
    try {
      return execFileSync(process.execPath, [tsc, ...options, ...target, 'program.ts'], {
        cwd: folder,
        encoding: 'utf8',
      });
    } catch (error) {
      return (error as { readonly stdout: string }).stdout;
    }
  };

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'sinter-slim-'));
    for (const [name, text] of Object.entries({ ...files, 'program.ts': program })) {
      mkdirSync(dirname(at(name)), { recursive: true });
      writeFileSync(at(name), text.trimStart());
    }
    writeFileSync(at('package.json'), '{ "type": "module" }');
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test('mean what they meant', () => {
    expect(check()).toBe('');
    joinDeclarations(folder, [at('index.d.ts')]);
    expect(check()).toBe('');
  });

  test('are in one file a room, but for what means something else there', () => {
    const left = Object.keys(files).filter((name) => existsSync(at(name)));
    expect(left).toEqual(['index.d.ts', 'parts/sort.d.ts', 'parts/names.d.ts', 'parts/whole.d.ts']);
    const text = readFileSync(at('parts/declarations.d.ts'), 'utf8');
    expect(text).toContain('/** A leaf. */\nexport declare class Leaf');
    expect(text).not.toContain('unused');
  });
});

test('a branch of one statement stands behind its condition, but for lines inside of texts', () => {
  expect(withTabs('if (x)\n  return y;\nelse\n  for (const z of w)\n    z();\n')).toBe(
    'if (x) return y;\nelse for (const z of w) z();\n',
  );
  const text = 'f(`\nif (x)\n  return y;\n`);\n';
  expect(withTabs(text)).toBe(text);
});

test('code is indented by tabs, but for lines inside of texts', () => {
  const inside = '`\n  a ${\n  f({\n    b: `  c`\n  })}\n    d`';
  expect(withTabs(`if (x) {\n  y(\n      ${inside}\n    );\n}\n`)).toBe(
    `if (x) {\n\ty(\n\t\t\t${inside.replace('  f', '\tf').replace('    b', '\t\tb').replace('  })', '\t})')}\n\t\t);\n}\n`,
  );
});
