// What a worker does: it loads the dataset and answers with the batches it is asked for. The
// function is sent to workers as text, as `stackItems` is: it uses its arguments and globals alone,
// and has no functions of its own that have names.

import type { stackItems, typedDType } from '../stacking.ts';
import type { WorkerAssignment, WorkerPort } from './message.ts';

/** Answers until the worker is ended. Failures are answers, so that the loader never waits in vain. */
export async function serveBatches(
  port: WorkerPort,
  { module, name, context }: WorkerAssignment,
  load: (module: string) => Promise<Readonly<Record<string, unknown>>>,
  stack: typeof stackItems,
  typed: typeof typedDType,
): Promise<void> {
  try {
    const loaded = await load(module);
    const found = loaded[name];
    if (found === undefined)
      throw new TypeError(
        `the module exports no '${name}': it has ${Object.keys(loaded).join(', ') || 'nothing'}`,
      );
    const dataset = (await (typeof found === 'function'
      ? (found as (given: unknown) => unknown)(context)
      : found)) as {
      readonly length: number;
      get(index: number): unknown;
    };
    if (typeof dataset !== 'object' || dataset === null || typeof dataset.get !== 'function')
      throw new TypeError(`'${name}' is no dataset, with length and get(index)`);
    port.receive(async ({ id: wanted, indices, raw }) => {
      try {
        const items = await Promise.all(indices.map((index) => dataset.get(index)));
        if (raw) return port.send({ id: wanted, items }, []);
        const buffers: ArrayBuffer[] = [];
        const batch = stack(
          items,
          '',
          (item) => {
            if (typeof (item as { requiresGrad?: unknown }).requiresGrad !== 'boolean') return false;
            throw new TypeError('an item holds a tensor, which stays in its thread: give typed arrays');
          },
          typed,
          buffers,
        );
        port.send({ id: wanted, batch }, buffers);
      } catch (error) {
        const {
          name: kind,
          message,
          stack: trace,
          code,
          stacking,
        } = Object(error) as Record<string, unknown>;
        port.send(
          {
            id: wanted,
            failure: {
              name: String(kind ?? 'Error'),
              message: String(message ?? error),
              stack: trace as string | undefined,
              code: code as string | undefined,
              stacking: stacking as string | undefined,
            },
          },
          [],
        );
      }
      return undefined;
    });
    port.send({ ready: dataset.length }, []);
  } catch (error) {
    // Who listens does not end by itself: what a thread of Node sends just before its end may be lost.
    port.receive(async () => undefined);
    const { name: kind, message, stack: trace, code } = Object(error) as Record<string, unknown>;
    port.send(
      {
        failure: {
          name: String(kind ?? 'Error'),
          message: String(message ?? error),
          stack: trace as string | undefined,
          code: code as string | undefined,
          stacking: undefined,
        },
      },
      [],
    );
  }
}
