// Runs in a worker thread and watches the main one with V8's debugger: pauses it where the functions of a walk begin, and notes who
// called. Takes the hops as worker data; answers `ready`, and when it is told `end`, what it has seen.

import { Session, type Debugger } from 'node:inspector';
import { parentPort, workerData } from 'node:worker_threads';

/** A function that the walk passes: by its name and file, and the place of the hop that calls it in the list. */
export interface Hop {
  readonly name: string;
  readonly file: string;
  readonly parent?: number | undefined;
}

/** What became of a hop: reached, or the callers that were seen instead. */
export interface Sight {
  readonly reached: boolean;
  readonly callers: readonly string[];
}

/** The messages of the worker. */
export type Message =
  | { readonly kind: 'ready' }
  | { readonly kind: 'lost'; readonly hop: Hop; readonly why: string }
  | { readonly kind: 'seen'; readonly sights: readonly Sight[] };

const port = parentPort!;
const { hops, home } = workerData as { readonly hops: readonly Hop[]; readonly home: string };
const answer = (message: Message): void => port.postMessage(message);
const key = ({ name, file }: Pick<Hop, 'name' | 'file'>): string => `${name} ${file}`;

const session = new Session();
/** Path below `home` of each script, and the other way round. */
const paths = new Map<string, string>();
const scripts = new Map<string, string>();
const breakpoints = new Map<string, string>();
const functions = new Map<string, string>();
let next = 0;
const callers = hops.map(() => new Set<string>());

port.on('message', () => {
  const sights = hops.map((_, i): Sight => ({ reached: i < next, callers: [...callers[i]!] }));
  answer({ kind: 'seen', sights });
  session.disconnect();
  port.close();
});

session.connectToMainThread();
session.on('Debugger.scriptParsed', ({ params }) => {
  if (!params.url.startsWith(home)) return;
  const path = params.url.slice(home.length).replace(/\?.*$/, '');
  paths.set(params.scriptId, path);
  scripts.set(path, params.scriptId);
});
session.on('Debugger.paused', ({ params }) => {
  const at = functions.get(params.hitBreakpoints?.[0] ?? '');
  const hop = hops[next];
  if (hop !== undefined && at === key(hop)) {
    const caller = callerIn(params.callFrames);
    callers[next]!.add(caller);
    const parent = hop.parent === undefined ? 'the program' : key(hops[hop.parent]!);
    if (caller === parent) advance();
  }
  session.post('Debugger.resume');
});

/** The innermost function of ours with a name that is on the stack below the one that begins. */
function callerIn([, ...frames]: readonly Debugger.CallFrame[]): string {
  for (const { functionName, location } of frames) {
    const file = paths.get(location.scriptId);
    if (file !== undefined && functionName !== '') return key({ name: functionName, file });
  }
  return 'the program';
}

/** The hop is reached; a function that comes no more is not waited for. */
function advance(): void {
  const done = key(hops[next]!);
  next += 1;
  if (hops.slice(next).some((hop) => key(hop) === done)) return;
  session.post('Debugger.removeBreakpoint', { breakpointId: breakpoints.get(done)! });
}

function post<T>(method: string, params: object = {}): Promise<T> {
  return new Promise((resolve, reject) => {
    session.post(method, params, (error, result) => (error === null ? resolve(result as T) : reject(error)));
  });
}

/** Where the body of a function begins in the text of its file: a declaration, a method, or a function under a name. */
function bodyOf(text: string, name: string): number | undefined {
  const list = '\\((?:[^()]|\\((?:[^()]|\\([^()]*\\))*\\))*\\)';
  const forms = [
    `(?:function |async |[,;{}]\\s*)${name}${list}\\s*\\{`,
    `[\\s,{(]${name}(?::|\\s*=)\\s*(?:\\/\\*[^*]*\\*\\/\\s*)?(?:__name\\()?(?:async )?(?:\\w+|${list})\\s*=>\\s*\\{?`,
  ];
  for (const form of forms) {
    const found = new RegExp(form).exec(text);
    if (found !== null) return found.index + found[0].length;
  }
  return undefined;
}

async function pauseAt(hop: Hop): Promise<void> {
  const scriptId = scripts.get(hop.file);
  if (scriptId === undefined) return answer({ kind: 'lost', hop, why: 'the file was not loaded' });
  const { scriptSource } = await post<Debugger.GetScriptSourceReturnType>('Debugger.getScriptSource', {
    scriptId,
  });
  const at = bodyOf(scriptSource, hop.name);
  if (at === undefined) return answer({ kind: 'lost', hop, why: 'the file has no such function' });
  const before = scriptSource.slice(0, at).split('\n');
  const location = { scriptId, lineNumber: before.length - 1, columnNumber: before.at(-1)!.length };
  const { breakpointId } = await post<Debugger.SetBreakpointReturnType>('Debugger.setBreakpoint', {
    location,
  });
  breakpoints.set(key(hop), breakpointId);
  functions.set(breakpointId, key(hop));
}

await post('Debugger.enable');
for (const hop of hops) if (!breakpoints.has(key(hop))) await pauseAt(hop);
answer({ kind: 'ready' });
