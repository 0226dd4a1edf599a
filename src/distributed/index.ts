// `sinter/distributed`: programs over several processes: the ranks, and what moves bytes between them.

export { join, type Engine, type JoinOptions, type World } from './world.ts';
export type {
  CollectiveAction,
  CollectiveCall,
  CollectiveMonoid,
  Communicator,
} from '../runtime/communicator.ts';
