// Threads of this process, where the system lists them: those of a device come and go with it.

import { existsSync, readdirSync } from 'node:fs';

const tasks = '/proc/self/task';

/** What the system calls the threads of this process by; undefined where it has no such list. */
export function threadIds(): readonly string[] | undefined {
  return existsSync(tasks) ? readdirSync(tasks) : undefined;
}
