// How machine code is read: blocks, loops and routines of a snippet in the form in which nvdisasm prints them, the pipes of
// instructions, loads under way, what ptxas says, how often loops turn, and the occupancy rule on figures of NVIDIA's calculator.

import { expect, test } from 'vitest';
import { bytesOf, loadsInFlight, readCode } from '../../scripts/sass/assembly.ts';
import { regressions, type CodeRow } from '../../scripts/sass/figures.ts';
import { countLoop } from '../../scripts/sass/loops.ts';
import { clocksOf, machines, workgroupsHeld } from '../../scripts/sass/machines.ts';
import { timesOf } from '../../scripts/sass/model.ts';
import { pipeOf } from '../../scripts/sass/pipes.ts';
import { factsOf } from '../../scripts/sass/tools.ts';

/** A kernel with a loop in a loop, a division, and what follows it in a listing. */
const listing = `
//--------------------- .text.other --------------------------
	.section	.text.other,"ax",@progbits
other:
.text.other:
        /*0000*/                   EXIT ;
//--------------------- .text.sums --------------------------
	.section	.text.sums,"ax",@progbits
        .global         sums
sums:
.text.sums:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/                   S2R R13, SR_TID.X ;
.L_x_1:
        /*0020*/                   MOV R9, RZ ;
.L_x_0:
        /*0030*/                   LDG.E.128.CONSTANT R4, desc[UR6][R2.64] ;
        /*0040*/                   LDG.E.64 R16, desc[UR6][R2.64+0x10] ;
        /*0050*/                   FFMA R9, R16, R16, R9 ;
        /*0060*/                   FFMA R9, R4, R7, R9 ;
        /*0070*/               @P0 BRA \`(.L_x_0) ;
        /*0080*/                   ISETP.GT.AND P1, PT, R0, R1, PT ;
        /*0090*/                   BRA P1, \`(.L_x_1) ;
        /*00a0*/              @!P2 BRA \`(.L_x_2) ;
        /*00b0*/                   MOV R4, 0xd0 ;
        /*00c0*/                   CALL.REL.NOINC \`($__internal_0_$__cuda_sm20_div_f32) ;
.L_x_2:
        /*00d0*/                   STG.E desc[UR6][R2.64], R9 ;
        /*00e0*/                   EXIT ;
        .weak           $__internal_0_$__cuda_sm20_div_f32
$__internal_0_$__cuda_sm20_div_f32:
        /*00f0*/                   MUFU.RCP R7, R10 ;
        /*0100*/                   RET.REL.NODEC R2 \`(sums) ;
.L_x_9:
        /*0110*/                   BRA \`(.L_x_9);
`;

const namesOf = (code: ReturnType<typeof readCode>): readonly (readonly string[])[] =>
  code.regions.map(({ own }) => own.flatMap(({ instructions }) => instructions.map(({ name }) => name)));

test('loops are found by their back edges, and routines that a kernel calls are not its own', () => {
  const code = readCode(listing, 'sums');
  expect(code.regions.map(({ depth }) => depth)).toEqual([0, 2, 1]);
  expect(namesOf(code).toSorted((a, b) => a.length - b.length)).toEqual([
    ['MOV', 'ISETP', 'BRA'],
    ['LDG', 'LDG', 'FFMA', 'FFMA', 'BRA'],
    ['LDC', 'S2R', 'BRA', 'MOV', 'CALL', 'STG', 'EXIT'],
  ]);
  expect(code.calls).toBe(1);
  expect(code.regions[0]!.own.map(({ isRare }) => isRare)).toEqual([false, false, true, false]);
});

test('code of a kernel that is not there, and lines that are no instructions, are errors', () => {
  expect(() => readCode(listing, 'absent')).toThrow(/no code of absent/);
  expect(() => readCode(listing.replace('MOV R9, RZ ;', '??? ;'), 'sums')).toThrow(/not an instruction/);
});

test('loads are under way until a later one is used', () => {
  const { regions } = readCode(listing, 'sums');
  const inner = regions.find(({ depth }) => depth === 2)!;
  // The use of the second waits for both.
  expect(loadsInFlight(inner.own, true)).toEqual({ loads: 2, bytes: 24 });
  const apart = listing.replace('LDG.E.64 R16, desc[UR6][R2.64+0x10]', 'LDG.E.64 R16, desc[UR6][R4.64]');
  const waiting = readCode(apart, 'sums').regions.find(({ depth }) => depth === 2)!;
  expect(loadsInFlight(waiting.own, true)).toEqual({ loads: 1, bytes: 16 });
});

test('loops turn as often as the counts of the Loop ask for', () => {
  const { counts } = countLoop({
    name: 'sums',
    kind: 'map',
    header: [],
    buffers: [],
    usesScalars: false,
    grid: [1, 1, 1],
    workgroup: [32, 1, 1],
    body: [],
  });
  const code = readCode(listing, 'sums');
  const depths = code.regions.map(({ depth }) => depth);
  const turning = timesOf(code, { ...counts, fma: 50 });
  expect(turning[depths.indexOf(2)]).toBe(25);
  expect(turning[depths.indexOf(1)]).toBe(1);
  // Without products, the bytes that are loaded decide.
  expect(timesOf(code, { ...counts, loadBytes: 240 })[depths.indexOf(2)]).toBe(10);
});

test('instructions have pipes, bytes and clocks', () => {
  const pipes = 'HMMA FFMA IMAD LOP3 MUFU LDG BAR UIADD3 DFMA'.split(' ').map(pipeOf);
  expect(pipes).toEqual('tensor fma fma alu xu lsu control uniform double'.split(' '));
  expect(() => pipeOf('XYZZY')).toThrow(/no pipe is known of XYZZY/);
  const of = (opcode: string): { name: string; opcode: string; operands: string; guarded: boolean } => ({
    name: opcode.split('.')[0]!,
    opcode,
    operands: '',
    guarded: false,
  });
  const widths = ['LDG.E.128.CONSTANT', 'LDG.E.U16', 'LDS.64', 'STG.E', 'LDSM.16.MT88.4', 'LDG.E.U8'];
  expect(widths.map((opcode) => bytesOf(of(opcode)))).toEqual([16, 2, 8, 4, 16, 1]);
  const [h100, a100] = [machines.sm_90a, machines.sm_80];
  // 64 × 256 × 16 products by four quarters of 512; 16 × 8 × 16 by one of 256.
  expect(clocksOf(of('HGMMA.64x256x16.F32.BF16'), h100)).toBe(128);
  expect(clocksOf(of('HMMA.16816.F32.BF16'), a100)).toBe(8);
  expect(clocksOf(of('HMMA.1688.F32.TF32'), a100)).toBe(8);
  expect(['FFMA', 'MUFU.EX2', 'LDS.128'].map((opcode) => clocksOf(of(opcode), h100))).toEqual([1, 8, 16]);
});

test('what ptxas says of a kernel', () => {
  const log =
    '    8 bytes stack frame, 12 bytes spill stores, 4 bytes spill loads\n' +
    'ptxas info    : Used 40 registers, used 1 barriers, 2048 bytes smem, 400 bytes cmem[0]\n';
  expect(factsOf(log)).toEqual({ registers: 40, spills: 12, staticShared: 2048 });
  expect(() => factsOf('nothing')).toThrow(/did not say/);
});

test.each([
  [{ threads: 64, registers: 22, shared: 0 }, 32],
  [{ threads: 256, registers: 32, shared: 0 }, 8],
  [{ threads: 256, registers: 128, shared: 0 }, 2],
  [{ threads: 256, registers: 255, shared: 0 }, 1],
  // 168 registers are 5,376 of a warp, of which three fit a quarter.
  [{ threads: 384, registers: 168, shared: 0 }, 1],
  [{ threads: 128, registers: 32, shared: 49_152 }, 4],
  [{ threads: 1024, registers: 64, shared: 0 }, 1],
] as const)('a multiprocessor of an H100 holds workgroups of %o: %d', (footprint, held) => {
  expect(workgroupsHeld(footprint, machines.sm_90a)).toBe(held);
});

test('regressions are told, and nothing else is', () => {
  const row = { kernel: 'k', spills: 0, divisions: 2, held: 4, share: 0.8 } as CodeRow;
  expect(regressions([row], [{ ...row, share: 0.77, held: 5, divisions: 1 }])).toEqual([]);
  const worse = { ...row, spills: 8, divisions: 3, held: 3, share: 0.7 };
  expect(regressions([row], [worse])).toHaveLength(4);
  expect(regressions([row], [{ ...row, kernel: 'other' }])).toEqual(['its kernels are other, and were k']);
});
