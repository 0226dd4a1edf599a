// A process of its own that asks for the software adapter and says what it got.

import { softwareAdapter } from '../../../src/runtime/webgpu/node.ts';

console.log((await softwareAdapter()).info.architecture);
