// Of attention_decode, behind the keys: joins the teams of a block by shuffles, and puts what a block has of each head into
// workgroup memory: `sums` and `marks`.
#for h in 0..shared
#for d in 0..3
#if team * (1 + d + d / 2) < block
  total_$(h) += subgroupShuffleXor(total_$(h), $(team * (1 + d + d / 2))u);
#end
#end
#end
#let parts = columns * quads  // of a head
#for h in 0..shared
#for c in 0..columns
  let part_0_$(h * parts + quads * c) = sum_low_$(h)_$(c);
#if unit == 8
  let part_0_$(h * parts + quads * c + 1) = sum_high_$(h)_$(c);
#end
#end
#end
  var part_first = 0u;
  var part_owner = true;
#let count_0 = shared * parts
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
#if shared == 1
    let part = part_first + $(p)u;
    let first = cell * size4;
#else
    let part = (part_first + $(p)u) % $(parts)u;
    let first = (cell * $(shared)u + (part_first + $(p)u) / $(parts)u) * size4;
#end
    let column = lane + part / $(quads)u * team;
    if (part_owner && column < units) {
      sums[first + column * $(quads)u + part % $(quads)u] = part_$(stages)_$(p);
    }
  }
#end
  if (local % $(block)u == 0u) {
#for h in 0..shared
    marks[cell * $(shared)u + $(h)u] = vec2<f32>(peak_$(h), total_$(h));
#end
  }
  workgroupBarrier();
