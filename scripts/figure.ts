// Draws docs/figures/softmax.svg: the graph that `softmax` records beside the one kernel that it becomes, both taken from the compiler.
// A colour is a sweep over the row: the operations on the left are computed by the lines of the same colour on the right.

import { parse } from '../src/ir/text/parse.ts';
import type { Node } from '../src/ir/graph.ts';
import { topological } from '../src/ir/graph.ts';
import { showType } from '../src/ir/infer.ts';
import { isView } from '../src/ir/ops.ts';
import { explainFor } from '../src/explain/explain.ts';
import { gpuTarget } from '../src/schedule/target.ts';
import * as sn from '../src/index.ts';

const colours = ['#6b7280', '#b45309', '#1d4ed8', '#15803d'];
const tints = ['#f3f4f6', '#fef3c7', '#dbeafe', '#dcfce7'];
const [lineHeight, charWidth] = [15, 6.05];
const graphWidth = 250;
const codeLeft = graphWidth + 34;
const top = 64;

/** The figure as SVG text. */
export function softmaxFigure(): string {
  const { graph, kernels } = explainFor(gpuTarget, (x: sn.Tensor) => x.softmax(), sn.zeros([512, 64]));
  const nodes = topological(parse(graph).outputs);
  const code = entryPoint(kernels[0]!.source);
  const width = Math.ceil(codeLeft + charWidth * Math.max(...code.map((line) => line.length)) + 24);
  const height = top + lineHeight * Math.max(code.length, 2.4 * nodes.length) + 24;
  const body = [
    `<rect width="${width}" height="${height}" rx="8" fill="#ffffff" stroke="#d1d5db"/>`,
    heading(20, `recorded: ${nodes.length - 1} operations`),
    heading(codeLeft, `generated: ${kernels.length} kernel`),
    ...drawGraph(nodes, height - top - 24),
    ...drawCode(code),
    text(
      20,
      height - 14,
      'Dashed: views and inputs; they become the indices of reads. A colour is one sweep over a row.',
      colours[0]!,
    ),
  ];
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="10">`,
    '  <title>The graph of softmax and the kernel that it becomes</title>',
    ...body.map((line) => `  ${line}`),
    '</svg>\n',
  ].join('\n');
}

function heading(x: number, text: string): string {
  return `<text x="${x}" y="34" font-size="13" font-weight="bold" fill="#111827">${text}</text>`;
}

/** Header comment and entry point, without bindings and the functions of the prelude; the signature on three lines. */
function entryPoint(source: string): string[] {
  const lines = source.trimEnd().split('\n');
  const header = lines.filter((line) => line.startsWith('//'));
  const body = lines.slice(lines.findIndex((line) => line.startsWith('@compute')));
  return [...header, '', ...body].flatMap((line) =>
    line.startsWith('fn ')
      ? line
          .replace('(@', '(\n    @')
          .replace(', @', ',\n    @')
          .replace(/\) \{$/, ',\n) {')
          .split('\n')
      : [line],
  );
}

/** Which sweep over the row computes a node: one more than the reductions it waits for; 0 for views and inputs. */
function sweepOf(node: Node, waits: ReadonlyMap<Node, number>): number {
  return node.op === 'parameter' || isView(node.op) ? 0 : 1 + waits.get(node)!;
}

function drawGraph(nodes: readonly Node[], space: number): string[] {
  const step = space / nodes.length;
  const waits = new Map<Node, number>();
  const rows = new Map(nodes.map((node, i) => [node, top + i * step]));
  const out: string[] = [];
  for (const node of nodes) {
    waits.set(
      node,
      Math.max(0, ...node.inputs.map((input) => waits.get(input)! + (input.op === 'reduce' ? 1 : 0))),
    );
    const sweep = sweepOf(node, waits);
    const y = rows.get(node)!;
    for (const input of node.inputs) {
      const from = rows.get(input)! + 24;
      // Neighbours are joined straight, others by a bow on the left.
      out.push(
        y - from < step
          ? arrow(`M130 ${round(from)} V${round(y - 2)}`)
          : arrow(`M60 ${round(from - 12)} C28 ${round(from + 12)} 28 ${round(y - 12)} 58 ${round(y + 10)}`),
      );
    }
    const name = node.op === 'reduce' ? `reduce ${node.attrs.monoid}` : node.op;
    const label = `${name}  ${showType(node)}`;
    out.push(
      `<rect x="60" y="${round(y)}" width="${graphWidth - 70}" height="24" rx="5" fill="${tints[sweep]}" stroke="${colours[sweep]}"${sweep === 0 ? ' stroke-dasharray="3 3"' : ''}/>`,
      text(70, y + 15.5, label, colours[sweep]!),
    );
  }
  return out;
}

function arrow(path: string): string {
  return `<path d="${path}" fill="none" stroke="#9ca3af"/>`;
}

/** A new sweep begins at an accumulator, or at a loop that has none. */
function drawCode(code: readonly string[]): string[] {
  let sweep = 0;
  let opened = false;
  return code.flatMap((line, i) => {
    const y = top + i * lineHeight;
    const starts = /^ {2}(var|for) /.exec(line)?.[1];
    if (starts === 'var' || (starts === 'for' && !opened)) sweep += 1;
    if (starts !== undefined) opened = starts === 'var';
    const shade = line.startsWith('  ') && sweep > 0 ? sweep : 0;
    const band =
      shade === 0
        ? []
        : [`<rect x="${codeLeft - 8}" y="${y}" width="4" height="${lineHeight}" fill="${colours[shade]}"/>`];
    const colour = line.startsWith('//') ? colours[0]! : shade === 0 ? '#111827' : colours[shade]!;
    return line === '' ? [] : [...band, text(codeLeft, y + 11, line, colour)];
  });
}

function text(x: number, y: number, content: string, colour: string): string {
  const escaped = content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  return `<text x="${x}" y="${round(y)}" fill="${colour}" xml:space="preserve">${escaped}</text>`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
