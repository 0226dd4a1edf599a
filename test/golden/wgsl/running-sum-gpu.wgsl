// scan kernel; 16 lines of 64, 16 invocations a line, 1 round(s)
// in0: f32[16,64], out0: f32[16,64]
// 1024 flops, 8192 bytes

@group(0) @binding(0) var<storage, read> in0: array<vec4f, 257>;
@group(0) @binding(1) var<storage, read_write> out0: array<vec4f, 257>;
var<workgroup> totals: array<f32, 128>;

@compute @workgroup_size(16, 4, 1)
fn scan_0(@builtin(workgroup_id) workgroup_id: vec3u, @builtin(local_invocation_id) local_id: vec3u) {
  let line = i32(workgroup_id.x) * 4 + i32(local_id.y);
  let base = i32(local_id.y) * 32 + i32(local_id.x);
  let turn = i32(local_id.x);
  let idx = line * 16 + turn;
  let x0 = in0[idx];
  let sum = x0.x;
  let sum_1 = sum + x0.y;
  let sum_2 = sum_1 + x0.z;
  let sum_3 = sum_2 + x0.w;
  totals[base] = sum_3;
  workgroupBarrier();
  let mine = totals[base];
  var total = mine;
  if (1 <= i32(local_id.x)) {
    total = totals[base + -1] + mine;
  }
  totals[base + 16] = total;
  workgroupBarrier();
  let mine_1 = totals[base + 16];
  var total_1 = mine_1;
  if (2 <= i32(local_id.x)) {
    total_1 = totals[base + 14] + mine_1;
  }
  totals[base] = total_1;
  workgroupBarrier();
  let mine_2 = totals[base];
  var total_2 = mine_2;
  if (4 <= i32(local_id.x)) {
    total_2 = totals[base + -4] + mine_2;
  }
  totals[base + 16] = total_2;
  workgroupBarrier();
  let mine_3 = totals[base + 16];
  var total_3 = mine_3;
  if (8 <= i32(local_id.x)) {
    total_3 = totals[base + 8] + mine_3;
  }
  totals[base] = total_3;
  workgroupBarrier();
  var before = 0.0;
  if (0 < i32(local_id.x)) {
    before = totals[base + -1];
  }
  let prefix = before;
  let result = vec4f(prefix + sum, prefix + sum_1, prefix + sum_2, prefix + sum_3);
  out0[idx] = result;
}
