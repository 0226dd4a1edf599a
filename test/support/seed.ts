// Runs before every test file: properties that name no seed of their own draw from the run's, and so do tensors of random numbers and
// the values of generated code's tests. Each test draws from the beginning, so that what it sees does not depend on which tests ran
// before it in the worker.

import * as fc from 'fast-check';
import { beforeEach } from 'vitest';

import { manualSeed } from '../../src/tensor/generator.ts';
import { restartValues } from '../codegen/values.ts';
import { seed } from './property.ts';

fc.configureGlobal({ seed });

function restart(): void {
  manualSeed(seed);
  restartValues();
}

restart();
beforeEach(restart);
