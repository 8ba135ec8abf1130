// y[row] = sum over keys of softmax(scale q[row] . k[key] + mask) v[key] for `block` query rows of one head per workgroup.
// Keys come in tiles of `tile` through workgroup memory, first k, then v in its place; while scores are made v is on its way
// to registers, while results are, the next k. An invocation owns four rows and every lanes-th key of the scores, and every
// lanes-th group of four columns of the result.
// Roofline: 4 * size operations for each row and key; per 64 of them 8 vectors of workgroup memory where a block has 64
// rows, 12 where it has 32: what a processor reads in the time that it multiplies. Few blocks leave processors idle, so that
// smaller ones are better there: 48 of 64 rows took 46 us where the operations take 2.
// Loops over a whole tile have bounds that compilers do not know: unrolled more than `unrolled` times, they take some of
// them seconds.
// Host guarantees: keys > 0, rows > 0, items = batch * heads * ceil(rows / block).
#option size 1..256
#option has_mask
#option live_slots
#option q_type f16 | f32
#option k_type f16 | f32
#option v_type f16 | f32
#option y_type f16 | f32
#option block 16 | 32 | 64  // rows
#option tile 8..32          // keys
#option staged              // rows of q are kept in workgroup memory
#option unrolled 1 | 4
#require tile == 32 || !staged && block == 64 && (tile == 8 || tile == 16)
#require unrolled == 1 || size % 16 == 0 && tile == 32
#tensor q raw row_$q_type
#tensor k raw row_$k_type
#tensor v raw row_$v_type
#if has_mask
#tensor mask read bool | f16 | f32
#end
#include "attention/common/attention.wgsl"
#include "attention/common/load4.wgsl" name=q type=$q_type
#include "attention/common/load4.wgsl" name=k type=$k_type
#include "attention/common/load4.wgsl" name=v type=$v_type
#include "attention/common/result.wgsl"
#include "common/chain.wgsl"
#let loads = (tile * ((size + 3) / 4) + 127) / 128  // of k, or of v
#let ahead = loads <= 8                             // more registers are not to be had

const threads = 128u;
const block = $(block)u;
const tile = $(tile)u;
const fours = block / 4u;
const lanes = threads / fours;
const span = tile / lanes;                     // keys of an invocation
const columns = (size4 + lanes - 1u) / lanes;  // its groups of columns
const pitch = size4 + 1u;                      // the last entry of a row stays 0

var<workgroup> kv: array<vec4<f32>, tile * pitch>;
var<workgroup> weights: array<vec4<f32>, tile * fours>;  // [key][four rows]
var<workgroup> peaks: array<vec4<f32>, threads>;         // [lane][four rows]
#if staged
var<workgroup> q_rows: array<vec4<f32>, block * pitch>;
#end

// Four of a row of q: `line` in the block, `at` in q.
fn q_of(line: u32, at: u32, j: u32) -> vec4<f32> {
#if staged
  return q_rows[line * pitch + j];
#else
  return load4_q(at, j);
#end
}

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
  let quad = local / lanes;
  let lane = local % lanes;
  let last = params.rows - 1u;
  // Rows behind the end repeat the last one and are not stored.
  let first_row = block_row + quad * 4u;
  let row = min(vec4<u32>(first_row) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(last));
  let at = vec4<u32>(q_offset(batch, head, row.x), q_offset(batch, head, row.y), q_offset(batch, head, row.z),
                     q_offset(batch, head, row.w));
  let limit = vec4<u32>(keys_of(row.x), keys_of(row.y), keys_of(row.z), keys_of(row.w));
  let end = keys_of(min(block_row + block - 1u, last));
  var peak = vec4<f32>(lowest);
  var total = vec4<f32>(0.0);
  var score: array<vec4<f32>, span>;
  var sum_x: array<vec4<f32>, columns>;
  var sum_y: array<vec4<f32>, columns>;
  var sum_z: array<vec4<f32>, columns>;
  var sum_w: array<vec4<f32>, columns>;
#if staged
  for (var i = local; i < block * size4; i += threads) {
    let line = min(block_row + i / size4, last);
    q_rows[i / size4 * pitch + i % size4] = load4_q(q_offset(batch, head, line), i % size4);
  }
#end
#for i in 0..loads * ahead
  var next_k$i: k_four;
  var next_v$i: v_four;
#end
#include "attention/common/fetch_tile.wgsl" name=k at=0u
  for (var first = 0u; first < end; first += tile) {
#include "attention/common/put_tile.wgsl" name=k
    workgroupBarrier();
#include "attention/common/fetch_tile.wgsl" name=v at=first
    for (var c = 0u; c < span; c++) { score[c] = vec4<f32>(0.0); }
    for (var j0 = 0u; j0 < params.quads; j0 += $(unrolled)u) {
#for u in 0..unrolled
      {
        let j = j0 + $(u)u;
        let qx = q_of(quad * 4u, at.x, j);
        let qy = q_of(quad * 4u + 1u, at.y, j);
        let qz = q_of(quad * 4u + 2u, at.z, j);
        let qw = q_of(quad * 4u + 3u, at.w, j);
        for (var c = 0u; c < span; c++) {
          let k4 = kv[(lane + lanes * c) * pitch + j];
          let s = score[c];
          score[c] = vec4<f32>(chain(qx, k4, s.x), chain(qy, k4, s.y), chain(qz, k4, s.z), chain(qw, k4, s.w));
        }
      }
#end
    }
    var next_peak = peak;
    for (var c = 0u; c < span; c++) {
      let key = first + lane + lanes * c;
      let safe = min(key, end - 1u);
      let s = score[c] * params.scale;
      let m = vec4<f32>(masked(s.x, batch, head, row.x, safe), masked(s.y, batch, head, row.y, safe),
                        masked(s.z, batch, head, row.z, safe), masked(s.w, batch, head, row.w, safe));
      score[c] = select(vec4<f32>(lowest), m, vec4<u32>(key) < limit);
      next_peak = max(next_peak, score[c]);
    }
    peaks[lane * fours + quad] = next_peak;
    workgroupBarrier();
    for (var l = 0u; l < lanes; l++) { next_peak = max(next_peak, peaks[l * fours + quad]); }
    let fade = decay4(peak - next_peak);
    peak = next_peak;
    for (var c = 0u; c < span; c++) {
      let key = lane + lanes * c;
      weights[key * fours + quad] =
          select(vec4<f32>(0.0), decay4(score[c] - peak), vec4<u32>(first + key) < limit);
    }
#include "attention/common/put_tile.wgsl" name=v
    workgroupBarrier();
#include "attention/common/fetch_tile.wgsl" name=k at=first+tile
    total *= fade;
    for (var c = 0u; c < columns; c++) {
      sum_x[c] *= fade.x;
      sum_y[c] *= fade.y;
      sum_z[c] *= fade.z;
      sum_w[c] *= fade.w;
    }
    // Those beyond the last have no weight.
    let count = min(tile, end - first);
    for (var key0 = 0u; key0 < count; key0 += $(unrolled)u) {
#for u in 0..unrolled
      {
        let key = key0 + $(u)u;
        let weight = weights[key * fours + quad];
        total += weight;
        for (var c = 0u; c < columns; c++) {
          let v4 = kv[key * pitch + min(lane + lanes * c, size4)];
          sum_x[c] += weight.x * v4;
          sum_y[c] += weight.y * v4;
          sum_z[c] += weight.z * v4;
          sum_w[c] += weight.w * v4;
        }
      }
#end
    }
    workgroupBarrier();
  }
  let to = vec4<u32>(y_offset(batch, head, row.x), y_offset(batch, head, row.y), y_offset(batch, head, row.z),
                     y_offset(batch, head, row.w));
  for (var c = 0u; c < columns; c++) {
    let j = lane + lanes * c;
    if (j >= size4) { continue; }
    if (first_row < params.rows) { put4_y(to.x, j, sum_x[c] / total.x); }
    if (first_row + 1u < params.rows) { put4_y(to.y, j, sum_y[c] / total.y); }
    if (first_row + 2u < params.rows) { put4_y(to.z, j, sum_z[c] / total.z); }
    if (first_row + 3u < params.rows) { put4_y(to.w, j, sum_w[c] / total.w); }
  }
}
