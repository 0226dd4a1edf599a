// `sinter/distributed`: programs that several processes run together.

// Meshes, and tensors that are split over them
export { mesh, type Mesh, type Spec } from './mesh.ts';
export { shard, gather, fromPart, localPart, layoutOf } from './shard.ts';

// Plans for whole models
export { shardTree, fullySharded, byName, firstOf, statePlan, type Plan } from './parallel.ts';

// What is sent
export { explainParallel, type Communication, type CollectiveUse } from './explain.ts';
