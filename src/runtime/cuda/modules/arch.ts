// Names of what CUDA C is compiled for: machine code for GPUs (`sm_80`), PTX that the driver
// compiles for them (`compute_80`), and either for one kind of GPU alone, with what only that has
// (`sm_90a`).

export interface ArchName {
  readonly isVirtual: boolean;
  /** 80 for compute capability 8.0. */
  readonly capability: number;
  readonly isAlone: boolean;
}

/** The parts of a name; undefined where it is none. */
export function archNamed(name: string): ArchName | undefined {
  const [, kind, digits, alone] = /^(sm|compute)_(\d{2,3})(a?)$/.exec(name) ?? [];
  if (kind === undefined) return undefined;
  return { isVirtual: kind === 'compute', capability: Number(digits), isAlone: alone === 'a' };
}

/**
 * Of what was compiled for several kinds of GPUs, what this one runs: machine code before PTX, the
 * newest first.
 */
export function runnable<Image extends { readonly arch: string }>(
  images: readonly Image[],
  capability: number,
): Image[] {
  const rank = ({ arch }: Image): number => {
    const named = archNamed(arch);
    return (named?.capability ?? 0) + (named?.isVirtual === true ? 0 : 1000);
  };
  return images.filter(({ arch }) => runsOn(arch, capability)).sort((a, b) => rank(b) - rank(a));
}

/** Whether a GPU of this compute capability runs what was compiled for `name`. */
export function runsOn(name: string, capability: number): boolean {
  const arch = archNamed(name);
  if (arch === undefined || capability < arch.capability) return false;
  if (arch.isAlone) return capability === arch.capability;
  // Machine code is for one generation, from its own member on.
  return arch.isVirtual || Math.floor(capability / 10) === Math.floor(arch.capability / 10);
}

/** The GPUs that run what was compiled for `name`, in words. */
export function gpusOf(name: string): string {
  const arch = archNamed(name);
  if (arch === undefined) return name;
  const words = `compute capability ${(arch.capability / 10).toFixed(1)}`;
  if (arch.isAlone) return `${words} alone`;
  return `${words} and ${arch.isVirtual ? 'later' : 'later ones of its generation'}`;
}
