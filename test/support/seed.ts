// Runs before every test file: properties that name no seed of their own draw from the run's.

import * as fc from 'fast-check';

import { seed } from './property.ts';

fc.configureGlobal({ seed });
