// The operators that are matrix products: arguments, shapes, CPU kernel. SPDX-License-Identifier:
// BSD-3-Clause
#include "pteryx/ops/matmul/matmul.h"

#include <algorithm>
#include <cmath>

#include "pteryx/ops/strided.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

// Where an operator keeps its arguments; -1: it has none.
struct Form {
  std::span<const Arg> args;
  int8_t a, b, add, beta, alpha;
  uint8_t rank;        // of the operands; 0: any, with b as [N, K]
  bool slots = false;  // has kActivation and what follows
};
enum Slot : uint8_t { kActivation = 3, kScale, kResidual, kTransposed };

constexpr Arg kBias{.name = "bias", .max_rank = 1, .optional = true};
constexpr Arg kLinearArgs[] = {in("x", kAnyType, 1), in("weight", kAnyType, 2, 2), kBias, out("y")};
constexpr Arg kFusedArgs[] = {in("x", kFloats, 1),
                              in("weight", kFloats, 2, 2),
                              {.name = "bias", .types = kFloats, .max_rank = 1, .optional = true},
                              text("activation"),
                              optional_in("scale", kFloats),
                              optional_in("residual", kFloats),
                              optional_number("transposed"),
                              out("y", kFloats)};
constexpr Arg kMmArgs[] = {in("a", kAnyType, 2, 2), in("b", kAnyType, 2, 2), out("y")};
constexpr Arg kBmmArgs[] = {in("a", kAnyType, 3, 3), in("b", kAnyType, 3, 3), out("y")};
constexpr Arg kAddmmArgs[] = {in("self"),
                              in("mat1", kAnyType, 2, 2),
                              in("mat2", kAnyType, 2, 2),
                              number("beta"),
                              number("alpha"),
                              out("y")};
constexpr Arg kBaddbmmArgs[] = {in("self"),
                                in("batch1", kAnyType, 3, 3),
                                in("batch2", kAnyType, 3, 3),
                                number("beta"),
                                number("alpha"),
                                out("y")};

struct Row {
  std::string_view name;
  std::string_view spelling;
  Form form;
};
constexpr Row kRows[] = {
    {"aten.linear.default", "aten::linear.out", {kLinearArgs, 0, 1, 2, -1, -1, 0}},
    {kFusedLinear, "", {kFusedArgs, 0, 1, 2, -1, -1, 0, true}},
    {"aten.mm.default", "aten::mm.out", {kMmArgs, 0, 1, -1, -1, -1, 2}},
    {"aten.bmm.default", "aten::bmm.out", {kBmmArgs, 0, 1, -1, -1, -1, 3}},
    {"aten.addmm.default", "aten::addmm.out", {kAddmmArgs, 1, 2, 0, 3, 4, 2}},
    {"aten.baddbmm.default", "aten::baddbmm.out", {kBaddbmmArgs, 1, 2, 0, 3, 4, 3}},
};

const Form& form(const Node& n) { return static_cast<const Row*>(n.def().row)->form; }
size_t at(int8_t arg) { return static_cast<size_t>(arg); }

// Sizes and the shape of y, from the operands alone.
struct Sizes {
  int64_t batches = 1;
  int64_t m = 1;
  int64_t n = 0;
  int64_t k = 0;
  Dims y;
};
Result<Sizes> sizes(const Node& n) {
  const Form& f = form(n);
  const Tensor a = n.in(at(f.a));
  const Tensor b = n.in(at(f.b));
  Sizes s;
  s.y = a.dims;
  s.k = a.dim(-1);
  if (f.rank == 0) {
    s.m = a.rows();
    s.n = b.dims[0];
  } else {
    s.m = a.dim(-2);
    s.n = b.dim(-1);
  }
  s.y[a.rank() - 1] = s.n;
  Dims wanted = f.rank == 0 ? Dims{s.n, s.k} : Dims{s.k, s.n};
  if (f.rank == 3) {
    s.batches = a.dims[0];
    wanted.insert(0, s.batches);
  }
  PTERYX_TRY(n.expect(at(f.b), "shape", wanted, b.dims));
  return s;
}

bool is_transposed(const Node& n) {
  return form(n).slots && n.has(kTransposed) && n.flag(kTransposed);
}

bool has_add(const Node& n) {
  const Form& f = form(n);
  return f.add >= 0 && n.has(at(f.add)) && (f.beta < 0 || n.number(at(f.beta)) != 0.0);
}

Status shape(const Node& n, Shapes& out) {
  PTERYX_ASSIGN(const Sizes s, sizes(n));
  const Form& f = form(n);
  if (f.add >= 0 && n.has(at(f.add))) {
    const Dims& add = n.in(at(f.add)).dims;
    const auto both = broadcast(add, s.y);
    if (!both || *both != s.y) {
      return n.mismatch(at(f.add), "shape",
                        fmt::format("one that broadcasts to {}", to_string(s.y)), to_string(add));
    }
  }
  if (!f.slots) return out.set(s.y);
  const Dims y = is_transposed(n) ? Dims{s.n, s.m} : s.y;
  const std::string_view activation = n.text(kActivation);
  if (!activation.empty() &&
      std::ranges::find(kActivationNames, activation) == kActivationNames.end())
    return n.malformed(kActivation, "value", "none, relu, silu, gelu or gelu_tanh", activation);
  if (n.has(kScale)) PTERYX_TRY(n.expect(kScale, "shape", {s.n}, n.in(kScale).dims));
  if (n.has(kResidual)) PTERYX_TRY(n.expect(kResidual, "shape", y, n.in(kResidual).dims));
  return out.set(y);
}

// Products are summed in f32 on the GPU: integers are for the CPU.
bool gpu(const Node& n) {
  for (size_t i = 0; i < n.def().args.size(); ++i) {
    const graph::Tensor* t = n.graph().tensor(n.node().args[i]);
    if (t != nullptr && !is_float(t->dtype)) return false;
  }
  return true;
}

Matrix transposed(const Matrix& x) { return {x.tensor, x.batch, x.column, x.row}; }
MatMul transposed(const MatMul& d) {
  MatMul t = d;
  std::swap(t.m, t.n);
  t.a = transposed(d.b);
  t.b = transposed(d.a);
  if (d.add) t.add = transposed(*d.add);
  if (d.scale) t.scale = transposed(*d.scale);
  return t;
}

double activate(Activation a, double v) {
  switch (a) {
    case Activation::kNone: return v;
    case Activation::kRelu: return v < 0 ? 0 : v;
    case Activation::kSilu: return v / (1 + std::exp(-v));
    case Activation::kGelu: return 0.5 * v * (1 + std::erf(v * std::sqrt(0.5)));
    case Activation::kGeluTanh:
      return 0.5 * v * (1 + std::tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
  }
  return v;
}

// Elements of b that are held at a time, one column at least.
constexpr int64_t kMostHeld = 1 << 17;

// Plain: rows of a against columns of b, in double or in integers that wrap.
template <typename T, typename Get, typename Put>
void multiply(const MatMul& d, const Host& h, Get&& get, Put&& put) {
  const HostTensor a = h.host(d.a.tensor.id);
  const HostTensor b = h.host(d.b.tensor.id);
  const auto k_size = static_cast<size_t>(d.k);
  const int64_t most = std::min(std::max<int64_t>(kMostHeld / std::max<int64_t>(d.k, 1), 1), d.n);
  std::vector<T> columns(k_size * static_cast<size_t>(most));
  std::vector<T> line(k_size);
  // Those of one batch from `first` on.
  const auto multiply_some = [&](int64_t batch, int64_t first, int64_t count) {
    size_t at = 0;
    for (int64_t n = first; n < first + count; ++n) {
      for (int64_t k = 0; k < d.k; ++k)
        columns[at++] = get(b, batch * d.b.batch + k * d.b.row + n * d.b.column);
    }
    for (int64_t m = 0; m < d.m; ++m) {
      for (size_t k = 0; k < k_size; ++k)
        line[k] = get(a, batch * d.a.batch + m * d.a.row + static_cast<int64_t>(k) * d.a.column);
      for (int64_t n = 0; n < count; ++n) {
        T total = 0;
        const T* column = columns.data() + k_size * static_cast<size_t>(n);
        for (size_t k = 0; k < k_size; ++k) total += line[k] * column[k];
        put(batch, m, first + n, total);
      }
    }
  };
  for (int64_t batch = 0; batch < d.batches; ++batch) {
    for (int64_t first = 0; first < d.n; first += most)
      multiply_some(batch, first, std::min(most, d.n - first));
  }
}

Status cpu(const Node& n, const Host& h) {
  PTERYX_ASSIGN(const MatMul d, describe_matmul(n));
  const HostTensor y = h.host(d.y.id);
  const HostTensor add = d.add ? h.host(d.add->tensor.id) : y;
  const auto add_at = [&](int64_t batch, int64_t m, int64_t col) {
    return batch * d.add->batch + m * d.add->row + col * d.add->column;
  };
  const auto y_at = [&](int64_t batch, int64_t m, int64_t col) {
    return (batch * d.m + m) * d.n + col;
  };
  if (is_float(y.dtype)) {
    multiply<double>(
        d, h, [](const HostTensor& t, int64_t i) { return t.number(i); },
        [&](int64_t batch, int64_t m, int64_t col, double v) {
          v *= d.alpha;
          if (d.add) v += d.beta * add.number(add_at(batch, m, col));
          v = activate(d.activation, v);
          if (d.scale)
            v *= h.host(d.scale->tensor.id).number(m * d.scale->row + col * d.scale->column);
          if (d.residual) v += h.host(d.residual->id).number(y_at(batch, m, col));
          y.put(y_at(batch, m, col), v);
        });
    return {};
  }
  const auto alpha = static_cast<uint64_t>(static_cast<int64_t>(d.alpha));
  const auto beta = static_cast<uint64_t>(static_cast<int64_t>(d.beta));
  multiply<uint64_t>(
      d, h, [](const HostTensor& t, int64_t i) { return static_cast<uint64_t>(t.integer(i)); },
      [&](int64_t batch, int64_t m, int64_t col, uint64_t v) {
        v *= alpha;
        if (d.add) v += beta * static_cast<uint64_t>(add.integer(add_at(batch, m, col)));
        y.put_integer(y_at(batch, m, col), static_cast<int64_t>(v));
      });
  return {};
}

}  // namespace

Result<MatMul> describe_matmul(const Node& n) {
  PTERYX_ASSIGN(const Sizes s, sizes(n));
  const Form& f = form(n);
  MatMul d{.batches = s.batches,
           .m = s.m,
           .n = s.n,
           .k = s.k,
           .a = {},
           .b = {},
           .add = {},
           .y = n.out()};
  d.a = {n.in(at(f.a)), s.m * s.k, s.k, 1};
  d.b = f.rank == 0 ? Matrix{n.in(at(f.b)), 0, 1, s.k} : Matrix{n.in(at(f.b)), s.k * s.n, s.n, 1};
  if (f.alpha >= 0) d.alpha = n.number(at(f.alpha));
  if (f.beta >= 0) d.beta = n.number(at(f.beta));
  if (has_add(n)) {
    const Tensor add = n.in(at(f.add));
    const Dims strides = broadcast_strides(add.dims, {s.batches, s.m, s.n});
    d.add = Matrix{add, strides[0], strides[1], strides[2]};
  }
  if (f.slots) {
    for (size_t i = 0; i < kActivationNames.size(); ++i) {
      if (n.text(kActivation) == kActivationNames[i]) d.activation = static_cast<Activation>(i);
    }
    if (n.has(kScale)) d.scale = Matrix{n.in(kScale), 0, 0, 1};
    if (n.has(kResidual)) d.residual = n.in(kResidual);
    if (is_transposed(n)) d = transposed(d);
  }
  // A single column is a single row of the transposed product, with y as it is.
  if (d.n == 1 && d.m > 1) d = transposed(d);
  return d;
}

MatMul MatMul::unfinished(const Tensor& parts) const {
  MatMul d = *this;
  d.add.reset();
  d.scale.reset();
  d.residual.reset();
  d.activation = Activation::kNone;
  d.y = parts;
  return d;
}

void add_matmul(std::vector<OpDef>& table) {
  for (const Row& r : kRows) {
    table.push_back({.name = r.name,
                     .spellings = std::span(&r.spelling, r.spelling.empty() ? 0 : 1),
                     .args = r.form.args,
                     .shape = shape,
                     .plan = plan_by_route,
                     .gpu = gpu,
                     .cpu = cpu,
                     .fast = matmul_fast,
                     .family = "matmul",
                     .routes = matmul_routes(),
                     .row = &r});
  }
}

}  // namespace pteryx::ops
