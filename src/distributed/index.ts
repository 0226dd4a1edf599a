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
export { explainParallel, type Communication } from './explain.ts';
export type { CollectiveUse } from '../sharding/partition.ts';
