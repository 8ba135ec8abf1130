// Four results side by side in a row, summed over one row of the kernel.

fn x_at(row: u32, column: i32) -> f32 {
  if (column < 0 || column >= i32(params.in_size.z)) { return 0.0; }
  return load_x(row + u32(column));
}

// `row` and `kernel_row` are where the input row and the kernel row begin, `column` is what the first result and the
// first kernel entry meet. Where stride and dilation agree the four inputs only shift from entry to entry, so each is
// read once.
fn add_row(sum: vec4<f32>, row: u32, kernel_row: u32, column: i32) -> vec4<f32> {
  let step = i32(params.stride.z);
  let dilation = i32(params.dilation.z);
  var total = sum;
  if (step == dilation) {
    var v = vec4<f32>(0.0, x_at(row, column), x_at(row, column + step), x_at(row, column + 2 * step));
    for (var k = 0u; k < params.kernel.z; k++) {
      v = vec4<f32>(v.yzw, x_at(row, column + (i32(k) + 3) * step));
      total += load_weight(kernel_row + k) * v;
    }
    return total;
  }
  for (var k = 0u; k < params.kernel.z; k++) {
    let at = column + i32(k) * dilation;
    total += load_weight(kernel_row + k) *
        vec4<f32>(x_at(row, at), x_at(row, at + step), x_at(row, at + 2 * step), x_at(row, at + 3 * step));
  }
  return total;
}
