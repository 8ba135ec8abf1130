// Shape descriptors and flat indices. dims are right-aligned to 8: entry 7 is the last dim.
struct TensorMeta { dims: array<vec4<u32>, 2>, strides: array<vec4<u32>, 2> }

// Index of the workgroup in a grid that may have been folded to 2-D.
fn flat_group(group: vec3<u32>, groups: vec3<u32>) -> u32 { return group.y * groups.x + group.x; }

// Index of the invocation likewise, for one-dimensional workgroups of `size`.
fn flat_id(group: vec3<u32>, groups: vec3<u32>, local: u32, size: u32) -> u32 {
  return flat_group(group, groups) * size + local;
}

// Elementwise kernels: invocations of a workgroup, and words each of them writes. per_word() of op.h is their grid.
const wide_group: u32 = 256u;
const per_invocation: u32 = 4u;
