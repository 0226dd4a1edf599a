// Asks the garbage collector to run, where the engine lets us: handles that a program has dropped
// hold memory that the collector does not count.

/** A function that runs the garbage collector, where the engine lets us have one. */
export function collector(): (() => void) | undefined {
  const exposed = (globalThis as { gc?: () => void }).gc;
  if (exposed !== undefined) return () => exposed();
  const builtin = globalThis.process?.getBuiltinModule;
  const v8 = builtin?.('node:v8');
  const vm = builtin?.('node:vm');
  if (v8 === undefined || vm === undefined) return undefined;
  let collect: (() => void) | undefined;
  return () => {
    if (collect === undefined) {
      v8.setFlagsFromString('--expose-gc');
      collect = vm.runInNewContext('gc') as () => void;
    }
    collect();
  };
}
