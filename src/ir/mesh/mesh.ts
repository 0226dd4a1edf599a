// A mesh: the processes that run one program together, as a grid with named axes. Collectives and
// layouts name axes of it. Nodes hold it as text, `data=2,model=4`; the first axis varies slowest, so the
// process of rank r stands at the C-order coordinates of r.

/** A grid of processes. */
export interface Mesh {
  /** The first varies slowest. */
  readonly axes: readonly MeshAxis[];
  /** Processes in all. */
  readonly size: number;
  /** `data=2,model=4`, as nodes hold it. */
  readonly text: string;
}

export interface MeshAxis {
  readonly name: string;
  readonly size: number;
}

/** The mesh of these axes. */
export function meshOf(axes: readonly MeshAxis[]): Mesh {
  return {
    axes,
    size: axes.reduce((product, { size }) => product * size, 1),
    text: axes.map(({ name, size }) => `${name}=${size}`).join(),
  };
}

const parsed = new Map<string, Mesh>();

/** The mesh that a text names; undefined where it names none. */
export function parseMesh(text: string): Mesh | undefined {
  const known = parsed.get(text);
  if (known !== undefined) return known;
  const axes = text.split(',').map((part) => {
    const [, name, size] = /^([A-Za-z_]\w*)=([1-9]\d*)$/.exec(part) ?? [];
    return { name: name ?? '', size: Number(size) };
  });
  const names = new Set(axes.map(({ name }) => name));
  if (names.has('') || names.size !== axes.length) return undefined;
  const mesh = meshOf(axes);
  parsed.set(text, mesh);
  return mesh;
}

/** The axes of a mesh that a text lists, `data,model`, in its order; undefined where one is no axis of it. */
export function axesNamed(mesh: Mesh, over: string): readonly MeshAxis[] | undefined {
  const names = over.split(',');
  if (new Set(names).size !== names.length) return undefined;
  const axes = names.flatMap((name) => mesh.axes.find((axis) => axis.name === name) ?? []);
  return axes.length === names.length ? axes : undefined;
}

/** Where a rank stands on each axis. */
export function coordinatesOf({ axes }: Mesh, rank: number): Map<string, number> {
  const coordinates = new Map<string, number>();
  let rest = rank;
  for (const { name, size } of axes.toReversed()) {
    coordinates.set(name, rest % size);
    rest = Math.floor(rest / size);
  }
  return coordinates;
}

/** The rank that stands there. */
export function rankAt({ axes }: Mesh, coordinates: ReadonlyMap<string, number>): number {
  return axes.reduce((rank, { name, size }) => rank * size + coordinates.get(name)!, 0);
}

/**
 * The ranks that a collective over these axes joins with `rank`: those that stand where it stands on all
 * other axes. In C-order of their coordinates along `over`, whose first axis varies slowest.
 */
export function groupOf(mesh: Mesh, over: readonly MeshAxis[], rank: number): readonly number[] {
  const own = coordinatesOf(mesh, rank);
  let places: readonly ReadonlyMap<string, number>[] = [own];
  for (const { name, size } of over)
    places = places.flatMap((place) => Array.from({ length: size }, (_, at) => new Map(place).set(name, at)));
  return places.map((place) => rankAt(mesh, place));
}

/** How many ranks a collective over these axes joins. */
export function groupSize(over: readonly MeshAxis[]): number {
  return over.reduce((product, { size }) => product * size, 1);
}
