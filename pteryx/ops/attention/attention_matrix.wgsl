// y[row] = sum over keys of softmax(scale q[row] . k[key] + mask) v[key] with subgroup matrices: f16 operands, f32 sums.
// One workgroup per 64 query rows of a head; four subgroups of 32 take 16 rows each. 64 keys at a time go through
// workgroup memory, first k, then v in its place; what comes next is on its way in registers.
// Matrices have neither elements nor rows to be scaled, so scores pass through workgroup memory, where two invocations
// take a row, and the sums do when a row's maximum has grown by more than `slack`, which is rare; until then weights are
// up to e^slack.
// Host guarantees: subgroups of 32, neighbouring invocations share them; keys > 0, rows > 0, size is a multiple of 16 up
// to 128, items = batch * heads * ceil(rows / 64).
// The matrices of q and the sums have names, and the steps over them are written out: drivers keep arrays of matrices in
// memory, and some lose what is in them.
// The prelude gives attention_matrix_ops.wgsl, `Matrices`, `load_queries`, `score_of`, `add_values`, `store_slabs`,
// `load_slabs` and `eight_q(at, j)`, `eight_k`, `eight_v`: elements 8j .. 8j+7 of the row
// at `at` as f16.
#include "attention/common/attention.wgsl"

const threads = 128u;
const block = 64u;  // rows
const tile = 64u;   // keys
const slack = 5.0;
const slabs = size / 16u;
const row_loads = size / 8u;
const loads = tile * row_loads / threads;
// Vectors of eight in a row of a tile, one more than it has, so that rows start in different banks.
const wide_kv = row_loads + 1u;
const wide_p = tile / 8u + 1u;
const wide_s = tile + 4u;

var<workgroup> tile_kv: array<vec4<u32>, tile * wide_kv>;
var<workgroup> tile_p: array<vec4<u32>, block * wide_p>;
var<workgroup> tile_s: array<f32, block * wide_s>;
var<workgroup> pair: array<f32, threads>;
var<workgroup> grown: u32;

// Four of the 32 columns of a tile_s row that an invocation has: two neighbouring fours of every other eight.
fn column_of(side: u32, i: u32) -> u32 { return (i / 2u * 2u + side) * 8u + i % 2u * 4u; }
fn four_of(at: u32) -> vec4<f32> { return vec4<f32>(tile_s[at], tile_s[at + 1u], tile_s[at + 2u], tile_s[at + 3u]); }
fn highest(v: vec4<f32>) -> f32 { return max(max(v.x, v.y), max(v.z, v.w)); }

@compute @workgroup_size(threads)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let unit = flat_group(group, groups);
  if (unit >= params.items) { return; }
  let blocks = (params.rows + block - 1u) / block;
  let head = unit / blocks % params.heads;
  let batch = unit / blocks / params.heads;
  // The blocks with most keys first.
  let block_row = (blocks - 1u - unit % blocks) * block;
  let last = params.rows - 1u;
  let owner = local / 32u;
  let lane = local % 32u;
  let own = owner * 16u;
  let side = lane % 2u;
  let line = own + lane / 2u;  // the row of the block that this invocation and its neighbour weigh
  let row = min(block_row + line, last);
  let limit = keys_of(row);
  let end = keys_of(min(block_row + block - 1u, last));
  let s_at = own * wide_s;
  let line_at = line * wide_s;

  for (var i = 0u; i < bound(loads); i++) {
    let e = local + i * threads;
    let q_row = min(block_row + e / row_loads, last);
    tile_kv[e / row_loads * wide_kv + e % row_loads] = eight_q(q_offset(batch, head, q_row), e % row_loads);
  }
  workgroupBarrier();
  var matrices: Matrices;
  load_queries(&matrices, own * wide_kv);
  var next: array<vec4<u32>, loads>;
  for (var i = 0u; i < bound(loads); i++) {
    let e = local + i * threads;
    next[i] = eight_k(k_offset(batch, head, min(e / row_loads, end - 1u)), e % row_loads);
  }
  var peak = lowest;
  var total = 0.0;
  for (var first = 0u; first < end; first += tile) {
    workgroupBarrier();
    if (local == 0u) { grown = 0u; }
    for (var i = 0u; i < bound(loads); i++) {
      let e = local + i * threads;
      tile_kv[e / row_loads * wide_kv + e % row_loads] = next[i];
    }
    workgroupBarrier();
    for (var i = 0u; i < bound(loads); i++) {
      let e = local + i * threads;
      next[i] = eight_v(k_offset(batch, head, min(first + e / row_loads, end - 1u)), e % row_loads);
    }
    for (var j = 0u; j < bound(tile / 16u); j++) {
      store_sum(s_at + j * 16u, score_of(&matrices, j * 16u * wide_kv));
    }
    workgroupBarrier();
    for (var i = 0u; i < bound(loads); i++) {
      let e = local + i * threads;
      tile_kv[e / row_loads * wide_kv + e % row_loads] = next[i];
    }
    for (var i = 0u; i < bound(loads); i++) {
      let e = local + i * threads;
      next[i] = eight_k(k_offset(batch, head, min(first + tile + e / row_loads, end - 1u)), e % row_loads);
    }

    var weight: array<vec4<f32>, 8>;
    var top = lowest;
    for (var i = 0u; i < bound(8u); i++) {
      let key = vec4<u32>(first + column_of(side, i)) + vec4<u32>(0u, 1u, 2u, 3u);
      let safe = min(key, vec4<u32>(end - 1u));
      let s = four_of(line_at + column_of(side, i)) * params.scale;
      let m = vec4<f32>(masked(s.x, batch, head, row, safe.x), masked(s.y, batch, head, row, safe.y),
                        masked(s.z, batch, head, row, safe.z), masked(s.w, batch, head, row, safe.w));
      weight[i] = select(vec4<f32>(lowest), m, key < vec4<u32>(limit));
      top = max(top, highest(weight[i]));
    }
    pair[local] = top;
    workgroupBarrier();
    top = max(top, pair[local ^ 1u]);
    let grows = top > peak + slack;
    let new_peak = select(peak, top, grows);
    let fade = select(1.0, decay(peak - new_peak), grows);
    if (grows && first > 0u) { grown = 1u; }
    peak = new_peak;
    var part = vec4<f32>(0.0);
    for (var i = 0u; i < bound(8u); i++) {
      let key = vec4<u32>(first + column_of(side, i)) + vec4<u32>(0u, 1u, 2u, 3u);
      // Above 0 only by the slack.
      let d = min(weight[i] - peak, vec4<f32>(slack));
      weight[i] = select(vec4<f32>(0.0), decay4(d), key < vec4<u32>(limit));
      part += weight[i];
    }
    total = total * fade + part.x + part.y + part.z + part.w;
    for (var i = 0u; i < bound(4u); i++) {
      let a = weight[2u * i];
      let b = weight[2u * i + 1u];
      tile_p[line * wide_p + 2u * i + side] = vec4<u32>(pack2x16float(a.xy), pack2x16float(a.zw), pack2x16float(b.xy),
                                                        pack2x16float(b.zw));
    }
    if (workgroupUniformLoad(&grown) != 0u) {
      for (var from_slab = 0u; from_slab < bound(slabs); from_slab += 4u) {
        store_slabs(&matrices, from_slab, s_at);
        workgroupBarrier();
        for (var i = 0u; i < bound(8u); i++) {
          for (var c = 0u; c < bound(4u); c++) { tile_s[line_at + column_of(side, i) + c] *= fade; }
        }
        workgroupBarrier();
        load_slabs(&matrices, from_slab, s_at);
        workgroupBarrier();
      }
    }
    for (var j = 0u; j < bound(tile / 16u); j++) {
      add_values(&matrices, own * wide_p + j * 2u, j * 16u * wide_kv);
    }
  }
  pair[local] = total;
  workgroupBarrier();
  total += pair[local ^ 1u];
  for (var from_slab = 0u; from_slab < bound(slabs); from_slab += 4u) {
    store_slabs(&matrices, from_slab, s_at);
    workgroupBarrier();
    for (var i = 0u; i < bound(8u); i++) {
      let column = from_slab * 16u + column_of(side, i);
      if (column < size && block_row + line <= last) {
        put4_y(q_offset(batch, head, row), column / 4u, four_of(line_at + column_of(side, i)) / total);
      }
    }
    workgroupBarrier();
  }
}
