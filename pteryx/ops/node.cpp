// Node and Shapes: reading a call's arguments, writing its result's shape. SPDX-License-Identifier:
// BSD-3-Clause
#include <cmath>

#include "pteryx/ops/op.h"

namespace pteryx::ops {
namespace {

using graph::LiveScalar;
using graph::ValueList;

Result<int64_t> to_integer(const Scalar& s) {
  if (s.kind != graph::ScalarKind::kDouble) return s.i;
  // Doubles of 2^63 and above ("to the end" written as a float) saturate.
  if (std::isnan(s.d) || std::floor(s.d) != s.d) {
    return Status(Code::kInvalidArgument, fmt::format("expected an integer, got {}", s.d));
  }
  if (s.d >= 0x1p63) return std::numeric_limits<int64_t>::max();
  if (s.d < -0x1p63) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(s.d);
}

}  // namespace

int64_t bucket_of(int64_t v, int64_t step) {
  int64_t bucket = step;
  while (bucket < v) bucket *= 2;
  return bucket;
}

int64_t Tensor::dim(int64_t i) const {
  if (dims.empty()) return 1;
  return dims[static_cast<size_t>(i < 0 ? i + static_cast<int64_t>(dims.rank()) : i)];
}

int64_t Tensor::rows() const {
  int64_t n = 1;
  for (size_t i = 0; i + 1 < dims.rank(); ++i) n *= dims[i];
  return n;
}

// An int, float, bool or live scalar as both; nullopt for anything else.
std::optional<Scalar> Node::read(ValueId id) const {
  const graph::Value& v = graph_[id];
  if (const auto* i = std::get_if<int64_t>(&v)) {
    return Scalar{graph::ScalarKind::kInt, *i, static_cast<double>(*i)};
  }
  if (const auto* d = std::get_if<double>(&v)) return Scalar{graph::ScalarKind::kDouble, 0, *d};
  if (const auto* b = std::get_if<bool>(&v)) {
    return Scalar{graph::ScalarKind::kBool, *b ? 1 : 0, *b ? 1.0 : 0.0};
  }
  if (!std::holds_alternative<LiveScalar>(v)) return std::nullopt;
  if (reads_ != nullptr) reads_->values.push_back({.id = id});
  return live_.scalars[graph::index(id)];
}

bool Node::is_live(size_t arg) const {
  return std::holds_alternative<LiveScalar>(graph_[node_.args[arg]]);
}

LiveInt Node::live(size_t arg) const {
  const ValueId id = node_.args[arg];
  const auto* scalar = std::get_if<LiveScalar>(&graph_[id]);
  if (scalar == nullptr) {
    const auto v = to_integer(read(id).value_or(Scalar{}));
    return {v.ok() ? u32(*v) & ~LiveInt::kSlot : 0};
  }
  if (reads_ != nullptr) reads_->slots.push_back(id);
  return {LiveInt::kSlot | scalar->slot};
}

int64_t Node::bucket(size_t arg, int64_t plus, int64_t step) const {
  const ValueId id = node_.args[arg];
  const auto* scalar = std::get_if<LiveScalar>(&graph_[id]);
  if (scalar == nullptr) {
    const auto v = to_integer(read(id).value_or(Scalar{}));
    return bucket_of((v.ok() ? *v : 0) + plus, step);
  }
  if (reads_ != nullptr) reads_->values.push_back({.id = id, .plus = plus, .step = step});
  return bucket_of(live_.scalars[graph::index(id)].i + plus, step);
}

bool Node::has(size_t arg) const {
  return !std::holds_alternative<graph::Null>(graph_[node_.args[arg]]);
}

Tensor Node::tensor(ValueId id) const {
  return {id, graph_.tensor(id)->dtype, live_.dims[graph::index(id)]};
}

bool Node::is_constant(const Tensor& t) const {
  if (graph::index(t.id) >= graph_.values.size()) return false;  // scratch of a plan
  const graph::Tensor& stored = *graph_.tensor(t.id);
  return stored.is_constant();
}

Dims Node::max_dims(ValueId id) const { return graph_.tensor(id)->max; }

size_t Node::list_size(size_t arg) const {
  const auto* list = std::get_if<ValueList>(&graph_[node_.args[arg]]);
  return list == nullptr ? 0 : list->items.size();
}

std::optional<Tensor> Node::list_item(size_t arg, size_t i) const {
  const ValueId id = std::get_if<ValueList>(&graph_[node_.args[arg]])->items[i];
  if (id == graph::kNoValue || graph_.tensor(id) == nullptr) return std::nullopt;
  return tensor(id);
}

std::vector<std::optional<Tensor>> Node::list(size_t arg) const {
  std::vector<std::optional<Tensor>> items(list_size(arg));
  for (size_t i = 0; i < items.size(); ++i) items[i] = list_item(arg, i);
  return items;
}

ValueId Node::out_id(size_t i) const {
  const ValueId last = node_.args.back();
  if (const auto* list = std::get_if<ValueList>(&graph_[last])) return list->items[i];
  return last;
}

Tensor Node::out(size_t i) const { return tensor(out_id(i)); }

size_t Node::out_count() const {
  const auto* list = std::get_if<ValueList>(&graph_[node_.args.back()]);
  return list == nullptr ? 1 : list->items.size();
}

bool Node::has_out(size_t i) const {
  return i < out_count() && out_id(i) != graph::kNoValue && graph_.tensor(out_id(i)) != nullptr;
}

double Node::number(size_t arg) const {
  const auto s = read(node_.args[arg]);
  return s ? s->d : 0.0;
}

Scalar Node::scalar(size_t arg) const { return read(node_.args[arg]).value_or(Scalar{}); }

double Node::number_or(size_t arg, double none) const { return has(arg) ? number(arg) : none; }

bool Node::number_is_int(size_t arg) const {
  const auto s = read(node_.args[arg]);
  return s && s->kind != graph::ScalarKind::kDouble;
}

Result<int64_t> Node::integer(size_t arg) const {
  const auto s = read(node_.args[arg]);
  auto v = to_integer(s.value_or(Scalar{}));
  if (!v.ok())
    return fail(v.status().code(),
                fmt::format("{}: {}", def_.args[arg].name, v.status().message()));
  return v;
}

Result<int64_t> Node::integer_or(size_t arg, int64_t none) const {
  if (!has(arg)) return none;
  return integer(arg);
}

bool Node::flag(size_t arg) const {
  const auto s = read(node_.args[arg]);
  return s && s->d != 0.0;
}

std::string_view Node::text(size_t arg) const {
  const auto* s = std::get_if<std::string>(&graph_[node_.args[arg]]);
  return s == nullptr ? std::string_view() : std::string_view(*s);
}

Result<Dims> Node::ints(size_t arg) const {
  const graph::Value& v = graph_[node_.args[arg]];
  Dims out;
  const auto too_long = [&](size_t n) {
    return fail(Code::kUnsupported, fmt::format("{}: expected at most {} entries, got {}",
                                                def_.args[arg].name, kMaxRank, n));
  };
  if (const auto* list = std::get_if<graph::IntList>(&v)) {
    if (list->items.size() > kMaxRank) return too_long(list->items.size());
    return Dims(std::span<const int64_t>(list->items));
  }
  if (const auto* list = std::get_if<ValueList>(&v)) {
    if (list->items.size() > kMaxRank) return too_long(list->items.size());
    for (const ValueId id : list->items) {
      const auto s = read(id);
      PTERYX_ASSIGN(const int64_t i, to_integer(s.value_or(Scalar{})));
      out.push_back(i);
    }
    return out;
  }
  if (const auto s = read(node_.args[arg])) {
    PTERYX_ASSIGN(const int64_t i, to_integer(*s));
    out.push_back(i);
  }
  return out;
}

std::vector<double> Node::numbers(size_t arg) const {
  const graph::Value& v = graph_[node_.args[arg]];
  std::vector<double> out;
  if (const auto* d = std::get_if<graph::DoubleList>(&v)) out = d->items;
  if (const auto* list = std::get_if<graph::IntList>(&v))
    out.assign(list->items.begin(), list->items.end());
  if (const auto* list = std::get_if<ValueList>(&v)) {
    for (const ValueId id : list->items) out.push_back(read(id).value_or(Scalar{}).d);
  }
  return out;
}

Result<size_t> Node::dim(size_t arg, size_t rank) const {
  PTERYX_ASSIGN(const int64_t d, integer(arg));
  auto r = normalize_dim(d, rank);
  if (!r.ok()) return fail(Code::kInvalidProgram, r.status().message());
  return r;
}

Status Node::fail(Code code, std::string_view text) const {
  return {code, fmt::format("{}: {}", graph::describe(graph_, node_), text)};
}

std::string Node::difference(size_t arg, std::string_view what, std::string_view expected,
                             std::string_view got) const {
  return fmt::format("{} ({}) {}: expected {}, got {}", def_.args[arg].name,
                     graph_.label(node_.args[arg]), what, expected, got);
}

Status Node::mismatch(size_t arg, std::string_view what, std::string_view expected,
                      std::string_view got) const {
  return fail(Code::kInvalidArgument, difference(arg, what, expected, got));
}

Status Node::malformed(size_t arg, std::string_view what, std::string_view expected,
                       std::string_view got) const {
  return fail(Code::kInvalidProgram, difference(arg, what, expected, got));
}

Status Node::expect(size_t arg, std::string_view what, const Dims& expected,
                    const Dims& got) const {
  if (expected == got) return {};
  return mismatch(arg, what, to_string(expected), to_string(got));
}

Status Shapes::set(size_t i, const Dims& dims) {
  const ValueId id = node_.out_id(i);
  if (id == graph::kNoValue || node_.graph().tensor(id) == nullptr)
    return {};  // a result nobody wants
  const Dims max = node_.max_dims(id);
  bool fits = dims.rank() == max.rank();
  for (size_t d = 0; fits && d < dims.rank(); ++d) fits = dims[d] >= 0 && dims[d] <= max[d];
  if (!fits) {
    return node_.fail(Code::kInvalidArgument,
                      fmt::format("{} ({}) shape: the file allows {}, the inputs give {}",
                                  node_.def().args.back().name, node_.graph().label(id),
                                  to_string(max), to_string(dims)));
  }
  Dims& next = next_.dims[graph::index(id)];
  if (same_ != nullptr) {
    *same_ = *same_ && next == dims;
  } else {
    next = dims;
  }
  return {};
}

void Shapes::set_scalar(Scalar s) { next_.scalars[graph::index(node_.out_id())] = s; }

Status shape_like_first(const Node& n, Shapes& s) { return s.set(n.in(0).dims); }

}  // namespace pteryx::ops
