// map kernel; 4 elements per invocation
// ids: i64[256]

@group(0) @binding(0) var<storage, read> ids: array<vec2u, 256>;
@group(0) @binding(1) var<storage, read_write> y: array<vec2u, 256>;

fn add_64(a: vec2u, b: vec2u) -> vec2u {
  let low = a.x + b.x;
  return vec2u(low, a.y + b.y + select(0u, 1u, low < b.x));
}

fn lt_i64(a: vec2u, b: vec2u) -> bool {
  return (bitcast<i32>(a.y) < bitcast<i32>(b.y)) | ((a.y == b.y) & (a.x < b.x));
}

fn max_i64(a: vec2u, b: vec2u) -> vec2u { return select(a, b, lt_i64(a, b)); }

@compute @workgroup_size(64, 1, 1)
fn map_ids(@builtin(local_invocation_id) local_id: vec3u) {
  let at = i32(local_id.x) * 4;
  let ids_x = ids[at];
  let ids_y = ids[at + 1];
  let ids_z = ids[at + 2];
  let ids_w = ids[at + 3];
  let shifted_x = add_64(ids_x, vec2u(0u, 4294967040u));
  let shifted_y = add_64(ids_y, vec2u(0u, 4294967040u));
  let shifted_z = add_64(ids_z, vec2u(0u, 4294967040u));
  let shifted_w = add_64(ids_w, vec2u(0u, 4294967040u));
  y[at] = max_i64(shifted_x, vec2u(0u, 0u));
  y[at + 1] = max_i64(shifted_y, vec2u(0u, 0u));
  y[at + 2] = max_i64(shifted_z, vec2u(0u, 0u));
  y[at + 3] = max_i64(shifted_w, vec2u(0u, 0u));
}
