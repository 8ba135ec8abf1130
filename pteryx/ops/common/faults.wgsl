// Whoever finds the slot of its node untouched fills it: raised and the argument, element, value and extent (kFaultWords of
// index_bound.h). The params have the number of the slot.
#tensor faults raw_write atomic<u32>
fn report_outside(arg: u32, element: u32, value: i32, extent: i32) {
  let at = params.fault * 4u;
  if (atomicOr(&faults[at], 0x80000000u) != 0u) { return; }
  atomicStore(&faults[at], 0x80000000u | arg);
  atomicStore(&faults[at + 1u], element);
  atomicStore(&faults[at + 2u], bitcast<u32>(value));
  atomicStore(&faults[at + 3u], u32(extent));
}
