// What the scheduler decided, as text: the clusters with what they compute, read and store, and for
// each value in memory and each refusal the rule and its figures. Nodes are called as in the
// graph's text. This is a report; the kernels that follow from it are the level that is read back.

import type { Graph, Node } from '../../ir/graph.ts';
import { printIndex } from '../../ir/index-algebra/expr.ts';
import type { Cluster } from '../cluster/place.ts';
import type { KernelSchedule } from '../schedule.ts';
import { namesOf, type NameOf } from './print.ts';

/** The decisions behind a schedule. */
export function printClusters(schedule: KernelSchedule, graph: Graph): string {
  const { clustering, storage, packs } = schedule;
  const name = namesOf(graph, packs);
  const { clusters, order, places, refused, overflows } = clustering;
  const numbers = new Map(clusters.map((cluster, i) => [cluster, i]));
  const lines = clusters.flatMap((cluster, i) => [
    ...clusterLines(cluster, i, name),
    `  stores ${list(storage.clusterWrites.get(cluster)?.keys() ?? [], name)}`,
    ...(storage.pieces.get(cluster) ?? []).map(
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
    for (const { cluster, refusal } of all)
      lines.push(
        `${name(node)} is not in cluster ${numbers.get(cluster) ?? '?'}: ${ruleText(refusal, name)}`,
      );
  return lines.map((line) => `${line.trimEnd()}\n`).join('');
}

function clusterLines(cluster: Cluster, number: number, name: NameOf): string[] {
  const { kind, axes, anchors, members, hosted, reads } = cluster;
  const sizes = Object.values(axes).map((axis) => `${axis.name}[${axis.extent}]`);
  const computed = Array.from(members, ([node, at]) => {
    const how = anchors.includes(node) ? ' anchor' : hosted.has(node) ? ' free' : '';
    return `  ${name(node)} at [${at.map(printIndex).join(', ')}]${how}`;
  });
  return [`cluster ${number} ${kind} over ${sizes.join(', ')}`, ...computed, `  reads ${list(reads, name)}`];
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
