// y[m, n] = finish(sum over k of x[m, k] * (code[n, k] * scale[n, k] + minimum[n, k])).
// A few rows of x with integer dot products. x becomes integers of `planes` signed bytes with a scale for each unit of k,
// once per workgroup, in workgroup memory; a product with the codes of a unit is then exact, and is turned into a float
// once. An invocation has `steps` units of `columns` rows of weights, `lanes` neighbours have units side by side, `across`
// subgroups share out k, and `sets` of these make a workgroup.
// Bytes: the weights once, all fetched before x is looked at. 2 * planes * rows dot products per 8 codes.
// Host guarantees: m = rows; one scale per unit; lanes * across * steps units are a whole row, unless there are passes; x_wide is
// a multiple of them.
// Codes and sums have names, and what is done with them is written out: compilers may keep arrays of them in memory.
#option rows 1..8
#option fixed
#if fixed
#option n 1..16777216
#option k 1..16777216
#option row_bytes 16..16777216
#option group_size 1..16777216
#option scale_row 0..16777216
#option end0 0..16777216
#option end1 0..16777216
#option end2 0..16777216
#option end3 0..16777216
#option factor_bits 0..2139095039
#option eps_bits 0..2139095039
#option fixed_slots
#option position_slot 0..65535
#option table_slot 0..65535
#end
#option planes 2..3
#option columns 4 | 8
#option lanes 4 | 8 | 16 | 32
#option across 1..16
#option steps 1..4
#option sets 1 | 2 | 4 | 8 | 16
#option passes                              // a row has more units: the same again for those that follow
// Numbers; times norm, over their RMS; whole numbers; rounded to such by row; prepared as qlinear_planes.wgsl does it.
#option x_form plain | norm | whole | rounded | prepared
#option gated                               // y = silu(first half of the columns) * second half
#option rotated                             // queries, keys and values: see rotated.wgsl
#if rotated
#option halves
#option normed                              // by head, of which a workgroup has one: see head_norms.wgsl
#if normed
#option norm_q_type f16 | f32
#option norm_k_type f16 | f32
#end
#option half_size 1..512
#option heads 1..1024
#option kv_heads 1..1024
#option capacity 1..16777216
#option cache_type f16 | f32
#option cos_of_type f16 | f32
#option sin_of_type f16 | f32
#option live_slots
#end
#option scale_loads one | four | eight  // see scale4.wgsl
#if x_form == norm
#option norm_type f16 | f32
#end
#if x_form == prepared
#option x_wide 1..16777216  // units in a row of them
#let x_fours = 0
#else
#option x_type f16 | f32 | i8
#option x_fours
#end
#option codes nibbles | bytes
#option scale_order flat | groups | blocks
#option scales_type f16 | f32
#option has_minimums
#if has_minimums
#option minimums_type f16 | f32
#require codes == nibbles && scale_order != flat && minimums_type == scales_type
#end
#option results 1..4
#let parts = 0
#option row_words
#option has_bias
#if has_bias
#option bias_type f16 | f32
#end
#option has_residual
#if has_residual
#option residual_type f16 | f32
#end
#option y_type f16 | f32
#if rotated
#require !gated && results == 1 && !has_residual && row_words
#let in_halves = halves
#require !halves || (columns == 8 && half_size % 4 == 0)
#require !normed || (halves && rows == 1 && sets * 4 == half_size)
#let heads_normed = normed
#let places = all
#else
#let in_halves = 0
#let heads_normed = 0
#end
#require results == 1 || row_words
#require scale_loads != eight || (columns == 8 && !gated && !in_halves && scales_type == f16)
#require columns <= lanes && rows * columns * steps <= 64
#require lanes * across * sets <= 512
#if x_form != prepared
#require x_type != i8 || x_form == whole
#require x_form != whole || x_type == i8
#require (x_form == plain || x_form == norm) || planes == 2
#end
#if fixed
#require (x_form != norm || k % 4 == 0) && (!gated || n > 1)
#end
#require !gated || (results == 1 && !has_residual && columns == 8)
#enable subgroups
#if codes == bytes
#let unit = 16
#else
#let unit = 32
#end
#let eights = unit / 8
#let wide = lanes * across * steps
#let threads = lanes * across * sets
#let x_size = rows * wide * planes * (unit + 4) + (x_form == norm) * rows * wide * eights / lanes * 4
#require (x_form != prepared) * x_size + sets * across * rows * columns * 4 <= 49152
#if in_halves
#let each = 4
#else
#let each = 2
#end
#let scales_loaded = 4 + 4 * (scale_loads == eight)
// Nothing is left over: no index has to be kept inside.
#if fixed && !in_halves
#let n_whole = n % (columns * sets) == 0 && n / (columns * sets) < 65536  // and no workgroup is left over
#else
#let n_whole = 0
#end
#if fixed
#let k_whole = !passes && k == wide * unit && x_fours
#else
#let k_whole = 0
#end
#let at_once = !gated && sets * rows * columns / each <= threads  // an invocation has a pair of results, or two, at most
#let turns = (rows * wide * eights + threads - 1) / threads
#include "quant/kernels/common/params.wgsl"
#if x_form == prepared
#tensor x_bytes raw vec4<u32>
#tensor x_scale raw vec2<f32>
#if planes == 3
#tensor x_high raw i32
#end
#else
#include "quant/kernels/common/x.wgsl"
#end
#if x_form == norm
#include "quant/kernels/common/norm.wgsl"
#end
#if x_form == rounded
#tensor row_scale read f16 | f32
#tensor row_zero read i8
#end
#tensor weight raw vec4<u32>
#include "quant/kernels/common/scale4.wgsl"
#if rotated
#include "quant/kernels/common/rotated.wgsl"
#if heads_normed
#include "quant/kernels/common/head_norms.wgsl"
var<workgroup> head_squares: array<f32, $(half_size / 2)>;
#end
#else
#include "quant/kernels/common/results.wgsl"
#end

const rows: u32 = $(rows)u;
const columns: u32 = $(columns)u;
const lanes: u32 = $(lanes)u;
const across: u32 = $(across)u;
const sets: u32 = $(sets)u;
const wg_size: u32 = lanes * across * sets;
const unit: u32 = $(unit)u;
const eights: u32 = $(eights)u;
const wide: u32 = $(wide)u;  // units of a pass
const items: u32 = rows * wide * eights;

#if x_form == prepared
#let x_row = x_wide
#else
#let x_row = wide
#let to_storage = 0
#include "quant/kernels/common/dot4_x.wgsl"
#end
var<workgroup> totals: array<f32, $(sets * across * rows * columns)>;

// Sums c and c + 1 of row m of a set.
fn totals_of(which: u32, m: u32, c: u32) -> vec2<f32> {
  var total = vec2<f32>(0.0);
#for i in 0..across
  let at$i = ((which * across + $(i)u) * rows + m) * columns + c;
  total += vec2<f32>(totals[at$i], totals[at$i + 1u]);
#end
#if x_form == norm
  return total * norm_of(m);
#else
  return total;
#end
}

@compute @workgroup_size(wg_size)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let lane = local % lanes;
  let owner = local / lanes;
  let own_unit = owner % across * $(steps * lanes)u + lane;
  let first_block = flat_group(group, groups) * sets;
  let block = first_block + owner / across;
  let units = (params.k + unit - 1u) / unit;
  let row_units = params.row_bytes / 16u;
#if gated
  let half = params.n / 2u;
#end
#if n_whole && gated
  let first_n = block * $(columns / 2)u;
#for c in 0..columns
  let n$c = first_n + $(c / (columns / 2) * (n / 2) + c % (columns / 2))u;
#end
#elif n_whole
  let first_n = block * columns;
#for c in 0..columns
  let n$c = first_n + $(c)u;
#end
#elif gated
  // Columns past the end repeat the last, and are not stored.
#for c in 0..columns
  let n$c = $(c / (columns / 2))u * half + min(block * $(columns / 2)u + $(c % (columns / 2))u, half - 1u);
#end
#elif in_halves
  let first_of = column_of(min(block * $(columns / 2)u, params.n / 2u - $(columns / 2)u));
#for c in 0..columns
  let n$c = first_of + $(c / (columns / 2) * half_size + c % (columns / 2))u;
#end
#else
#for c in 0..columns
  let n$c = min(block * columns + $(c)u, params.n - 1u);
#end
#end
#if at_once
  // The results that this invocation finishes; what it needs for that is fetched behind the weights.
  const finishers = $(sets * rows * columns / each)u;
  let own_part = min(local, finishers - 1u);
  let own_set = own_part / $(rows * columns / each)u;
  let own_m = own_part / $(columns / each)u % rows;
  let own_c = own_part % $(columns / each)u * 2u;
#if in_halves
  let own_n = column_of((first_block + own_set) * (columns / 2u) + own_c);
#else
  let own_n = (first_block + own_set) * columns + own_c;
#end
#if passes
  let fetched = finishing(own_m, own_n);
#if heads_normed
  let norm_low = norm2(own_n);
  let norm_high = norm2(own_n + $(half_size)u);
#end
#end
#end
#for m in 0..rows
#for c in 0..columns
  var sum$(m)_$(columns)_$c = 0.0;
#end
#end
#if passes
#if x_form == norm
  for (var i = local; i < items / lanes; i += wg_size) { x_squares[i] = 0.0; }
#end
  for (var first_unit = 0u; first_unit < units; first_unit += wide) {
#else
  const first_unit = 0u;
#end
#if x_form != prepared && turns <= 4
#for i in 0..turns
    let item$i = min($(i * threads)u + local, items - 1u);
    let eight$i = load_x8(item$i, first_unit);
#end
#end
#if n_whole && k_whole
    let first_weight = first_n * $(row_bytes / 16)u + own_unit;
#end
#for s in 0..steps
#if k_whole
    let u$s = own_unit + $(s * lanes)u;
#else
    // Units past the end repeat the last; x is 0 there.
    let u$s = min(first_unit + own_unit + $(s * lanes)u, units - 1u);
#end
#for c in 0..columns
#if n_whole && k_whole && gated
    let w$(s)_$c = weight[first_weight + $((c / (columns / 2) * (n / 2) + c % (columns / 2)) * (row_bytes / 16) + s * lanes)u];
#elif n_whole && k_whole
    let w$(s)_$c = weight[first_weight + $(c * (row_bytes / 16) + s * lanes)u];
#else
    let w$(s)_$c = weight[n$c * row_units + u$s];
#end
#end
#for q in 0..columns / scales_loaded
    let s$(s)_$q = scales_at(n$(q * scales_loaded), u$s * unit);
#if has_minimums
    let z$(s)_$q = minimums_at(n$(q * scales_loaded), u$s * unit);
#end
#end
#end
#if at_once && !passes
    let fetched = finishing(own_m, own_n);
#end
#if heads_normed && !passes
    let norm_low = norm2(own_n);
    let norm_high = norm2(own_n + $(half_size)u);
#end
#if x_form != prepared
#if passes
    workgroupBarrier();
#end
#if turns <= 4
#for i in 0..turns
    store_x(item$i, eight$i, $(i * threads)u + local < items);
#end
#else
    for (var i = 0u; i < items; i += wg_size) {
      let item = min(i + local, items - 1u);
      store_x(item, load_x8(item, first_unit), i + local < items);
    }
#end
    workgroupBarrier();
#end
#include "quant/kernels/common/dot4_sums.wgsl"
#if passes
  }
#end

#for m in 0..rows
#include "quant/kernels/common/halve.wgsl" m=$m count=$columns step=$(lanes / 2)
#end
  workgroupBarrier();
#if gated
  const pairs = columns / 4u;
  for (var i = local; i < sets * rows * pairs; i += wg_size) {
    let which = i / (rows * pairs);
    let m = i / pairs % rows;
    let c = i % pairs * 2u;
    let n = (first_block + which) * (columns / 2u) + c;
    if (n < half) {
      let gates = totals_of(which, m, c);
      let ups = totals_of(which, m, c + columns / 2u);
      let g = vec2<f32>(finish(gates.x, 0u, n), finish(gates.y, 0u, min(n + 1u, half - 1u)));
      let up = vec2<f32>(finish(ups.x, 0u, half + n), finish(ups.y, 0u, min(half + n + 1u, params.n - 1u)));
      let pair = g / (1.0 + exp(-g)) * up;
      let at = m * half + n;
#include "quant/kernels/common/store2.wgsl" to=y
    }
  }
#elif heads_normed
  var low = vec2<f32>(0.0);
  var high = vec2<f32>(0.0);
  if (local < finishers) {
    low = totals_of(own_set, own_m, own_c) * factor() + fetched.added_low;
    high = totals_of(own_set, own_m, own_c + columns / 2u) * factor() + fetched.added_high;
    head_squares[local] = dot(low, low) + dot(high, high);
  }
  workgroupBarrier();
  if (local < finishers && own_n < params.n) {
    var squares = 0.0;
    for (var i = 0u; i < finishers; i++) { squares += head_squares[i]; }
    let scale = head_scale(squares, own_n);
    place_halves(own_m, own_n, low * (scale * norm_low), high * (scale * norm_high), fetched);
  }
#elif at_once && in_halves
  if (local < finishers) {
    finish_halves(own_m, own_n, totals_of(own_set, own_m, own_c), totals_of(own_set, own_m, own_c + columns / 2u), fetched);
  }
#elif at_once
  if (local < finishers) { finish2(own_m, own_n, totals_of(own_set, own_m, own_c), fetched); }
#elif in_halves
  const pairs = columns / 4u;
  for (var i = local; i < sets * rows * pairs; i += wg_size) {
    let which = i / (rows * pairs);
    let m = i / pairs % rows;
    let c = i % pairs * 2u;
    let n = column_of((first_block + which) * (columns / 2u) + c);
    put_halves(m, n, totals_of(which, m, c), totals_of(which, m, c + columns / 2u));
  }
#else
  const pairs = columns / 2u;
  for (var i = local; i < sets * rows * pairs; i += wg_size) {
    let which = i / (rows * pairs);
    let m = i / pairs % rows;
    let c = i % pairs * 2u;
    put2(0u, m, (first_block + which) * columns + c, totals_of(which, m, c));
  }
#end
}
