// radix-rank kernel; 4 blocks of 4096 keys, 256 digits, 256 keys a round
// in0: u32[2,8192], out0: i32[2,2,4352]
// 69632 flops, 135168 bytes

@group(0) @binding(0) var<storage, read> in0: array<u32, 16388>;
@group(0) @binding(1) var<storage, read_write> out0: array<i32, 17412>;
var<workgroup> masks: array<atomic<u32>, 2048>;
var<workgroup> totals: array<u32, 256>;

fn shl_u32(a: u32, count: u32) -> u32 {
  return select(a << count, 0u, count > 31u);
}

@compute @workgroup_size(256, 1, 1)
fn radix_rank_0(@builtin(workgroup_id) workgroup_id: vec3u, @builtin(local_invocation_id) local_id: vec3u) {
  let group = i32(workgroup_id.x);
  let line = group >> 1u;
  let first = (group & 1) * 4096;
  let counts = group * 4352;
  let ranks = counts + 256;
  let own = i32(local_id.x) >> 5u;
  let bit = shl_u32(1u, u32(i32(local_id.x) & 31));
  let below = bit - 1u;
  for (var i = i32(local_id.x); i < 2048; i += 256) {
    atomicStore(&masks[i], 0u);
  }
  for (var i_1 = i32(local_id.x); i_1 < 256; i_1 += 256) {
    totals[i_1] = 0u;
  }
  workgroupBarrier();
  let idx = line * 8192;
  for (var round_ = 0; round_ < 4096; round_ += 256) {
    let i_2 = round_ + i32(local_id.x);
    var row = 0;
    let pos = first + i_2;
    let idx_1 = idx + pos;
    let x0 = in0[idx_1];
    let digit = i32((x0 >> 8u) & 255u);
    row = digit * 8;
    let at = row + own;
    atomicOr(&masks[at], bit);
    workgroupBarrier();
    var before = 0u;
    var count = 0u;
    for (var word = 0; word < 8; word++) {
      let at_1 = row + word;
      let mask = atomicLoad(&masks[at_1]);
      before = before + countOneBits(mask & select(select(0u, below, word == own), 4294967295u, word < own));
      count = count + countOneBits(mask);
    }
    var earlier = 0u;
    earlier = totals[row / 8];
    out0[ranks + i_2] = i32(earlier + before);
    workgroupBarrier();
    if (before == 0u) {
      totals[row / 8] = earlier + count;
      for (var word_1 = 0; word_1 < 8; word_1++) {
        let at_2 = row + word_1;
        atomicStore(&masks[at_2], 0u);
      }
    }
    workgroupBarrier();
  }
  for (var d = i32(local_id.x); d < 256; d += 256) {
    out0[counts + d] = i32(totals[d]);
  }
}
