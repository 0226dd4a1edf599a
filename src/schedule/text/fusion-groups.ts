// What the scheduler decided, as text: the fusion groups with what they compute, read and store, and for
// each value in memory and each rejection the rule and its figures. Nodes are called as in the
// graph's text. This is a report; the kernels that follow from it are the level that is read back.

import type { Graph, Node } from '../../ir/graph.ts';
import { printIndex } from '../../ir/index-algebra/expr.ts';
import type { FusionGroup } from '../fusion/place.ts';
import type { KernelSchedule } from '../schedule.ts';
import { namesOf, type NameOf } from './print.ts';

/** The decisions behind a schedule. */
export function printFusionGroups(schedule: KernelSchedule, graph: Graph): string {
  const { fusion, storage, packs } = schedule;
  const name = namesOf(graph, packs);
  const { fusionGroups, order, places, refused, overflows } = fusion;
  const numbers = new Map(fusionGroups.map((fusionGroup, i) => [fusionGroup, i]));
  const lines = fusionGroups.flatMap((fusionGroup, i) => [
    ...fusionGroupLines(fusionGroup, i, name),
    `  stores ${list(storage.fusionGroupWrites.get(fusionGroup)?.keys() ?? [], name)}`,
    ...(storage.pieces.get(fusionGroup) ?? []).map(
      ({ part, whole, start }) => `  stores ${name(part)} in ${name(whole)} from ${start}`,
    ),
  ]);
  const free = order.filter((node) => places.get(node)?.kind === 'free' && !storage.stored.has(node));
  if (free.length > 0) lines.push(`computed by their readers: ${list(free, name)}`);
  if (storage.mapped.length > 0) lines.push(`in kernels of maps: ${list(storage.mapped, name)}`);
  for (const [node, kept] of storage.kept) lines.push(`${name(node)} is stored: ${ruleText(kept, name)}`);
  for (const [node, overflow] of overflows)
    lines.push(`${name(node)} is not inline: ${ruleText(overflow, name)}`);
  for (const [node, all] of refused)
    for (const { fusionGroup, rejection } of all)
      lines.push(
        `${name(node)} is not in fusionGroup ${numbers.get(fusionGroup) ?? '?'}: ${ruleText(rejection, name)}`,
      );
  return lines.map((line) => `${line.trimEnd()}\n`).join('');
}

function fusionGroupLines(fusionGroup: FusionGroup, number: number, name: NameOf): string[] {
  const { kind, axes, fusionRoots, members, hosted, reads } = fusionGroup;
  const sizes = Object.values(axes).map((axis) => `${axis.name}[${axis.extent}]`);
  const computed = Array.from(members, ([node, at]) => {
    const how = fusionRoots.includes(node) ? ' fusion root' : hosted.has(node) ? ' free' : '';
    return `  ${name(node)} at [${at.map(printIndex).join(', ')}]${how}`;
  });
  return [
    `fusionGroup ${number} ${kind} over ${sizes.join(', ')}`,
    ...computed,
    `  reads ${list(reads, name)}`,
  ];
}

function list(nodes: Iterable<Node>, name: NameOf): string {
  return Array.from(nodes, name).join(', ');
}

/** `cost {again: 3.2, stored: 1.1, kernels: 2}`, with nodes by their names. */
function ruleText({ rule, ...figures }: { readonly rule: string }, name: NameOf): string {
  const parts = Object.entries(figures as Readonly<Record<string, unknown>>).map(([field, value]) => {
    const isNode = typeof value === 'object' && value !== null && 'attrs' in value;
    return `${field}: ${isNode ? name(value as unknown as Node) : String(value)}`;
  });
  return parts.length === 0 ? rule : `${rule} {${parts.join(', ')}}`;
}
