// `sinter/distributed`: programs that several processes run together: the ranks and what moves bytes between them, and
// tensors that they hold together.

// Ranks
export { join, type Engine, type JoinOptions, type World } from './world.ts';
export type { Traffic } from './traffic.ts';
export type {
  CollectiveAction,
  CollectiveCall,
  CollectiveMonoid,
  Communicator,
} from '../runtime/communicator.ts';

// Meshes, and tensors that are split over them
export { mesh, type Spec } from './mesh.ts';
export type { Mesh } from '../ir/mesh/mesh.ts';
export { shard, gather, fromPart, localPart, layoutOf } from './shard.ts';

// What is written for one process
export {
  shardMap,
  allReduce,
  allGather,
  reduceScatter,
  allToAll,
  permuteRanks,
  broadcastRank,
  rankIndex,
  type MeshAxes,
  type TreeSpec,
} from './shard-map.ts';

export { ringAttention, unzigzag, zigzag, type RingAttentionOptions } from './ring-attention.ts';
export {
  pipelined,
  type PipelineOptions,
  type StagedGradient,
  type StagedModel,
  type StagedParams,
} from './pipeline.ts';

// Plans for whole models
export { shardTree, fullySharded, byName, firstOf, statePlan, type ShardPlan } from './parallel.ts';

// Checkpoints
export { saveSharded, type SaveShardedOptions } from './checkpoint/save.ts';
export {
  findSharded,
  loadSharded,
  type LoadedSharded,
  type LoadShardedOptions,
  type ShardedContents,
} from './checkpoint/load.ts';

// What is sent
export { explainParallel, type ArgumentPlans } from './explain.ts';
export type { Communication, HeldValue, Sharding } from '../sharding/report.ts';
export type { TimedCollective } from '../sharding/time.ts';
export type { CollectiveUse } from '../sharding/use.ts';
