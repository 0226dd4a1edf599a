// The page of an explanation, as text: complete, self-contained, and drawn so that nothing lies on anything else.

import { describe, expect, test } from 'vitest';
import { explain } from '../src/explain/explain.ts';
import { explanationPage } from '../src/explain/index.ts';
import { drawKernels, drawNodes } from '../src/explain/layout.ts';
import type { Box, Drawing } from '../src/explain/rows.ts';
import { colouredWgsl, escapeText } from '../src/explain/markup.ts';
import * as sn from '../src/index.ts';
import type { Explained } from '../src/index.ts';
import { workloads } from '../src/workloads/all.ts';

function explained(name: string): Explained {
  const { fn, args } = workloads.find((workload) => workload.name === name)!;
  return explain(fn, ...args());
}

const small = explain((x: sn.Tensor, y: sn.Tensor) => x.mul(y).add(1), sn.zeros([64, 32]), sn.zeros([32]));
const block = explained('gptBlockForward');

describe('the page', () => {
  test.each([
    ['one kernel', small],
    ['a transformer block', block],
    ['nothing to compute', explain((x: sn.Tensor) => x, sn.zeros([2]))],
  ])('of %s is complete and loads nothing', (_, shown) => {
    const page = explanationPage(shown, { title: 'a <title>' });
    expect(page).toContain('<title>a &lt;title&gt;</title>');
    // Links lead within the page; nothing is fetched.
    const links = [...page.matchAll(/\b(?:src|href|action|data|poster)="([^"]*)"/g)].map(([, to]) => to!);
    expect(links.filter((to) => !to.startsWith('#'))).toEqual([]);
    expect(page).not.toMatch(/<(?:link|img|iframe|object|embed)|@import|url\((?!#)|https?:|import\(|fetch\(/);
    for (const [i, kernel] of shown.kernels.entries()) {
      expect(page).toContain(`id="kernel-${i}"`);
      expect(page.split(`data-kernel="${i}"`)).toHaveLength(4);
      expect(page).toContain(escapeText(kernel.schedule));
    }
    const ids = [...page.matchAll(/\bid="([^"]*)"/g)].map(([, id]) => id!);
    expect(ids).toEqual([...new Set(ids)]);
    for (const to of new Set(links)) expect(ids).toContain(to.slice(1));
  });

  test('has every reason, in words', () => {
    const page = explanationPage(block);
    const plain = page.replaceAll(/<[^>]*>/g, '');
    for (const { apart, kept } of block.fusionDiagnostics) {
      for (const { text } of apart) expect(plain).toContain(escapeText(text));
      if (kept !== undefined) expect(plain).toContain(escapeText(kept.text));
    }
  });
});

describe('sources are coloured', () => {
  test('and lose no character', () => {
    for (const { source } of block.kernels) {
      const coloured = colouredWgsl(source);
      expect(coloured.replaceAll(/<\/?span[^>]*>/g, '')).toBe(escapeText(source));
    }
  });

  test('word by word', () => {
    expect(colouredWgsl('@compute fn f(x: vec4f) -> f32 { return max(x.y, 0x1fu) * 2.5e-3; } // a<b')).toBe(
      '<span class="a">@compute</span> <span class="k">fn</span> <span class="f">f</span>(x: <span class="t">vec4f</span>) -&gt; ' +
        '<span class="t">f32</span> { <span class="k">return</span> <span class="f">max</span>(x.y, <span class="n">0x1fu</span>) * ' +
        '<span class="n">2.5e-3</span>; } <span class="c">// a&lt;b</span>',
    );
  });
});

function apart(a: Box, b: Box): boolean {
  return a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y;
}

function expectApart(boxes: readonly Box[]): void {
  boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b) => expect(apart(a, b)).toBe(true)));
}

/** Every value that one kernel writes and another reads, once a reader. */
function passages({ kernels }: Explained): string[] {
  return kernels.flatMap(({ reads }, to) =>
    reads.flatMap(({ node }) => {
      const from = kernels.findIndex(({ writes }) => writes.some((write) => write.node === node));
      return from < 0 || from === to ? [] : [`${from} ${to} ${node}`];
    }),
  );
}

function drawn({ edges }: Drawing): string[] {
  return edges.flatMap(({ from, to, values }) => values.map((value) => `${from} ${to} ${value}`));
}

describe.each([
  ['one kernel', small],
  ['attention', explained('attention')],
  ['a transformer block', block],
])('the drawings of %s', (_, shown) => {
  test.each([
    ['cards', drawKernels(shown)],
    ['boxes of nodes', drawNodes(shown)],
  ])('as %s have every kernel and every value between kernels, and room for each', (__, drawing) => {
    expect(drawing.kernels).toHaveLength(shown.kernels.length);
    expectApart(drawing.kernels);
    for (const box of drawing.kernels) {
      expect(Math.min(box.x, box.y)).toBeGreaterThanOrEqual(0);
      expect(box.x + box.width).toBeLessThanOrEqual(drawing.width);
      expect(box.y + box.height).toBeLessThanOrEqual(drawing.height);
    }
    expect(drawn(drawing).sort()).toEqual(passages(shown).sort());
    for (const { from, to, points } of drawing.edges) {
      const [above, below] = [drawing.kernels[from]!, drawing.kernels[to]!];
      expect(points.at(0)!.y).toBeLessThanOrEqual(above.y + above.height);
      expect(points.at(0)!.y).toBeGreaterThanOrEqual(above.y);
      expect(points.at(-1)!.y).toBeLessThanOrEqual(below.y + below.height);
      expect(points.at(-1)!.y).toBeGreaterThanOrEqual(below.y);
    }
  });

  test('have every node in the box of the kernel that computes or reads it', () => {
    const { kernels } = drawNodes(shown);
    for (const [i, box] of kernels.entries()) {
      const kernel = shown.kernels[i]!;
      expectApart(box.nodes);
      for (const node of box.nodes) {
        expect(node.x).toBeGreaterThanOrEqual(box.x);
        expect(node.x + node.width).toBeLessThanOrEqual(box.x + box.width);
        expect(node.y).toBeGreaterThan(box.y);
        expect(node.y + node.height).toBeLessThanOrEqual(box.y + box.height);
      }
      const of = (...roles: string[]): number[] =>
        box.nodes.filter(({ role }) => roles.includes(role)).map(({ node }) => node);
      expect(of('read').sort()).toEqual(kernel.reads.map(({ node }) => node).sort());
      const written = box.nodes.filter((node) => node.written).map(({ node }) => node);
      expect(written.sort()).toEqual(kernel.writes.map(({ node }) => node).sort());
      // What is missing are constants, which stand in the text of what uses them.
      const computed = [...kernel.prologue, ...kernel.body, ...kernel.epilogue];
      const missing = computed.filter((node) => !of('prologue', 'body', 'epilogue').includes(node));
      for (const node of missing)
        expect(['constant', 'broadcast', 'reshape']).toContain(shown.nodes[node]!.op);
    }
  });
});

test('a kernel of hundreds of nodes is drawn as far as its first results, and says so', () => {
  const chains = (x: sn.Tensor): sn.Tensor[] =>
    Array.from({ length: 5 }, (_, i) => {
      let y = x.add(i + 0.5);
      for (let k = 0; k < 60; k++) y = y.exp();
      return y;
    });
  const shown = explain(chains, sn.zeros([64]));
  expect(shown.kernels).toHaveLength(1);
  const [kernel] = shown.kernels;
  const [box] = drawNodes(shown).kernels;
  expect(box!.nodes.length).toBeGreaterThan(60);
  expect(box!.nodes.length).toBeLessThanOrEqual(160);
  expectApart(box!.nodes);
  const plain = kernel!.body.filter((node) => !['constant', 'broadcast'].includes(shown.nodes[node]!.op));
  expect(box!.nodes.length + box!.omitted).toBe(plain.length + kernel!.reads.length);
  const page = explanationPage(shown);
  expect(page).toContain(`and ${box!.omitted} more nodes`);
  expect(page).toContain('<li>and 260 more</li>');
  expect(shown.toText({ details: true })).toContain('and 260 more');
});
