// Which pipe of a multiprocessor executes an instruction of machine code, by NVIDIA's list of instructions (CUDA Binary
// Utilities) and the pipes that Nsight Compute's documentation names.

/** `control` and `uniform` take an issue slot, and no pipe that this model limits. */
export type Pipe = 'tensor' | 'fma' | 'alu' | 'xu' | 'double' | 'lsu' | 'uniform' | 'control';

const names: Readonly<Record<Exclude<Pipe, 'uniform'>, string>> = {
  tensor: 'HMMA IMMA DMMA BMMA QMMA HGMMA IGMMA QGMMA BGMMA',
  fma: 'FFMA FMUL FADD FFMA32I FADD32I FMUL32I IMAD IMAD32I IMUL HFMA2 HADD2 HMUL2 IDP IDP4A HFMA2_32I HMUL2_32I HADD2_32I',
  alu:
    'IADD3 IADD VIADD IADD32I LOP3 LOP PLOP3 SHF SHL SHR LEA ISETP FSETP FSET ISET FSEL SEL FMNMX IMNMX VIMNMX VIMNMX3 VIADDMNMX ' +
    'PRMT MOV MOV32I IABS SGXT BMSK P2R R2P PSETP F2FP I2FP HSET2 HSETP2 HMNMX2 VABSDIFF VABSDIFF4 FMNMX3 VHMNMX',
  xu: 'MUFU F2F F2I I2F FRND POPC FLO BREV FCHK I2I',
  double: 'DADD DMUL DFMA DSETP DMNMX',
  lsu:
    'LDG STG LDS STS LDSM STSM LDL STL LD ST ATOM ATOMG ATOMS RED LDGSTS SHFL LDC REDUX MATCH SYNCS UTMALDG UTMASTG UTMAPF UBLKCP ' +
    'UTMACCTL UTMACMDFLUSH ARRIVES CCTL CCTLL',
  control:
    'BRA EXIT BAR BSSY BSYNC BREAK WARPSYNC DEPBAR LDGDEPBAR CALL RET NOP YIELD MEMBAR ERRBAR FENCE ELECT ACQBULK WARPGROUP ' +
    'WARPGROUPSET S2R CS2R NANOSLEEP BRX JMP JMX BPT KILL PMTRIG VOTE LEPC BMOV USETMAXREG WARPGROUPDEPBAR GETLMEMBASE B2R R2B DEPBAR_ALL',
};

const pipes: ReadonlyMap<string, Pipe> = new Map(
  (Object.entries(names) as [Pipe, string][]).flatMap(([pipe, list]) =>
    list.split(' ').map((name) => [name, pipe] as const),
  ),
);

/** The pipe of an instruction by its name without modifiers. Throws at one that is not known. */
export function pipeOf(name: string): Pipe {
  const known = pipes.get(name);
  if (known !== undefined) return known;
  if (name.startsWith('U') || name === 'R2UR' || name === 'S2UR' || name === 'VOTEU' || name === 'CS2UR')
    return 'uniform';
  throw new Error(`no pipe is known of ${name}\n  try: add it to scripts/sass/pipes.ts`);
}
