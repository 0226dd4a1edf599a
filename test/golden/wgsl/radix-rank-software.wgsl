// radix-rank kernel; 4 blocks of 4096 keys, 256 digits, one an invocation
// in0: u32[2,8192], out0: i32[2,2,4352]
// 69632 flops, 135168 bytes

@group(0) @binding(0) var<storage, read> in0: array<u32, 16388>;
@group(0) @binding(1) var<storage, read_write> out0: array<i32, 17412>;

@compute @workgroup_size(16, 1, 1)
fn radix_rank_0(@builtin(workgroup_id) workgroup_id: vec3u, @builtin(local_invocation_id) local_id: vec3u) {
  let id = i32(workgroup_id.x) * 16 + i32(local_id.x);
  if (id < 4) {
    let line = id >> 1u;
    let first = (id & 1) * 4096;
    let counts = id * 4352;
    let ranks = counts + 256;
    for (var d = 0; d < 256; d++) {
      out0[counts + d] = 0;
    }
    let idx = line * 8192;
    for (var i = 0; i < 4096; i++) {
      var rank = 0;
      let pos = first + i;
      let idx_1 = idx + pos;
      let x0 = in0[idx_1];
      let digit = i32((x0 >> 8u) & 255u);
      let cell = counts + digit;
      rank = out0[cell];
      out0[cell] = rank + 1;
      out0[ranks + i] = rank;
    }
  }
}
