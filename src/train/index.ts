// `sinter/train`: trainings as a whole.

import '../tensor/derivative/loaded.ts';

export {
  loadCheckpoint,
  saveCheckpoint,
  type CheckpointOptions,
  type CheckpointParts,
  type CheckpointTarget,
} from './checkpoint.ts';
