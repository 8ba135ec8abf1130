// What the routes of quantised linear layers share: weights in whole vectors, the texts that read
// operands and write results, params.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pteryx/ops/quant/qlinear.h"
#include "pteryx/ops/shaders/qlinear_naive.h"

namespace pteryx::ops::qlinear {

using Params = shaders::QlinearNaiveParams;  // all routes include one
Params make_params(const QLinear& d);

// ---------------------------------------------------------------- weights

// Codes in a vec4<u32>: what the fast routes fetch at once.
int64_t unit(const QLinear& d);
// Every unit has one scale.
bool one_scale(const QLinear& d);
// Whether rows are whole vectors with the even code in the low nibble, or can be laid out so.
bool has_vectors(const Node& n, const QLinear& d);
// Lays the weight out so, where it is not.
Status use_vectors(const Node& n, Plan& p, QLinear& d);
Bind bind_vectors(const QLinear& d);

// fn scale
std::string scale_text(const QLinear& d);
// fn code: a single one, from weights bound for reading by element.
std::string code_text(const QLinear& d);
// unit and fetch of common/qlinear.wgsl; the other two are code_offset, quad and unit_scale.
std::string fetch_text(const QLinear& d);
std::string quad_text(const QLinear& d);

// ---------------------------------------------------------------- x and y

Bind bind_x(const QLinear& d);
// fn x4 of common/qlinear.wgsl.
std::string x4_text(const QLinear& d);
// fn finish(v, i, n): factor, bias, and the residual of element i of y.
std::string finish_text(const QLinear& d);
// fn put2 of common/qlinear.wgsl, for results that are finished, or for parts of them.
std::string put_text(const QLinear& d);
std::string put_parts_text();
// What finish reads: bias and residual.
void bind_added(const QLinear& d, std::vector<Bind>& bind);
// The same, and the results that put2 writes.
void bind_results(const QLinear& d, std::vector<Bind>& bind);

// A result and the columns it has.
struct Columns {
  Tensor y;
  int64_t first = 0;
  int64_t width = 0;
};
std::vector<Columns> results(const QLinear& d);
// first_column and width, for kernels that make one result at a time.
std::string columns_text(size_t result);

// The description with x as the product reads it: codes are rounded to first where it has a scale
// for each row.
Result<QLinear> prepare(const Node& n, Plan& p);

// The bindings and texts of a fast route; `text` is its own.
struct Pieces {
  std::vector<Bind> bind;
  std::string prelude;
};
Pieces pieces(const QLinear& d, std::string_view text, bool finished);

// Adds up the parts of a product whose k was cut.
Status plan_merge(const Node& n, Plan& p, const QLinear& d, const Tensor& parts, int64_t splits);

inline int64_t up(int64_t n, int64_t step) { return (n + step - 1) / step; }

}  // namespace pteryx::ops::qlinear
