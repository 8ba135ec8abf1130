// fn epilogue(v: f32, batch: u32, m: u32, n: u32) -> f32: alpha * v, and beta times what is added.
#option has_add
#if has_add
#tensor add read f16 | f32
#end
fn epilogue(v: f32, batch: u32, m: u32, n: u32) -> f32 {
#if has_add
  let at = batch * params.add_batch + m * params.add_row + n * params.add_column;
  return params.alpha * v + params.beta * load_add(at);
#else
  return params.alpha * v;
#end
}
