// What a page has in place of open.ts (`browser` in package.json): no compiler, and no native device.

import type { Backend } from '../device.ts';

export const nativeBackends: readonly Backend[] = [];

export const nativeBackendOf = (_name: string): Backend | undefined => undefined;

export const isNativeUsual = false;
