// Ensembles of trees: the attributes of three operators as forests, and what becomes of their votes.

import { SinterError } from '../../../errors.ts';
import * as sn from '../../../operations/index.ts';
import type { Tensor } from '../../../tensor/tensor.ts';
import type { Call, Rows } from '../../call.ts';
import { hasDoubles } from '../../element.ts';
import { Value } from '../../value.ts';
import { row } from '../row.ts';
import {
  gathered,
  modes,
  type Aggregate,
  type Branch,
  type Forest,
  type ForestLeaf,
  type ForestNode,
} from './forest.ts';
import { classLabels, labelled, type LabelList } from './labels.ts';
import { bothScores, postTransform, transformed, type PostTransform } from './scores.ts';

/** Floats of an attribute, which may be a tensor of another name. */
function numbersOf({ attributes }: Call, name: string): readonly number[] | undefined {
  const other = `${name}_as_tensor`;
  if (!attributes.has(other)) return attributes.floats(name);
  return Array.from((attributes.tensor(other)?.array.data ?? []) as ArrayLike<number>, Number);
}

/** Features as floats, in f64 where they come so and a device has it. */
function inputOf(call: Call): Tensor {
  const x = call.tensor(0);
  const wide = sn.cast(x, x.dtype === 'f64' && hasDoubles() ? 'f64' : 'f32');
  return wide.rank === 1 ? sn.reshape(wide, [1, wide.size]) : wide;
}

/** The forest of the operators whose nodes have ids within their trees. */
function forestOf(call: Call, kind: 'class' | 'target'): Forest {
  const { attributes } = call;
  const ints = (name: string): number[] => attributes.ints(name) ?? [];
  const [trees, ids] = [ints('nodes_treeids'), ints('nodes_nodeids')];
  const names = attributes.strings('nodes_modes') ?? [];
  const [features, yes, no, nans] = [
    ints('nodes_featureids'),
    ints('nodes_truenodeids'),
    ints('nodes_falsenodeids'),
    ints('nodes_missing_value_tracks_true'),
  ] as [number[], number[], number[], number[]];
  const values = numbersOf(call, 'nodes_values') ?? [];
  const at = new Map(trees.map((tree, i) => [`${tree}:${ids[i]}`, i]));
  const placeOf = (tree: number | undefined, id: number | undefined): number => {
    const place = at.get(`${tree}:${id}`);
    if (place === undefined) throw new SinterError('E_FORMAT', `tree ${tree} has no node ${id}`);
    return place;
  };
  const nodes = trees.map((tree, i): ForestNode => {
    const name = (names[i] ?? '').replace(/^BRANCH_/, '');
    if (name === 'LEAF') return { votes: [] };
    const mode = modes.find((one) => one === name);
    if (mode === undefined) throw new SinterError('E_VALUE', `no mode ${names[i]} of a node`);
    return {
      feature: features[i] ?? 0,
      value: values[i] ?? 0,
      mode,
      nanIsTrue: nans[i] === 1,
      yes: placeOf(tree, yes[i]),
      no: placeOf(tree, no[i]),
    };
  });
  const [voteTrees, voteNodes, voteIds] = [
    ints(`${kind}_treeids`),
    ints(`${kind}_nodeids`),
    ints(`${kind}_ids`),
  ];
  const weights = numbersOf(call, `${kind}_weights`) ?? [];
  voteIds.forEach((target, i) => {
    const node = nodes[placeOf(voteTrees[i], voteNodes[i])];
    if (node === undefined || !('votes' in node))
      throw new SinterError('E_FORMAT', `node ${voteNodes[i]} of tree ${voteTrees[i]} votes and is no leaf`);
    node.votes.push([target, weights[i] ?? 0]);
  });
  // A tree begins at the node that comes first.
  const roots = trees.flatMap((tree, i) => (trees.indexOf(tree) === i ? [i] : []));
  return { nodes, roots };
}

/** Sums with what they begin with. */
function based(sums: Tensor, base: readonly number[] | undefined): Tensor {
  if (base === undefined || base.length === 0) return sums;
  const width = sums.shape[1] ?? 0;
  if (base.length !== width && base.length !== 1)
    throw new SinterError('E_SHAPE', `${width} targets have ${base.length} base values`);
  return sn.add(sums, sn.tensor([...base], { dtype: sums.dtype }));
}

const aggregates = ['AVERAGE', 'SUM', 'MIN', 'MAX'] as const satisfies readonly Aggregate[];

function regressor(call: Call): Tensor {
  const { attributes } = call;
  const name = attributes.string('aggregate_function', 'SUM');
  const aggregate = aggregates.find((one) => one === name) ?? call.fail(`no aggregate_function ${name}`);
  const targets = attributes.int('n_targets', 1);
  const sums = gathered(forestOf(call, 'target'), inputOf(call), targets, aggregate);
  const whole = based(sums, numbersOf(call, 'base_values'));
  return sn.cast(transformed(whole, postTransform(attributes.string('post_transform', 'NONE'))), 'f32');
}

function classifier(call: Call): (Value | Tensor)[] {
  const { attributes } = call;
  const labels = classLabels(call, 'classlabels_strings', 'classlabels_int64s');
  if (labels === undefined) throw new SinterError('E_FORMAT', 'it has no labels of classes');
  const name = postTransform(attributes.string('post_transform', 'NONE'));
  const forest = forestOf(call, 'class');
  const voted = new Set(attributes.ints('class_ids') ?? []);
  const base = numbersOf(call, 'base_values');
  const { length } = labels.list;
  const x = inputOf(call);
  if (length === 2 && voted.size === 1)
    return binary(call, labels, { forest, x, name, base, voted: [...voted][0] ?? 0 });
  const scores = based(gathered(forest, x, length, 'SUM'), base);
  const best = sn.cast(sn.argmax(scores, 1), 'i32');
  return [labelled(labels, best), sn.cast(transformed(scores, name), 'f32')];
}

interface Binary {
  readonly forest: Forest;
  readonly x: Tensor;
  readonly name: PostTransform;
  readonly base: readonly number[] | undefined;
  /** The class that the leaves vote for. */
  readonly voted: number;
}

/** Two classes of which the leaves vote for one: its score tells that of the other. */
function binary(call: Call, labels: LabelList, { forest, x, name, base, voted }: Binary): (Value | Tensor)[] {
  const weights = numbersOf(call, 'class_weights') ?? [];
  const isShare = weights.every((weight) => weight >= 0);
  const nodes = forest.nodes.map((node) =>
    'votes' in node ? { votes: node.votes.map(([, weight]) => [0, weight] as const) } : node,
  );
  const sum = gathered({ nodes, roots: forest.roots }, x, 1, 'SUM');
  const score =
    base === undefined || base.length === 0 ? sum : sn.add(sum, base[base.length === 1 ? 0 : voted] ?? 0);
  const isSecond = sn.cast(sn.reshape(sn.gt(score, isShare ? 0.5 : 0), [score.shape[0] ?? 0]), 'i32');
  // Votes for the second class are its score; the first one then has none.
  const both =
    voted === 0
      ? bothScores(score, name, isShare)
      : transformed(sn.cat([sn.zerosLike(score), score], 1), name);
  return [labelled(labels, isSecond), sn.cast(both, 'f32')];
}

const transforms = ['NONE', 'SOFTMAX', 'LOGISTIC', 'SOFTMAX_ZERO', 'PROBIT'] as const;

/** The operator of opset 5: branches and leaves are lists of their own. */
function ensemble(call: Call): Tensor {
  const { attributes } = call;
  const ints = (name: string): number[] => attributes.ints(name) ?? [];
  const numbers = (name: string): number[] =>
    Array.from((attributes.tensor(name)?.array.data ?? []) as ArrayLike<number>, Number);
  const [splits, codes, weights] = [numbers('nodes_splits'), numbers('nodes_modes'), numbers('leaf_weights')];
  const targetIds = ints('leaf_targetids');
  const nans = ints('nodes_missing_value_tracks_true');
  const [features, yes, no, yesLeaf, noLeaf] = [
    'nodes_featureids',
    'nodes_truenodeids',
    'nodes_falsenodeids',
    'nodes_trueleafs',
    'nodes_falseleafs',
  ].map(ints) as [number[], number[], number[], number[], number[]];
  const leaf = (i: number): ForestLeaf => ({ votes: [[targetIds[i] ?? 0, weights[i] ?? 0]] });
  const nodes: ForestNode[] = [...splits.map(() => leaf(0)), ...weights.map((_, i) => leaf(i))];
  const place = (id: number, isAtLeaf: boolean): number => (isAtLeaf ? splits.length + id : id);
  const members = attributes.has('membership_values') ? numbers('membership_values') : [];
  let from = 0;
  splits.forEach((value, i) => {
    const common = { feature: features[i] ?? 0, nanIsTrue: nans[i] === 1 };
    const [onTrue, onFalse] = [place(yes[i] ?? 0, yesLeaf[i] === 1), place(no[i] ?? 0, noLeaf[i] === 1)];
    const mode = modes[codes[i] ?? 0];
    if (mode !== undefined) {
      nodes[i] = { ...common, value, mode, yes: onTrue, no: onFalse };
      return;
    }
    if (codes[i] !== 6) throw new SinterError('E_VALUE', `no mode ${codes[i]} of a node`);
    // One of a set: a row of nodes that ask for one value each.
    const rest = members.findIndex((item, at) => at >= from && Number.isNaN(item));
    const end = rest < 0 ? members.length : rest;
    let before: Branch | undefined;
    for (const item of members.slice(from, end)) {
      const node: Branch = { ...common, value: item, mode: 'EQ', yes: onTrue, no: onFalse };
      if (before === undefined) nodes[i] = node;
      else before.no = nodes.push(node) - 1;
      before = node;
    }
    if (before === undefined) throw new SinterError('E_FORMAT', `node ${i} asks for a member of no set`);
    from = end + 1;
  });
  const targets = attributes.int('n_targets', 1);
  const aggregate = aggregates[attributes.int('aggregate_function', 1)];
  const name = transforms[attributes.int('post_transform', 0)];
  if (aggregate === undefined || name === undefined)
    call.fail('no such aggregate_function or post_transform');
  const x = inputOf(call);
  const roots = ints('tree_roots');
  const sums = gathered({ nodes, roots }, x, targets, aggregate);
  return sn.cast(transformed(sums, name), call.tensor(0).dtype);
}

export const trees: Rows = {
  TreeEnsemble: row([5], ensemble),
  TreeEnsembleClassifier: row([1, 3, 5], classifier),
  TreeEnsembleRegressor: row([1, 3, 5], regressor),
};
