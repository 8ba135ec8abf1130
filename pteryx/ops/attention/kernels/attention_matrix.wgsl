// y[row] = sum over keys of softmax(scale q[row] . k[key] + mask) v[key] with subgroup matrices: f16 operands, f32 sums.
// One workgroup per 64 query rows of a head; four subgroups of 32 take 16 rows each. Tiles of keys go through workgroup
// memory, k and v side by side or, without `separate`, v in the place of k; what comes next is on its way in registers.
// Matrices have neither elements nor rows to be scaled, so scores pass through workgroup memory, where two invocations
// take a row, and the sums do when a row's maximum has grown by more than 2^slack, which is rare; until then weights are
// up to 2^slack.
// Columns that fill a row up to a multiple of 16 are 0. Matrices have names, offsets and strides are constants and tiles
// are arrays of each subgroup's own: drivers keep arrays of matrices in memory, and what is not known to be inside a tile
// is checked at every load.
// Host guarantees: subgroups of 32, neighbouring invocations share them; keys > 0, rows > 0, items = batch * heads *
// ceil(rows / 64).
#option size 4..256
#option tile 16..64  // keys
#option separate
#option has_mask
#option live_slots
#option q_type f16 | f32
#option k_type f16 | f32
#option v_type f16 | f32
#option y_type f16 | f32
#require size % 4 == 0
#require tile == 16 || tile == 32 || tile == 64
#enable f16
#enable subgroups
#enable subgroup_matrix
#tensor q raw vector_$q_type
#tensor k raw vector_$k_type
#tensor v raw vector_$v_type
#if has_mask
#tensor mask read bool | f16 | f32
#end
#include "attention/common/attention.wgsl"
#include "attention/common/result.wgsl"
#include "attention/common/eight.wgsl" name=q type=$q_type
#include "attention/common/eight.wgsl" name=k type=$k_type
#include "attention/common/eight.wgsl" name=v type=$v_type

#if size % 8 == 0
alias vector_f16 = vec4<u32>;
#else
alias vector_f16 = vec2<u32>;
#end
alias vector_f32 = vec4<f32>;
alias left_matrix = subgroup_matrix_left<f16, 16, 16>;
alias right_matrix = subgroup_matrix_right<f16, 16, 16>;
alias sum_matrix = subgroup_matrix_result<f32, 16, 16>;

const threads = 128u;
const block = 64u;  // rows
const tile = $(tile)u;
const slack = 8.0;
#let slabs = (size + 15) / 16    // matrices along the columns
#let eights = (size + 7) / 8     // vectors of eight that a row has,
#let wide_kv = 2 * slabs + 1     // and that it takes: one more than a multiple of 16 needs, so that rows start in different banks
#let wide_p = tile / 8 + 1
#let wide_s = tile / 4 + 2       // vectors of four
#let fours = tile / 8            // vectors of a row's scores that an invocation has
#let across = tile / 16          // matrices along the keys
#let loads = (tile * eights + 127) / 128
#let whole_loads = tile * eights % 128 == 0
// The tile has room for at least one slab of the 64 rows of q, which go through it first.
#let tile_size = tile * wide_kv + (tile * wide_kv < 192) * (192 - tile * wide_kv)
#let q_slabs = (tile_size / 64 - 1) / 2
#let q_wide = 2 * q_slabs + 1
const eights = $(eights)u;
const wide_kv = $(wide_kv)u;
const wide_p = $(wide_p)u;
const wide_s = $(wide_s)u;

var<workgroup> tile_k: array<vec4<u32>, $(tile_size)>;
#if separate
#let v_tile = tile_v
var<workgroup> tile_v: array<vec4<u32>, $(tile * wide_kv)>;
#else
#let v_tile = tile_k
#end
var<workgroup> tile_p: array<array<vec4<u32>, $(16 * wide_p)>, 4>;
var<workgroup> tile_s: array<array<vec4<f32>, $(16 * wide_s)>, 4>;
var<workgroup> grown: u32;

fn packed_halves(low: vec4<f32>, high: vec4<f32>) -> vec4<u32> {
  let most = vec4<f32>(65504.0);
  let a = clamp(low, -most, most);
  let b = clamp(high, -most, most);
  return vec4<u32>(pack2x16float(a.xy), pack2x16float(a.zw), pack2x16float(b.xy), pack2x16float(b.zw));
}
fn scaled_q(at: u32, j: u32) -> vec4<u32> {
  let u = eight_q(at, j);
#if q_type == f16
  let low = vec4<f32>(unpack2x16float(u.x), unpack2x16float(u.y));
  let high = vec4<f32>(unpack2x16float(u.z), unpack2x16float(u.w));
  return packed_halves(low * params.scale, high * params.scale);
#else
  return packed_halves(u.low * params.scale, u.high * params.scale);
#end
}
fn highest(v: vec4<f32>) -> f32 { return max(max(v.x, v.y), max(v.z, v.w)); }

@compute @workgroup_size(threads)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let unit = flat_group(group, groups);
  if (unit >= params.items) { return; }
  let blocks = (params.rows + block - 1u) / block;
  let head = unit % params.heads;
  let batch = unit / params.heads / blocks;
  // The blocks with most keys first, of all heads, so that none is left to run alone at the end.
  let block_row = (blocks - 1u - unit / params.heads % blocks) * block;
  let last = params.rows - 1u;
  let owner = local / 32u;
  let lane = local % 32u;
  let side = lane % 2u;
  let line = lane / 2u;  // the row of its subgroup that this invocation and its neighbour weigh
  let row = min(block_row + owner * 16u + line, last);
  let limit = keys_of(row);
  let all_see = keys_of(block_row);
  let end = keys_of(min(block_row + block - 1u, last));
  let k_at = k_offset(batch, head, 0u);
  let v_at = v_offset(batch, head, 0u);
  let k_row = params.k_strides.z;

#for i in 0..loads
  let load_row_$(i) = (local + $(128 * i)u) / eights;
  let load_column_$(i) = (local + $(128 * i)u) % eights;
  var next_$(i) = eight_k(k_at + min(load_row_$(i), end - 1u) * k_row, load_column_$(i));
#if separate
  var next_v_$(i) = eight_v(v_at + min(load_row_$(i), end - 1u) * k_row, load_column_$(i));
#end
#end

#for first in 0..(slabs + q_slabs - 1) / q_slabs
  workgroupBarrier();
  for (var e = local; e < $(64 * 2 * q_slabs)u; e += threads) {
    let j = e % $(2 * q_slabs)u + $(2 * q_slabs * first)u;
    let q_row = min(block_row + e / $(2 * q_slabs)u, last);
    var halves = vec4<u32>(0u);
    if (j < eights) { halves = scaled_q(q_offset(batch, head, q_row), j); }
    tile_k[e / $(2 * q_slabs)u * $(q_wide)u + e % $(2 * q_slabs)u] = halves;
  }
  workgroupBarrier();
#for d in 0..q_slabs
#if first * q_slabs + d < slabs
  let q_$(first * q_slabs + d) = subgroupMatrixLoad<left_matrix, row_major>(
      &tile_k, owner * $(16 * q_wide)u + $(2 * d)u, $(q_wide)u);
#end
#end
#end
#for d in 0..slabs
  var sum_$(d) = sum_matrix();
#end
  workgroupBarrier();
#if eights < 2 * slabs
  for (var i = local; i < tile; i += threads) {
    tile_k[i * wide_kv + eights] = vec4<u32>(0u);
#if separate
    tile_v[i * wide_kv + eights] = vec4<u32>(0u);
#end
  }
#end

  var peak = lowest;
  var total = 0.0;
  for (var first = 0u; first < end; first += tile) {
    workgroupBarrier();
    if (local == 0u) { grown = 0u; }
#for i in 0..loads
#if whole_loads || i + 1 < loads
    tile_k[load_row_$(i) * wide_kv + load_column_$(i)] = halves_k(next_$(i));
#if separate
    tile_v[load_row_$(i) * wide_kv + load_column_$(i)] = halves_v(next_v_$(i));
#end
#else
    if (load_row_$(i) < tile) {
      tile_k[load_row_$(i) * wide_kv + load_column_$(i)] = halves_k(next_$(i));
#if separate
      tile_v[load_row_$(i) * wide_kv + load_column_$(i)] = halves_v(next_v_$(i));
#end
    }
#end
#end
    workgroupBarrier();
#for i in 0..loads
#if separate
    next_$(i) = eight_k(k_at + min(first + tile + load_row_$(i), end - 1u) * k_row, load_column_$(i));
    next_v_$(i) = eight_v(v_at + min(first + tile + load_row_$(i), end - 1u) * k_row, load_column_$(i));
#else
    let next_v_$(i) = eight_v(v_at + min(first + load_row_$(i), end - 1u) * k_row, load_column_$(i));
#end
#end
#for j in 0..across
    var score_$(j) = sum_matrix();
#end
#for d in 0..slabs
#for j in 0..across
    score_$(j) = subgroupMatrixMultiplyAccumulate(q_$(d),
        subgroupMatrixLoad<right_matrix, col_major>(&tile_k, $(16 * j * wide_kv + 2 * d)u, $(wide_kv)u), score_$(j));
#end
#end
#for j in 0..across
    subgroupMatrixStore<row_major>(&tile_s[owner], $(4 * j)u, score_$(j), $(wide_s)u);
#end
    workgroupBarrier();
#if !separate
#for i in 0..loads
#if whole_loads || i + 1 < loads
    tile_k[load_row_$(i) * wide_kv + load_column_$(i)] = halves_v(next_v_$(i));
#else
    if (load_row_$(i) < tile) { tile_k[load_row_$(i) * wide_kv + load_column_$(i)] = halves_v(next_v_$(i)); }
#end
    next_$(i) = eight_k(k_at + min(first + tile + load_row_$(i), end - 1u) * k_row, load_column_$(i));
#end
#end

#for i in 0..fours
    var weight_$(i) = tile_s[owner][line * wide_s + $(2 * i)u + side];
#end
#if has_mask
#for i in 0..fours
    let key_$(i) = vec4<u32>(first + (side + $(2 * i)u) * 4u) + vec4<u32>(0u, 1u, 2u, 3u);
    let seen_$(i) = key_$(i) < vec4<u32>(limit);
#for c in 0..4
    weight_$(i)[$(c)] = masked(weight_$(i)[$(c)], batch, head, row, min(key_$(i)[$(c)], end - 1u));
#end
    weight_$(i) = select(vec4<f32>(lowest), weight_$(i), seen_$(i));
#end
#else
    if (first + tile > all_see) {
      let key = vec4<u32>(first + side * 4u) + vec4<u32>(0u, 1u, 2u, 3u);
#for i in 0..fours
      weight_$(i) = select(vec4<f32>(lowest), weight_$(i), key + vec4<u32>($(8 * i)u) < vec4<u32>(limit));
#end
    }
#end
    var top4 = weight_0;
#for i in 1..fours
    top4 = max(top4, weight_$(i));
#end
    var top = highest(top4);
    top = max(top, subgroupShuffleXor(top, 1u));
    let grows = top > peak + slack;
    let new_peak = select(peak, top, grows);
    let fade = select(1.0, decay(peak - new_peak), grows);
    if (grows && first > 0u) { grown = 1u; }
    peak = new_peak;
    var part = vec4<f32>(0.0);
#for i in 0..fours
    weight_$(i) = decay4(weight_$(i) - vec4<f32>(peak));
#if has_mask
    weight_$(i) = select(vec4<f32>(0.0), weight_$(i), seen_$(i));
#end
    part += weight_$(i);
    tile_p[owner][line * wide_p + $(i)u][side * 2u] = pack2x16float(weight_$(i).xy);
    tile_p[owner][line * wide_p + $(i)u][side * 2u + 1u] = pack2x16float(weight_$(i).zw);
#end
    total = total * fade + part.x + part.y + part.z + part.w;
    if (workgroupUniformLoad(&grown) != 0u) {
#for first_slab in 0..(slabs + across - 1) / across
#for j in 0..across
#if first_slab * across + j < slabs
      subgroupMatrixStore<row_major>(&tile_s[owner], $(4 * j)u, sum_$(first_slab * across + j), $(wide_s)u);
#end
#end
      workgroupBarrier();
#for i in 0..fours
      tile_s[owner][line * wide_s + $(2 * i)u + side] *= fade;
#end
      workgroupBarrier();
#for j in 0..across
#if first_slab * across + j < slabs
      sum_$(first_slab * across + j) = subgroupMatrixLoad<sum_matrix, row_major>(&tile_s[owner], $(4 * j)u, $(wide_s)u);
#end
#end
      workgroupBarrier();
#end
    }
#for j in 0..across
    {
      let weights = subgroupMatrixLoad<left_matrix, row_major>(&tile_p[owner], $(2 * j)u, $(wide_p)u);
#for d in 0..slabs
      sum_$(d) = subgroupMatrixMultiplyAccumulate(weights,
          subgroupMatrixLoad<right_matrix, row_major>(&$(v_tile), $(16 * j * wide_kv + 2 * d)u, $(wide_kv)u), sum_$(d));
#end
    }
#end
  }

  total += subgroupShuffleXor(total, 1u);
  let y_at = y_offset(batch, head, row);
  let is_row = block_row + owner * 16u + line <= last;
#for first_slab in 0..(slabs + across - 1) / across
  workgroupBarrier();
#for j in 0..across
#if first_slab * across + j < slabs
  subgroupMatrixStore<row_major>(&tile_s[owner], $(4 * j)u, sum_$(first_slab * across + j), $(wide_s)u);
#end
#end
  workgroupBarrier();
#for i in 0..fours
  {
    let column = $(first_slab * tile / 4 + 2 * i)u + side;
    if (is_row && column < size4) { put4_y(y_at, column, tile_s[owner][line * wide_s + $(2 * i)u + side] / total); }
  }
#end
#end
}
