// conv kernel; [1] 4x36 by 36x64, 1x4 a register tile
// in0: f32[4,4,3,3], in1: f32[1,4,8,8], out0: f32[1,4,8,8]
// 18432 flops, 2624 bytes

@group(0) @binding(0) var<storage, read> in0: array<f32, 148>;
@group(0) @binding(1) var<storage, read> in1: array<f32, 260>;
@group(0) @binding(2) var<storage, read_write> out0: array<vec4f, 65>;

@compute @workgroup_size(8, 1, 1)
fn conv_0(@builtin(workgroup_id) workgroup_id: vec3u, @builtin(local_invocation_id) local_id: vec3u) {
  let id = i32(workgroup_id.x) * 8 + i32(local_id.x);
  let tile = id / 16;
  let tile_n = id % 16;
  var sum_0_0 = vec4f(0.0);
  let idx = tile * 36;
  let idx_2 = tile_n / 2;
  let idx_6 = tile_n % 2;
  let idx_8 = idx_6 * 4;
  let idx_12 = -9 + tile_n * 4;
  let idx_15 = -8 + tile_n * 4;
  let idx_17 = -7 + tile_n * 4;
  let idx_19 = -6 + tile_n * 4;
  for (var k = 0; k < 36; k++) {
    let idx_1 = idx + k;
    let x0 = in0[idx_1];
    let idx_3 = k / 3;
    let idx_4 = idx_3 % 3;
    let idx_5 = idx_2 + idx_4;
    let in = 1 <= idx_5;
    let in_1 = idx_5 <= 8;
    let idx_7 = k % 3;
    let idx_9 = idx_8 + idx_7;
    let idx_10 = vec4i(idx_9) + vec4i(0, 1, 2, 3);
    let in_2 = vec4i(1) <= idx_10;
    let in_3 = idx_10 <= vec4i(8);
    let in_4 = vec4<bool>(in && in_1) & in_2 & in_3;
    let idx_11 = k / 9;
    let idx_13 = idx_11 * 64 + idx_4 * 8 + idx_7;
    let idx_14 = idx_12 + idx_13;
    let at = max(min(idx_14, 259), 0);
    let x1 = in1[at];
    let idx_16 = idx_15 + idx_13;
    let at_1 = max(min(idx_16, 259), 0);
    let x1_1 = in1[at_1];
    let idx_18 = idx_17 + idx_13;
    let at_2 = max(min(idx_18, 259), 0);
    let x1_2 = in1[at_2];
    let idx_20 = idx_19 + idx_13;
    let at_3 = max(min(idx_20, 259), 0);
    let x1_3 = in1[at_3];
    let x1_4 = vec4f(x1, x1_1, x1_2, x1_3);
    let sel = select(vec4f(0.0), x1_4, in_4);
    sum_0_0 = fma(vec4f(x0), sel, sum_0_0);
  }
  let result = sum_0_0;
  let idx_21 = tile * 64 + tile_n * 4;
  out0[idx_21 >> 2u] = result;
}
