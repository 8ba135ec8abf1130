// y[row] = sum over keys of softmax(scale q[row] . k[key] + mask) v[key] for few query rows, in one dispatch.
// One workgroup per query row, `shared` heads and split of the keys; grid (heads / shared, splits, batch * rows). `team`
// lanes share a key, each has every team-th unit of its columns, and a team takes `steps` keys at a time. The loads of a pass
// come before anything that needs the position: what turns out to lie behind the last key is left out afterwards.
// Teams are joined by shuffles within `block` lanes, then through workgroup memory. Of several splits each leaves its part
// in `partial`, and the last one to be counted joins them. WGSL has no release fence between workgroups: parts are put
// down by exchanges, and the counter is raised behind a barrier that waits for what they gave back.
// With new_rows the call puts rows into the caches: split 0 reads them where they are, one team each, and writes them.
// Keys of the caches end before them, so that nobody uses what is written meanwhile.
// Host guarantees: keys > 0, block is a power of two from `team` to the size of a subgroup, neighbouring invocations share
// subgroups, threads is a multiple of block and at least shared * size4; shared divides the query heads of a head of k; with
// new_rows there is no mask, and a team for each row; split_keys is threads / team * steps, or with `passes` a multiple of
// it; partial starts with a counter of 0 for each row of a head.
#option size 4..256
#option team 4..8
#option block 8..32
#option steps 1..8
#option threads 32..512
#option shared 1 | 2  // query heads of a workgroup: they have a head of k and v in common
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
#require shared * threads * size <= 4096 * block && threads * 4 >= shared * size
#require !(new_rows && has_mask)
#enable subgroups
#let unit = 4 + 4 * (size % 8 == 0)
#let units = size / unit
#let quads = unit / 4
#let columns = (units + team - 1) / team
#let idle = units % team != 0  // lanes, in the last column
#let set = shared * (size / 4)
#let slots = threads / set - (threads / set > 8) * (threads / set - 8)  // sets that join splits, at most 8
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
const set_size = $(set)u;  // invocations that have the sums of all heads, four each
#if split
const pitch = size + 2u;  // of partial: sums, peak, total
const slots = $(slots)u;
var<workgroup> sums: array<vec4<f32>, max(cells * set_size, threads)>;
var<workgroup> marks: array<vec2<f32>, $(shared)u * max(cells, slots)>;  // peak, total
var<workgroup> is_last: u32;
#else
var<workgroup> sums: array<vec4<f32>, cells * set_size>;
var<workgroup> marks: array<vec2<f32>, $(shared)u * cells>;
#end

#if fixed_slot
fn first_key() -> u32 { return 0x80000000u | $(start_slot)u; }
#else
fn first_key() -> u32 { return params.start; }
#end
@compute @workgroup_size(threads)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let head = group.x * $(shared)u;
  let split = group.y;
  let lane = local % team;
  let own = local / team;
#if fixed
  const batch = 0u;
  const row = 0u;
  const q_head = $(q_head)u;
  let q_at = head * q_head;
  let k_at = head / $(group)u * ($(k_head)u / unit);
  const k_row = $(k_row)u / unit;
  const last_key = $(capacity - 1)u;
#else
  let batch = group.z / params.rows;
  let row = group.z % params.rows;
  let q_head = params.q_strides.y;
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
#for h in 0..shared
  let q_$(h)_$(c) = read_q((q_at + $(h)u * q_head) / unit + column_$(c));
#end
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

#for h in 0..shared
#for c in 0..columns
#if idle && c + 1 == columns
  let q_low_$(h)_$(c) = select(vec4<f32>(0.0), low_q(q_$(h)_$(c)) * params.scale, has_last);
#if unit == 8
  let q_high_$(h)_$(c) = select(vec4<f32>(0.0), high_q(q_$(h)_$(c)) * params.scale, has_last);
#end
#else
  let q_low_$(h)_$(c) = low_q(q_$(h)_$(c)) * params.scale;
#if unit == 8
  let q_high_$(h)_$(c) = high_q(q_$(h)_$(c)) * params.scale;
#end
#end
#end

  var peak_$(h) = lowest;
  var total_$(h) = 0.0;
#for c in 0..columns
  var sum_low_$(h)_$(c) = vec4<f32>(0.0);
#if unit == 8
  var sum_high_$(h)_$(c) = vec4<f32>(0.0);
#end
#end
#end
#if new_rows
#include "attention/common/decode_new_rows.wgsl"
#end

#if passes
  loop {
#end
#include "attention/common/decode_pass.wgsl"
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

#include "attention/common/decode_teams.wgsl"

  var peak = lowest;
  var total = 0.0;
  var sum = vec4<f32>(0.0);
#if shared == 1
  const own_head = 0u;
#else
  let own_head = local % set_size / size4;
#end
  let own_quad = local % size4;
#if split
  let item = group.z * params.heads + head;
#end
  if (local < set_size) {
#include "attention/common/join_sets.wgsl" sets=$(threads / block)
#if split
    if (live_splits == 1u) {
      put4_y(q_at + own_head * q_head, own_quad, sum / total);
    } else {
      let to = $(counters)u + ((item + own_head) * params.splits + split) * pitch;
      var old = 0u;
#for i in 0..4
      old |= atomicExchange(&partial[to + 4u * own_quad + $(i)u], bitcast<u32>(sum[$(i)]));
#end
      if (own_quad == 0u) {
        old |= atomicExchange(&partial[to + size], bitcast<u32>(peak));
        old |= atomicExchange(&partial[to + size + 1u], bitcast<u32>(total));
      }
      if (old == 0xffffffffu) { is_last = 2u; }  // written again below: only so that the exchanges are waited for
    }
#else
    put4_y(q_at + own_head * q_head, own_quad, sum / total);
#end
  }
#if split
  if (live_splits == 1u) { return; }
#include "attention/common/last_split.wgsl"
#include "attention/common/join.wgsl"
  put4_y(q_at + own_head * q_head, own_quad, sum / total);
#end
}
