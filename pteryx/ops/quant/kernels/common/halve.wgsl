// Of sumM_COUNT_0 .. of row m, each the sum of one column over `lanes` neighbours: by exchanging halves, so that all of them
// cost little more than one. The sums go to `totals`.
#option m 0..7
#option count 1..8
#option step 0..32
#if count > 1
#let half = count / 2
  let upper$(m)_$count = lane / $(step)u % 2u == 1u;
#for i in 0..half
  let sum$(m)_$(half)_$i = select(sum$(m)_$(count)_$i, sum$(m)_$(count)_$(i + half), upper$(m)_$count) +
      subgroupShuffleXor(select(sum$(m)_$(count)_$(i + half), sum$(m)_$(count)_$i, upper$(m)_$count), $(step)u);
#end
#include "quant/kernels/common/halve.wgsl" m=$m count=$half step=$(step / 2)
#else
  var total$m = sum$(m)_1_0;
#if step >= 16
  total$m += subgroupShuffleXor(total$m, 16u);
#end
#if step >= 8
  total$m += subgroupShuffleXor(total$m, 8u);
#end
#if step >= 4
  total$m += subgroupShuffleXor(total$m, 4u);
#end
#if step >= 2
  total$m += subgroupShuffleXor(total$m, 2u);
#end
#if step >= 1
  total$m += subgroupShuffleXor(total$m, 1u);
#end
  if (lane % (lanes / columns) == 0u) { totals[(owner * rows + $(m)u) * columns + lane / (lanes / columns)] = total$m; }
#end
