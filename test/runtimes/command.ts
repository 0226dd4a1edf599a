// The smoke program as a command, for runtimes like Node: `command.js RUNTIME DEVICES TARGETS BUNDLE` prints the report as JSON.

import { close } from '../../src/index.ts';
import { smoke, type Load } from './smoke.ts';

const [runtime = '', names = '', targets = '', bundle = ''] = process.argv.slice(2);
const listed = (text: string): string[] => text.split(',').filter((name) => name !== '');
const { load } = (await import(bundle)) as { load: Load };
const report = await smoke({ runtime, devices: listed(names), targets: listed(targets) }, load);
console.log(JSON.stringify(report));
await close();
