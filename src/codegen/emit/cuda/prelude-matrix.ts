// Prelude functions for matrix units and asynchronous copies (cp.async): thin wrappers of PTX, and
// the conversions from vectors in generated code to the registers that PTX takes.

import type { MatrixType } from '../../loop/loop.ts';

/** What one multiplication takes. */
const shapeOf = (type: MatrixType): string => (type === 'tf32' ? 'm16n8k8' : 'm16n8k16');

/** A function that disappears into its callers. */
export const inline = (signature: string, ...lines: readonly string[]): string =>
  `__device__ __forceinline__ ${signature} {\n${lines.map((line) => (line.startsWith('#') ? line : `  ${line}`)).join('\n')}\n}`;

/** Text for device compilers only; a build for the host (SINTER_HOST) supplies its own. */
export const device = (text: string): string => `#ifndef SINTER_HOST\n${text}\n#endif`;

const rows = (transposed: boolean): string => {
  const name = `ldmatrix_x4${transposed ? '_trans' : ''}`;
  return device(
    inline(
      `void ${name}(unsigned (&r)[4], const void *row)`,
      `asm volatile("ldmatrix.sync.aligned.m8n8.x4${transposed ? '.trans' : ''}.shared.b16 {%0, %1, %2, %3}, [%4];"`,
      '             : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(row)) : "memory");',
    ),
  );
};

const products = (type: MatrixType): string => {
  const shape = shapeOf(type);
  return device(
    inline(
      `void mma_${shape}_${type}(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2])`,
      `asm volatile("mma.sync.aligned.${shape}.row.col.f32.${type}.${type}.f32 "`,
      '             "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"',
      '             : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])',
      '             : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));',
    ),
  );
};

const loadMatrix = (transposed: boolean): string => {
  const suffix = transposed ? '_trans' : '';
  return inline(
    `uint4 load_matrix${suffix}(const void *row)`,
    'unsigned r[4];',
    `ldmatrix_x4${suffix}(r, row);`,
    'return uint4{r[0], r[1], r[2], r[3]};',
  );
};

const multiply = (type: MatrixType): string =>
  inline(
    `void multiply_${type}(float4 &sum, uint4 lhs, uint2 rhs)`,
    'float d[4] = {sum.x, sum.y, sum.z, sum.w};',
    'const unsigned a[4] = {lhs.x, lhs.y, lhs.z, lhs.w};',
    'const unsigned b[2] = {rhs.x, rhs.y};',
    `mma_${shapeOf(type)}_${type}(d, a, b);`,
    'sum = float4{d[0], d[1], d[2], d[3]};',
  );

/** Text by name. */
export const matrixFunctions: Readonly<Record<string, string>> = {
  shared_address: device(
    inline(
      'unsigned shared_address(const void *at)',
      'return static_cast<unsigned>(__cvta_generic_to_shared(at));',
    ),
  ),
  ldmatrix_x4: rows(false),
  ldmatrix_x4_trans: rows(true),
  load_matrix: loadMatrix(false),
  load_matrix_trans: loadMatrix(true),
  mma_m16n8k16_f16: products('f16'),
  mma_m16n8k16_bf16: products('bf16'),
  mma_m16n8k8_tf32: products('tf32'),
  multiply_f16: multiply('f16'),
  multiply_bf16: multiply('bf16'),
  multiply_tf32: multiply('tf32'),
  // To the nearest, ties away from zero; infinities and NaN stay.
  round_tf32: inline(
    'float round_tf32(float x)',
    'unsigned bits = __float_as_uint(x);',
    '#ifndef SINTER_HOST',
    'asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));',
    '#else',
    'if ((bits & 0x7f800000u) != 0x7f800000u) bits = (bits + 0x1000u) & 0xffffe000u;',
    '#endif',
    'return __uint_as_float(bits);',
  ),
  // The first `valid` bytes of 16, zeros behind them.
  cp_async16: device(
    inline(
      'void cp_async16(void *shared, const void *source, int valid)',
      'asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"',
      '             :: "r"(shared_address(shared)), "l"(source), "r"(valid) : "memory");',
    ),
  ),
  cp_async_commit: device(
    inline('void cp_async_commit()', 'asm volatile("cp.async.commit_group;" ::: "memory");'),
  ),
  cp_async_wait: device(
    `template <int groups>\n${inline(
      'void cp_async_wait()',
      'asm volatile("cp.async.wait_group %0;" :: "n"(groups) : "memory");',
    )}`,
  ),
};
