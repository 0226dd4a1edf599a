// Runs before every test file: properties that name no seed of their own draw from the run's, and so do tensors of random
// numbers, so that no test compares other values in CI than it did when it was written.

import * as fc from 'fast-check';

import { manualSeed } from '../../src/tensor/generator.ts';
import { seed } from './property.ts';

fc.configureGlobal({ seed });
manualSeed(seed);
