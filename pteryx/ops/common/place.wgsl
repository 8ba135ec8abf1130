// place_NAME(i, extent): the place that element i of an index names, -1 for one outside, which is then reported.
#option name text
#option arg 0..63
#option from_end
#option reports
#if reports
#include "common/faults.wgsl"
#end
fn place_$(name)(i: u32, extent: i32) -> i32 {
  let value = load_$(name)(i);
#if from_end
  let place = select(value, value + extent, value < 0);
#else
  let place = value;
#end
  if (place >= 0 && place < extent) { return place; }
#if reports
  report_outside($(arg)u, i, value, extent);
#end
  return -1;
}
