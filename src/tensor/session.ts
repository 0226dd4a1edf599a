// Session: all state of the tensor layer that outlives a call. There is one by default; `withSession`
// runs code in another one, which has its own device, generator, modes and pending values. A session
// starts with the defaults, so a test that makes its own neither sees nor disturbs the others.
//
// Modes are fields here. Everything else is a `SessionPart`: the module that owns it declares its type and how
// it starts, and a session makes it when it is first needed, so that a page has only the parts that it
// uses:
//
//   what is recorded         handle/recorded.ts
//   the random generator     generator.ts           the device and its queue    device.ts
//   compiled structures      evaluate/cache.ts      programs for many sizes     sizes/pending.ts
//   values given up          handle/memory.ts       checks of elements          debug.ts
//   the profile being taken  report/spans.ts        anomaly detection           anomaly.ts
//   the check being made     evaluate/execute.ts    what devices do otherwise   workarounds/adjusting.ts
//   who hears of compilations                                                   report/compiles.ts
//
// Tensors may go from one session to another. What they wait for is computed where it is read.

export class Session {
  static #made = 0;
  /** Which of the sessions made so far it is. */
  readonly number: number = Session.#made++;
  /** The dtype of products inside of `autocast`. */
  autocast: 'f16' | 'bf16' | undefined = undefined;
  matmulPrecision: 'f32' | 'tf32' = 'f32';
  /** Sizes that vary from call to call get one program. */
  autoDims = true;
  /** The state of each part that has been needed, by the part's number. */
  readonly parts: unknown[] = [];

  constructor() {
    const held = new WeakRef(this);
    living.add(held);
    collected.register(this, held);
  }
}

const living = new Set<WeakRef<Session>>();
const collected = new FinalizationRegistry<WeakRef<Session>>((held) => living.delete(held));

/**
 * The session that code runs in. In an object that nothing else replaces: until a program calls
 * `withSession`, the engine may take the default session for a constant, as fast as variables are.
 */
const scope = { current: new Session() };

/** The session that code runs in. */
export function currentSession(): Session {
  return scope.current;
}

/** All sessions that something still refers to. */
export function sessions(): Session[] {
  return [...living].flatMap((held) => held.deref() ?? []);
}

/**
 * Runs `fn` in a session. Where `fn` is asynchronous, what follows its first `await` runs in the
 * session around it; the reads and runs that it has begun stay in this one.
 */
export function withSession<T>(session: Session, fn: () => T): T {
  const before = scope.current;
  scope.current = session;
  try {
    return fn();
  } finally {
    scope.current = before;
  }
}

/** State of one module that each session has for itself, made when the session first needs it. */
export class SessionPart<T extends object> {
  static #made = 0;
  readonly #number: number = SessionPart.#made++;
  readonly #fresh: () => T;

  /** `fresh` makes the state that a session starts with. */
  constructor(fresh: () => T) {
    this.#fresh = fresh;
  }

  /** That of the current session. */
  get current(): T {
    return this.of(scope.current);
  }

  of({ parts }: Session): T {
    // Only this part writes at its number.
    return (parts[this.#number] ??= this.#fresh()) as T;
  }
}
