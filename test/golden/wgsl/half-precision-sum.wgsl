// map kernel; 1 x 4 elements per invocation
// in0: f16[64], in1: f16[64], out0: f16[64]
// 64 flops, 384 bytes

@group(0) @binding(0) var<storage, read> in0: array<u32, 34>;
@group(0) @binding(1) var<storage, read> in1: array<u32, 34>;
@group(0) @binding(2) var<storage, read_write> out0: array<u32, 34>;

fn unpack_f16(word: u32) -> vec2f { return unpack2x16float(word); }

fn nearest_f32x4(x: vec4f) -> vec4i {
  return bitcast<vec4i>(x + 12582912.0) - 0x4b400000;
}

fn with_sign_f32x4(size: vec4f, sign: vec4f) -> vec4f {
  return bitcast<vec4f>(bitcast<vec4u>(size) | (bitcast<vec4u>(sign) & vec4u(0x80000000u)));
}

fn round_f16_f32x4(x: vec4f) -> vec4f {
  let bits = bitcast<vec4i>(x) & vec4i(0x7fffffff);
  let normal = bitcast<vec4f>((bits + 0xfff + ((bits >> vec4u(13u)) & vec4i(1))) & vec4i(-8192));
  let subnormal = vec4f(nearest_f32x4(bitcast<vec4f>(bits) * 16777216.0)) * 5.9604644775390625e-8;
  let finite = select(normal, subnormal, bits < vec4i(0x38800000));
  let size = select(finite, bitcast<vec4f>(max(bits, vec4i(0x7f800000))), bits >= vec4i(0x477ff000));
  return with_sign_f32x4(size, x);
}

fn nearest_f32x2(x: vec2f) -> vec2i {
  return bitcast<vec2i>(x + 12582912.0) - 0x4b400000;
}

fn half_u32x2(x: vec2f) -> vec2u {
  let bits = bitcast<vec2i>(x) & vec2i(0x7fffffff);
  let normal = bitcast<vec2u>(bits - 0x38000000 + 0xfff + ((bits >> vec2u(13u)) & vec2i(1))) >> vec2u(13u);
  let subnormal = bitcast<vec2u>(nearest_f32x2(bitcast<vec2f>(bits) * 16777216.0));
  let finite = select(normal, subnormal, bits < vec2i(0x38800000));
  let size = select(finite, select(vec2u(0x7c00u), vec2u(0x7e00u), bits > vec2i(0x7f800000)), bits >= vec2i(0x477ff000));
  return size | ((bitcast<vec2u>(x) >> vec2u(16u)) & vec2u(0x8000u));
}

fn pack_f16(x: vec2f) -> u32 {
  let bits = half_u32x2(x);
  return bits.x | (bits.y << 16u);
}

@compute @workgroup_size(64, 1, 1)
fn map_add_0(@builtin(workgroup_id) workgroup_id: vec3u, @builtin(local_invocation_id) local_id: vec3u) {
  let quad = i32(workgroup_id.x) * 64 + i32(local_id.x);
  if (quad < 16) {
    let x0 = vec4f(unpack_f16(in0[quad * 2]), unpack_f16(in0[quad * 2 + 1]));
    let x1 = vec4f(unpack_f16(in1[quad * 2]), unpack_f16(in1[quad * 2 + 1]));
    let add = round_f16_f32x4(x0 + x1);
    out0[quad * 2] = pack_f16(add.xy);
    out0[quad * 2 + 1] = pack_f16(add.zw);
  }
}
