// `sinter/train`: trainings as a whole.

export {
  loadCheckpoint,
  saveCheckpoint,
  type CheckpointOptions,
  type CheckpointParts,
  type CheckpointTarget,
} from './checkpoint.ts';
