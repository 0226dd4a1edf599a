// The collectives of what is written for one process, as reports list them.

import { siblingKey } from '../ir/control/iterate.ts';
import { collectiveOf, nodeBytes, topological, type Node } from '../ir/graph.ts';
import { showType } from '../ir/infer.ts';
import { axesNamed, groupSize, parseMesh } from '../ir/mesh/mesh.ts';
import { isView } from '../ir/ops.ts';
import { graphOf } from '../ir/text/region.ts';
import { bytesSent } from './cost.ts';
import type { CollectiveUse } from './use.ts';

/**
 * The collectives that a node is, or that a loop has in all its iterations. Results of one loop are nodes of their own:
 * `loops` has those that are known.
 */
export function meetingsOf(node: Node, loops: Set<string>, why: string): readonly CollectiveUse[] {
  const meeting = collectiveOf(node);
  if (meeting !== undefined) {
    const { op: kind, attrs, inputs } = meeting;
    const axes = axesNamed(parseMesh(attrs.mesh)!, attrs.over)!;
    const [ranks, over] = [groupSize(axes), axes.map(({ name }) => name)];
    const larger = kind === 'allGather' ? node : inputs[0]!;
    const whole = nodeBytes(larger);
    const bytes = bytesSent(kind, ranks, whole);
    return [{ kind, over, ranks, value: showType(inputs[0]!), whole, bytes, why }];
  }
  if (node.op !== 'iterate' || loops.has(siblingKey(node))) return [];
  loops.add(siblingKey(node));
  const { body, trips } = node.attrs;
  const within = new Set<string>();
  return topological(graphOf(body).outputs).flatMap((each) =>
    meetingsOf(each, within, `${why}, in ${trips} iterations`).map((use) => ({
      ...use,
      whole: trips * use.whole,
      bytes: trips * use.bytes,
    })),
  );
}

/** The collective, or the loop of collectives, that a value comes from by views. */
export function meetingBehind(node: Node): Node {
  let at = node;
  while (isView(at.op)) at = at.inputs[0]!;
  return at;
}
