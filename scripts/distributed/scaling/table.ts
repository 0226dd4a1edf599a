// Modelled steps of models that many GPUs train, and what each GPU needs for them.

import { collectiveOf, dims, topological } from '../../../src/ir/graph.ts';
import { meshOf, type Mesh } from '../../../src/ir/mesh/mesh.ts';
import { sizeOf } from '../../../src/ir/shape.ts';
import { bucketCollectives } from '../../../src/sharding/buckets.ts';
import { clusters } from '../../../src/sharding/cost.ts';
import type { Partitioned } from '../../../src/sharding/partition.ts';
import { table } from '../../../src/table.ts';
import {
  parallelWays,
  scaledProgram,
  tensorParts,
  vocabulary,
  type ParallelWay,
  type ScaledModel,
} from './program.ts';
import { overlappedTime, serialTime, tasksOf, type GpuModel, type StepTask } from './step.ts';

/** H100 SXM (NVIDIA's data sheet): 989 TFLOP/s dense in bf16, of which products are to reach half; 80 GB. */
export const h100: GpuModel = { arithmetic: 0.5 * 989e12, memory: 80e9, cluster: clusters.h100 };

/** Numbers of GPUs that the table has. */
export const gpuCounts: readonly number[] = [8, 32, 128, 1024];

/** One line of the table. */
export interface ScalingLine {
  readonly model: string;
  readonly way: ParallelWay;
  /** `data=4,model=8` */
  readonly mesh: string;
  readonly gpus: number;
  /** Seconds of a step with messages after the arithmetic, and beside it. */
  readonly serial: number;
  readonly overlapped: number;
  /** Seconds that a GPU alone takes for its share of the texts. */
  readonly ideal: number;
  /** Bytes that a GPU sends in a step. */
  readonly sent: number;
  /** Bytes of memory of a GPU. */
  readonly memory: number;
  /** Whether the GPU has so much. */
  readonly fits: boolean;
}

/** GPUs of the meshes that programs are made for; their other sizes are modelled from these. */
export const madeFor = 32;

/** The lines of a model. */
export function scalingOf(model: ScaledModel, counts: readonly number[] = gpuCounts): readonly ScalingLine[] {
  const ideal = serialTime(tasksOf(scaledProgram(model, 1, 'data').program, meshWith(1, 1), h100));
  return parallelWays.flatMap((way) => {
    const parts = way === 'tensor' ? tensorParts(model) : 1;
    if (way === 'tensor' && parts === 1) return [];
    const { program } = scaledProgram(model, madeFor, way);
    return counts.map((gpus) => {
      const mesh = meshWith(gpus / parts, parts);
      // So many GPUs wait longer for messages, so other collectives are joined.
      const { graph } = bucketCollectives(program.apart, h100.cluster, mesh);
      const tasks = tasksOf({ graph }, mesh, h100);
      const memory = memoryOf(model, way, program, gpus);
      return {
        model: model.name,
        way,
        mesh: (parts === 1 ? meshOf(mesh.axes.slice(0, 1)) : mesh).text,
        gpus,
        serial: serialTime(tasks),
        overlapped: overlappedTime(tasks),
        ideal,
        sent: tasks.reduce((sum: number, { sent }: StepTask) => sum + sent, 0),
        memory,
        fits: memory <= h100.memory,
      };
    });
  });
}

function meshWith(data: number, model: number): Mesh {
  return meshOf([
    { name: 'data', size: data },
    { name: 'model', size: model },
  ]);
}

/**
 * Bytes of a GPU: 16 for each weight that it has, in bf16 with its gradient, and in f32 with two moments (Rajbhandari et al., 2020); of
 * FSDP besides the weights that it has gathered, which the program keeps for the way back. Activations of each layer by the
 * formulas of Korthikanti et al. (2022) for attention that keeps no scores, and logits in f32 with their gradient.
 */
function memoryOf(model: ScaledModel, way: ParallelWay, { graph }: Partitioned, gpus: number): number {
  const { layers, width, context, texts } = model;
  const weights = graph.parameters
    .filter(({ dtype }) => dtype === 'bf16')
    .reduce((sum, node) => sum + sizeOf(dims(node)), 0);
  const held = way === 'fsdp' ? (weights * madeFor) / gpus : weights;
  const gathered = topological(graph.outputs)
    .filter((node) => collectiveOf(node)?.op === 'allGather')
    .reduce((sum, node) => sum + 2 * sizeOf(dims(node)), 0);
  // Tokens of a group that shares a layer, and in how many parts it has them.
  const parts = way === 'tensor' ? tensorParts(model) : 1;
  const tokens = texts * context * parts;
  const activations = layers * tokens * width * (10 + 24 / parts);
  return 16 * held + gathered + activations + (8 * tokens * vocabulary) / parts;
}

const milliseconds = (seconds: number): string => (1000 * seconds).toFixed(1);
const gigabytes = (bytes: number): string => (bytes / 1e9).toFixed(2);

/** The table of the documents. */
export function scalingText(lines: readonly ScalingLine[]): string {
  const head = ['model', 'way', 'mesh', 'ms', 'ideal', 'beside', 'ideal', 'sent', 'held'];
  const rows = lines.map((line) => [
    line.model,
    line.way,
    line.mesh,
    milliseconds(line.serial),
    `${((100 * line.ideal) / line.serial).toFixed(0)} %`,
    milliseconds(line.overlapped),
    `${((100 * line.ideal) / line.overlapped).toFixed(0)} %`,
    gigabytes(line.sent),
    `${gigabytes(line.memory)}${line.fits ? '' : ' !'}`,
  ]);
  return table(head, rows, [3, 4, 5, 6, 7, 8]);
}
