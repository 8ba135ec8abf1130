// y[row] = sum over keys of softmax(scale q[row] . k[key] + mask) v[key] for few query rows, in one dispatch.
// One workgroup per query row, head and split of the keys; grid (heads, splits, batch * rows). `team` lanes share a key,
// each has every team-th unit of its columns, and a team takes `steps` keys at a time. The loads of a pass come before
// anything that needs the position: what turns out to lie behind the last key is left out afterwards.
// Teams are joined by shuffles within `block` lanes, then through workgroup memory. Of several splits each leaves its part
// in `partial`, and the last one to be counted joins them. WGSL has no release fence between workgroups: parts are put
// down by exchanges, and the counter is raised behind a barrier that waits for what they gave back.
// With new_rows the call puts rows into the caches: split 0 reads them where they are, one team each, and writes them.
// Keys of the caches end before them, so that nobody uses what is written meanwhile.
// Host guarantees: keys > 0, block is a power of two from `team` to the size of a subgroup, neighbouring invocations share
// subgroups, threads is a multiple of block and at least size4; with new_rows there is no mask, and a team for each row;
// split_keys is threads / team * steps, or with `passes` a multiple of it; partial starts with a counter of 0 for each
// row of a head.
#option size 4..256
#option team 4..8
#option block 8..32
#option steps 1..8
#option threads 32..512
#option split
#option counters 1..4096  // words of partial before the first that is data
#option passes    // a split may be longer than what is loaded at once
#option new_rows
#option fixed     // one row of one batch: nothing that loads wait for is left to params
#if fixed
#option q_head 0..2147483647  // elements from a head to the next
#option k_head 0..2147483647
#option k_row 0..2147483647   // and from a key to the next
#option group 1..65536
#option capacity 1..2147483647
#option inside  // the keys of all splits are within the capacity
#option fixed_slot  // of the live scalars, that says where the row is
#option start_slot 0..65535
#else
#let inside = 0
#let fixed_slot = 0
#end
#option has_mask
#option live_slots
#option q_type f16 | f32
#option k_type f16 | f32
#option v_type f16 | f32
#option y_type f16 | f32
#if new_rows
#option k_rows_type f16 | f32
#option v_rows_type f16 | f32
#end
#require size % 4 == 0
#require team == 4 || team == 8
#require steps * size <= 64 * team
#require threads * size <= 4096 * block && threads * 4 >= size
#require !(new_rows && has_mask)
#enable subgroups
#let unit = 4 + 4 * (size % 8 == 0)
#let units = size / unit
#let quads = unit / 4
#let columns = (units + team - 1) / team
#let idle = units % team != 0  // lanes, in the last column
#tensor q raw vector_$q_type
#if new_rows
#tensor k_rows raw vector_$k_rows_type
#tensor v_rows raw vector_$v_rows_type
#tensor k raw_write vector_$k_type
#tensor v raw_write vector_$v_type
#else
#tensor k raw vector_$k_type
#tensor v raw vector_$v_type
#end
#if has_mask
#tensor mask read bool | f16 | f32
#end
#if split
#tensor partial raw_write atomic<u32>
#end
#include "attention/common/attention.wgsl"
#include "attention/common/result.wgsl"
#include "attention/common/unit.wgsl" name=q type=$q_type
#include "attention/common/unit.wgsl" name=k type=$k_type
#include "attention/common/unit.wgsl" name=v type=$v_type
#if new_rows
#include "attention/common/new_rows.wgsl" name=k type=$k_rows_type cache_type=$k_type
#include "attention/common/new_rows.wgsl" name=v type=$v_rows_type cache_type=$v_type
#end

#if unit == 8
alias vector_f16 = vec4<u32>;
#else
alias vector_f16 = vec2<u32>;
#end
alias vector_f32 = vec4<f32>;
const unit = $(unit)u;
const units = $(units)u;
const team = $(team)u;
const threads = $(threads)u;
const teams = threads / team;
const cells = threads / $(block)u;
#if split
const pitch = size + 2u;  // of partial: sums, peak, total
const slots = threads / size4;
var<workgroup> sums: array<vec4<f32>, max(cells * size4, threads)>;
var<workgroup> marks: array<vec2<f32>, max(cells, slots)>;  // peak, total
var<workgroup> is_last: u32;
#else
var<workgroup> sums: array<vec4<f32>, cells * size4>;
var<workgroup> marks: array<vec2<f32>, cells>;
#end

#if fixed_slot
fn first_key() -> u32 { return 0x80000000u | $(start_slot)u; }
#else
fn first_key() -> u32 { return params.start; }
#end
@compute @workgroup_size(threads)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let head = group.x;
  let split = group.y;
  let lane = local % team;
  let own = local / team;
#if fixed
  const batch = 0u;
  const row = 0u;
  let q_at = head * $(q_head)u;
  let k_at = head / $(group)u * ($(k_head)u / unit);
  const k_row = $(k_row)u / unit;
  const last_key = $(capacity - 1)u;
#else
  let batch = group.z / params.rows;
  let row = group.z % params.rows;
  let q_at = q_offset(batch, head, row);
  let k_at = k_offset(batch, head, 0u) / unit;
  let k_row = params.k_strides.z / unit;
  let last_key = params.capacity - 1u;
#end
#if passes
  let split_keys = params.split_keys;
#else
  const split_keys = $(steps)u * teams;
#end
#for c in 0..columns
#if idle && c + 1 == columns
  let has_last = lane + $(team * c)u < units;
  let column_$(c) = min(lane + $(team * c)u, units - 1u);
#else
  let column_$(c) = lane + $(team * c)u;
#end
  let q_$(c) = read_q(q_at / unit + column_$(c));
#end
  var base = split * split_keys;
#if inside
  let first_at = k_at + (base + own) * k_row;
#end
#for s in 0..steps
#if inside
  var at_$(s) = first_at + $(s)u * teams * k_row;
#else
  var at_$(s) = k_at + min(base + own + $(s)u * teams, last_key) * k_row;
#end
#end
#for s in 0..steps
#for c in 0..columns
  var k_$(s)_$(c) = read_k(at_$(s) + column_$(c));
#end
#end
#for s in 0..steps
#for c in 0..columns
  var v_$(s)_$(c) = read_v(at_$(s) + column_$(c));
#end
#end
#if new_rows
  let new_at = ((batch * params.rows + min(own, params.rows - 1u)) * (params.heads / params.group) + head / params.group) * units;
#for c in 0..columns
  let new_k_$(c) = read_k_rows(new_at + column_$(c));
  let new_v_$(c) = read_v_rows(new_at + column_$(c));
#end
  let end = u32(live(first_key()));
#elif fixed
  let end = u32(live(first_key())) + 1u;
#else
  let end = keys_of(row);
#end
#if split
  let live_splits = max((end + split_keys - 1u) / split_keys, 1u);
  if (split >= live_splits) { return; }
#end

#for c in 0..columns
#if idle && c + 1 == columns
  let q_low_$(c) = select(vec4<f32>(0.0), low_q(q_$(c)) * params.scale, has_last);
#if unit == 8
  let q_high_$(c) = select(vec4<f32>(0.0), high_q(q_$(c)) * params.scale, has_last);
#end
#else
  let q_low_$(c) = low_q(q_$(c)) * params.scale;
#if unit == 8
  let q_high_$(c) = high_q(q_$(c)) * params.scale;
#end
#end
#end

  var peak = lowest;
  var total = 0.0;
#for c in 0..columns
  var sum_low_$(c) = vec4<f32>(0.0);
#if unit == 8
  var sum_high_$(c) = vec4<f32>(0.0);
#end
#end
#if new_rows
  var new_score = 0.0;
#for c in 0..columns
  new_score += dot(q_low_$(c), kept_k(low_k_rows(new_k_$(c))));
#if unit == 8
  new_score += dot(q_high_$(c), kept_k(high_k_rows(new_k_$(c))));
#end
#end
  new_score += subgroupShuffleXor(new_score, 1u);
  new_score += subgroupShuffleXor(new_score, 2u);
#if team == 8
  new_score += subgroupShuffleXor(new_score, 4u);
#end
  if (split == 0u && own < params.rows) {
    if (end + own < keys_of(row)) {
      peak = new_score;
      total = 1.0;
#for c in 0..columns
      sum_low_$(c) = kept_v(low_v_rows(new_v_$(c)));
#if unit == 8
      sum_high_$(c) = kept_v(high_v_rows(new_v_$(c)));
#end
#end
    }
    if (row == 0u && head % params.group == 0u) {
      let to = k_at + (end + own) * k_row;
#for c in 0..columns
#if idle && c + 1 == columns
      if (has_last) {
        write_k(to + column_$(c), new_k_$(c));
        write_v(to + column_$(c), new_v_$(c));
      }
#else
      write_k(to + column_$(c), new_k_$(c));
      write_v(to + column_$(c), new_v_$(c));
#end
#end
    }
  }
#end

#if passes
  loop {
#end
#for s in 0..steps
    let key_$(s) = base + own + $(s)u * teams;
    var score_$(s) = 0.0;
#for c in 0..columns
    score_$(s) += dot(q_low_$(c), low_k(k_$(s)_$(c)));
#if unit == 8
    score_$(s) += dot(q_high_$(c), high_k(k_$(s)_$(c)));
#end
#end
#end
#for s in 0..steps
    score_$(s) += subgroupShuffleXor(score_$(s), 1u);
#end
#for s in 0..steps
    score_$(s) += subgroupShuffleXor(score_$(s), 2u);
#end
#if team == 8
#for s in 0..steps
    score_$(s) += subgroupShuffleXor(score_$(s), 4u);
#end
#end
    var next = peak;
#for s in 0..steps
    score_$(s) = select(lowest, masked(score_$(s), batch, head, row, min(key_$(s), end - 1u)), key_$(s) < end);
    next = max(next, score_$(s));
#end
#for d in 0..3
#if team * (1 + d + d / 2) < block
    next = max(next, subgroupShuffleXor(next, $(team * (1 + d + d / 2))u));
#end
#end
    let fade = decay(peak - next);
    peak = next;
    total *= fade;
#for c in 0..columns
    sum_low_$(c) *= fade;
#if unit == 8
    sum_high_$(c) *= fade;
#end
#end
    // What lies behind the last key may be anything: it is not even multiplied.
#for s in 0..steps
    if (key_$(s) < end) {
      let weight = decay(score_$(s) - peak);
      total += weight;
#for c in 0..columns
      sum_low_$(c) += weight * low_v(v_$(s)_$(c));
#if unit == 8
      sum_high_$(c) += weight * high_v(v_$(s)_$(c));
#end
#end
    }
#end
#if passes
    base += $(steps)u * teams;
    if (base >= min(end, (split + 1u) * split_keys)) { break; }
#for s in 0..steps
#if inside
    at_$(s) += $(steps)u * teams * k_row;
#else
    at_$(s) = k_at + min(base + own + $(s)u * teams, last_key) * k_row;
#end
#end
#for s in 0..steps
#for c in 0..columns
    k_$(s)_$(c) = read_k(at_$(s) + column_$(c));
#end
#end
#for s in 0..steps
#for c in 0..columns
    v_$(s)_$(c) = read_v(at_$(s) + column_$(c));
#end
#end
  }
#end

#for d in 0..3
#if team * (1 + d + d / 2) < block
  total += subgroupShuffleXor(total, $(team * (1 + d + d / 2))u);
#end
#end
#for c in 0..columns
#if unit == 8
  let part_0_$(2 * c) = sum_low_$(c);
  let part_0_$(2 * c + 1) = sum_high_$(c);
#else
  let part_0_$(c) = sum_low_$(c);
#end
#end
  var part_first = 0u;
  var part_owner = true;
#let count_0 = columns * quads
#let count_1 = count_0 - (team < block) * (count_0 % 2 == 0) * (count_0 / 2)
#let count_2 = count_1 - (2 * team < block) * (count_1 % 2 == 0) * (count_1 / 2)
#let count_3 = count_2 - (4 * team < block) * (count_2 % 2 == 0) * (count_2 / 2)
#let stages = (team < block) + (2 * team < block) + (4 * team < block)
#if stages > 0
#include "attention/common/halve.wgsl" stage=0 count=$count_0 distance=$team
#end
#if stages > 1
#include "attention/common/halve.wgsl" stage=1 count=$count_1 distance=$(2*team)
#end
#if stages > 2
#include "attention/common/halve.wgsl" stage=2 count=$count_2 distance=$(4*team)
#end
  let cell = local / $(block)u;
#for p in 0..count_3
  {
    let part = part_first + $(p)u;
    let column = lane + part / $(quads)u * team;
    if (part_owner && column < units) {
      sums[cell * size4 + column * $(quads)u + part % $(quads)u] = part_$(stages)_$(p);
    }
  }
#end
  if (local % $(block)u == 0u) { marks[cell] = vec2<f32>(peak, total); }
  workgroupBarrier();

#if split
  let item = group.z * params.heads + head;
#end
  if (local < size4) {
    peak = lowest;
#include "attention/common/join_cells.wgsl"
#if split
    if (live_splits == 1u) {
      put4_y(q_at, local, sum / total);
    } else {
      let to = $(counters)u + (item * params.splits + split) * pitch;
      var old = 0u;
#for i in 0..4
      old |= atomicExchange(&partial[to + 4u * local + $(i)u], bitcast<u32>(sum[$(i)]));
#end
      if (local == 0u) {
        old |= atomicExchange(&partial[to + size], bitcast<u32>(peak));
        old |= atomicExchange(&partial[to + size + 1u], bitcast<u32>(total));
      }
      if (old == 0xffffffffu) { is_last = 2u; }  // written again below: only so that the exchanges are waited for
    }
#else
    put4_y(q_at, local, sum / total);
#end
  }
#if split
  if (live_splits == 1u) { return; }
#include "attention/common/last_split.wgsl"
#include "attention/common/join.wgsl"
  put4_y(q_at, local, sum / total);
#end
}
