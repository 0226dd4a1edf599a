// A run as a CUDA graph: its operations as nodes that wait for those they depend on, so that a run
// is one call of the driver, and what is independent may run side by side. Addresses and scalars of
// a graph are updated in place; launches that are in flight keep the old ones.

import type { CudaContext } from './api/context.ts';
import type { Marshal, Single } from './api/marshal.ts';

/** For each operation the earlier ones that it must wait for. */
export type Dependencies = readonly (readonly number[])[];

export class CudaGraph {
  readonly #context: CudaContext;
  readonly #marshal: Marshal;
  #operations: readonly Single[];
  /** Handles of the nodes belong to the graph that the executable one was made from. */
  readonly #template: number;
  readonly #nodes: number[] = [];
  #exec = 0;
  /** Where the uploads of the next launch come from. */
  #source: number;

  /** `source` is the pinned memory that uploads copy from. */
  constructor(
    context: CudaContext,
    marshal: Marshal,
    operations: readonly Single[],
    dependencies: Dependencies,
    source: number,
  ) {
    this.#context = context;
    this.#marshal = marshal;
    this.#operations = operations;
    this.#source = source;
    const { cu, cell } = context.driver;
    context.check(cu.cuGraphCreate(cell.address, 0), 'cuGraphCreate', 'building a graph');
    this.#template = cell.number();
    context.owned.add(this);
    try {
      operations.forEach((operation, i) => this.#add(operation, dependencies[i]!));
      const result = cu.cuGraphInstantiateWithFlags(cell.address, this.#template, 0);
      context.check(result, 'cuGraphInstantiateWithFlags', `building a graph of ${operations.length} nodes`);
      this.#exec = cell.number();
    } catch (error) {
      this.destroy();
      throw error;
    }
  }

  /** Launches it once, its uploads from `source`. */
  launch(source: number): void {
    const { driver, stream } = this.#context;
    if (source !== this.#source) {
      this.#source = source;
      this.#operations.forEach((operation, i) => {
        if (operation.kind === 'upload') this.#change(operation, this.#nodes[i]!);
      });
    }
    const result = driver.cu.cuGraphLaunch(this.#exec, stream);
    if (result !== 0) throw this.#context.failure(result, 'cuGraphLaunch', 'queueing a run');
  }

  /** Replaces the operations from the next launch on; only addresses may differ. */
  update(operations: readonly Single[]): void {
    const before = this.#operations;
    this.#operations = operations;
    operations.forEach((operation, i) => {
      if (!isSame(operation, before[i]!)) this.#change(operation, this.#nodes[i]!);
    });
  }

  /** The context must be current. A launch in flight still completes. */
  destroy(): void {
    const { cu } = this.#context.driver;
    this.#context.owned.delete(this);
    if (this.#exec !== 0) cu.cuGraphExecDestroy(this.#exec);
    cu.cuGraphDestroy(this.#template);
  }

  #add(operation: Single, after: readonly number[]): void {
    const { driver, handle } = this.#context;
    const { cu, cell } = driver;
    const handles = new Uint8Array(BigUint64Array.from(after, (i) => BigInt(this.#nodes[i]!)).buffer);
    const marshal = this.#marshal;
    const graph = this.#template;
    const count = after.length;
    const at = cell.address;
    const doing = 'building a graph';
    switch (operation.kind) {
      case 'launch': {
        const node = marshal.kernel(operation);
        const result = cu.cuGraphAddKernelNode_v2(at, graph, handles, count, node);
        this.#context.check(result, 'cuGraphAddKernelNode_v2', doing, operation.kernel);
        break;
      }
      case 'copy':
      case 'upload': {
        const node = this.#copy(operation);
        const result = cu.cuGraphAddMemcpyNode(at, graph, handles, count, node, handle);
        this.#context.check(result, 'cuGraphAddMemcpyNode', doing);
        break;
      }
      case 'clear': {
        const node = marshal.clear(operation.at, operation.bytes);
        const result = cu.cuGraphAddMemsetNode(at, graph, handles, count, node, handle);
        this.#context.check(result, 'cuGraphAddMemsetNode', doing);
        break;
      }
      default:
        operation satisfies never;
    }
    this.#nodes.push(cell.number());
  }

  #change(operation: Single, node: number): void {
    const { driver, handle } = this.#context;
    const { cu } = driver;
    const exec = this.#exec;
    const doing = 'changing addresses in a graph';
    switch (operation.kind) {
      case 'launch': {
        const params = this.#marshal.kernel(operation);
        const result = cu.cuGraphExecKernelNodeSetParams_v2(exec, node, params);
        this.#context.check(result, 'cuGraphExecKernelNodeSetParams_v2', doing, operation.kernel);
        break;
      }
      case 'copy':
      case 'upload': {
        const result = cu.cuGraphExecMemcpyNodeSetParams(exec, node, this.#copy(operation), handle);
        this.#context.check(result, 'cuGraphExecMemcpyNodeSetParams', doing);
        break;
      }
      case 'clear': {
        const params = this.#marshal.clear(operation.at, operation.bytes);
        const result = cu.cuGraphExecMemsetNodeSetParams(exec, node, params, handle);
        this.#context.check(result, 'cuGraphExecMemsetNodeSetParams', doing);
        break;
      }
      default:
        operation satisfies never;
    }
  }

  #copy(operation: Extract<Single, { readonly kind: 'copy' | 'upload' }>): number {
    const { to, bytes } = operation;
    return operation.kind === 'copy'
      ? this.#marshal.copy(operation.from, to, bytes, false)
      : this.#marshal.copy(this.#source, to, bytes, true);
  }
}

/** Whether two operations of one place are the same. */
function isSame(one: Single, other: Single): boolean {
  switch (one.kind) {
    case 'launch':
      return other.kind === 'launch' && one.args.every((arg, i) => arg === other.args[i]);
    case 'copy':
      return other.kind === 'copy' && one.from === other.from && one.to === other.to;
    case 'clear':
      return other.kind === 'clear' && one.at === other.at;
    case 'upload':
      return other.kind === 'upload' && one.to === other.to;
    default:
      return one satisfies never;
  }
}
