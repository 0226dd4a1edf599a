// What a collective of the graph is to the device that runs it: the action, and where its groups lie among the processes.

import { partType } from '../ir/dtype.ts';
import type { CollectiveNode } from '../ir/graph.ts';
import { axesNamed, parseMesh } from '../ir/mesh/mesh.ts';
import type { CollectiveAction, Meeting, RankGroups } from '../runtime/communicator.ts';

/** What processes do together at this node; parts of complex numbers are elements. */
export function meetingOf(node: CollectiveNode): Meeting {
  return { action: actionOf(node), dtype: partType(node.dtype), ...groupsOf(node.attrs) };
}

/** Where the groups along axes of a mesh lie. */
export function groupsOf(attrs: { readonly mesh: string; readonly over: string }): RankGroups {
  const mesh = parseMesh(attrs.mesh)!;
  const axes = axesNamed(mesh, attrs.over)!.map((axis) => {
    const behind = mesh.axes.slice(mesh.axes.indexOf(axis) + 1);
    return { size: axis.size, stride: behind.reduce((product, { size }) => product * size, 1) };
  });
  return { ranks: mesh.size, axes };
}

function actionOf(node: CollectiveNode): CollectiveAction {
  switch (node.op) {
    case 'allReduce':
    case 'reduceScatter':
      return { kind: node.op, monoid: node.attrs.monoid };
    case 'allGather':
    case 'allToAll':
      return { kind: node.op };
    case 'permuteRanks': {
      const { from, to } = node.attrs;
      return { kind: 'permute', pairs: from.map((place, i) => [place, to[i]!]) };
    }
    case 'broadcastRank':
      return { kind: 'broadcast', root: node.attrs.root };
  }
}
