// Builds the one graph of a method. Inlining keeps the order of the program; nothing is fused or
// moved here.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/graph/build.h"

#include <map>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "pteryx/program/delegate.h"

namespace pteryx::graph {
namespace {

using program::Blob;
using program::BlobCall;
using program::BlobTensor;
using program::BlobValue;
using program::BlobValueList;
using program::MethodRecord;
using program::TensorRecord;
using program::ValueRecord;

constexpr std::string_view kPrepack = "et_vk.prepack.default";
constexpr std::string_view kCopyIndex = "executorch_prim::et_copy_index.tensor";

bool identity_order(std::span<const uint8_t> order) {
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] != i) return false;
  }
  return true;
}

// Each call of a delegate is inlined. Exporters make one delegate for each call; a file that calls
// one again and again must not grow with the square of its size.
constexpr uint64_t kInliningFactor = 16;

class Builder {
 public:
  Builder(const program::Program& program, const MethodRecord& method, const OpLookup& ops)
      : program_(program), method_(method), ops_(ops) {}

  Result<Graph> build() && {
    g_.method = method_.name;
    PTERYX_TRY(parse_blobs());
    find_written();
    add_method_values();
    for (const uint32_t i : method_.inputs) g_.inputs.push_back(ValueId{i});
    place_initial();
    PTERYX_TRY(add_instructions());
    PTERYX_TRY(write_back_state());
    for (const uint32_t i : method_.outputs) {
      PTERYX_TRY(before_read(i));
      g_.outputs.push_back(ValueId{i});
    }
    PTERYX_TRY(check_order());
    number_scalars(g_);
    return std::move(g_);
  }

 private:
  // ---- values

  Status parse_blobs() {
    for (size_t d = 0; d < method_.delegates.size(); ++d) {
      const program::DelegateRecord& record = method_.delegates[d];
      if (record.id != program::kVulkanDelegate) {
        return unsupported(
            fmt::format("delegate {} of '{}' is for the backend '{}', which Pteryx does not have",
                        d, method_.name, record.id));
      }
      auto blob = program::parse_blob(record, program_.named_data());
      if (!blob.ok()) {
        return std::move(blob).status().during(
            fmt::format("reading delegate {} of method '{}'", d, method_.name));
      }
      blobs_.push_back(std::move(blob).value());
    }
    uint64_t size = method_.values.size() + method_.instructions.size();
    for (const Blob& blob : blobs_) size += inlined_size(blob);
    inlining_left_ = 4096 + kInliningFactor * size;
    return {};
  }

  // What inlining a blob adds to the graph: values, nodes, arguments and items of lists.
  static uint64_t inlined_size(const Blob& blob) {
    uint64_t n = blob.values.size();
    for (const BlobValue& v : blob.values) {
      std::visit(
          [&](const auto& content) {
            if constexpr (requires { content.items.size(); }) n += content.items.size();
          },
          v);
    }
    for (const BlobCall& call : blob.chain) n += 1 + call.args.size();
    return n;
  }

  // Which method values some instruction writes: their scalars are live.
  void find_written() {
    written_.resize(method_.values.size());
    for (const program::Instruction& instruction : method_.instructions) {
      if (const auto* k = std::get_if<program::KernelCall>(&instruction);
          k != nullptr && !k->args.empty()) {
        written_[k->args.back()] = true;
      } else if (const auto* d = std::get_if<program::DelegateCall>(&instruction)) {
        for (size_t i = blobs_[d->delegate].inputs.size(); i < d->args.size(); ++i)
          written_[d->args[i]] = true;
      } else if (const auto* m = std::get_if<program::MoveCall>(&instruction)) {
        written_[m->to] = true;
      }
    }
  }

  ValueId add(Value v, std::string label) {
    g_.values.push_back(std::move(v));
    g_.labels.push_back(std::move(label));
    return ValueId{static_cast<uint32_t>(g_.values.size() - 1)};
  }

  Value method_value(uint32_t i) const {
    const bool live = written_[i];
    const ValueRecord& record = method_.values[i];
    if (const auto* v = std::get_if<int64_t>(&record)) {
      if (live) return LiveScalar{ScalarKind::kInt, *v, static_cast<double>(*v)};
      return *v;
    }
    if (const auto* v = std::get_if<bool>(&record)) {
      if (live) return LiveScalar{ScalarKind::kBool, *v ? 1 : 0, *v ? 1.0 : 0.0};
      return *v;
    }
    if (const auto* v = std::get_if<double>(&record)) {
      if (live) return LiveScalar{ScalarKind::kDouble, 0, *v};
      return *v;
    }
    if (const auto* v = std::get_if<std::string>(&record)) return *v;
    if (const auto* v = std::get_if<TensorRecord>(&record)) return method_tensor(*v);
    if (const auto* v = std::get_if<program::IntListRecord>(&record)) return int_list(*v);
    if (const auto* v = std::get_if<program::DoubleListRecord>(&record))
      return DoubleList{v->items};
    if (const auto* v = std::get_if<program::BoolListRecord>(&record)) return BoolList{v->items};
    if (const auto* v = std::get_if<program::TensorListRecord>(&record)) {
      ValueList list;
      for (const auto& item : v->items) {
        const bool none =
            !item || std::holds_alternative<program::NullRecord>(method_.values[*item]);
        list.items.push_back(none ? kNoValue : ValueId{*item});
      }
      return list;
    }
    return Null{};
  }

  static Tensor method_tensor(const TensorRecord& r) {
    Tensor t{.dtype = r.dtype, .max = r.sizes, .data = {}, .dim_order = {}, .dynamic = r.dynamic};
    if (r.data) t.data.push_back(*r.data);
    if (r.data && !identity_order(r.dim_order)) t.dim_order = r.dim_order;
    return t;
  }

  // Boxed lists become literal ones where no item is ever written.
  Value int_list(const program::IntListRecord& r) const {
    IntList literal;
    ValueList boxed;
    bool live = false;
    for (const uint32_t item : r.items) {
      live = live || written_[item];
      boxed.items.push_back(ValueId{item});
      const auto* v = std::get_if<int64_t>(&method_.values[item]);
      literal.items.push_back(v == nullptr ? 0 : *v);
    }
    if (live) return boxed;
    return literal;
  }

  void add_method_values() {
    for (uint32_t i = 0; i < method_.values.size(); ++i)
      add(method_value(i), fmt::format("value {}", i));
    null_ = add(Null{}, "None");
  }

  // ---- addresses: the exporter leaves out views of planned tensors and lets both values share the
  // bytes

  using Address = std::pair<uint32_t, uint64_t>;
  struct Writer {
    uint32_t value = 0;
    uint32_t sequence = 0;
  };

  const TensorRecord* planned(uint32_t value) const {
    if (value >= method_.values.size()) return nullptr;
    const auto* t = std::get_if<TensorRecord>(&method_.values[value]);
    return t != nullptr && t->placement ? t : nullptr;
  }
  static Address address(const TensorRecord& t) {
    return {t.placement->buffer, t.placement->offset};
  }

  void place_initial() {
    for (uint32_t i = 0; i < method_.values.size(); ++i) {
      const TensorRecord* t = planned(i);
      if (t != nullptr && t->data) make_state(i);
    }
    for (const uint32_t i : method_.inputs) {
      if (const TensorRecord* t = planned(i)) latest_[address(*t)] = {i, ++sequence_};
    }
  }

  void make_state(uint32_t i) {
    std::get_if<Tensor>(&g_.values[i])->state = true;
    latest_[address(*planned(i))] = {i, ++sequence_};
    states_.push_back(i);
  }

  // Makes sure that method value i holds what its address holds.
  Status before_read(uint32_t i) {
    const TensorRecord* t = planned(i);
    if (t == nullptr || numel(t->sizes) == 0) return {};
    const auto it = latest_.find(address(*t));
    if (it ==
        latest_.end()) {  // read before anything was written: a buffer that persists, zero at first
      make_state(i);
      return {};
    }
    const Writer& writer = it->second;
    if (writer.value == i || viewed_[i] == writer.sequence) return {};
    const TensorRecord& source = *planned(writer.value);
    if (source.dtype != t->dtype || numel(source.sizes) != numel(t->sizes)) {
      return invalid_program(fmt::format(
          "value {} ({} {}) is read at the address of value {} ({} {}), which was written last", i,
          name(t->dtype), to_string(t->sizes), writer.value, name(source.dtype),
          to_string(source.sizes)));
    }
    viewed_[i] = writer.sequence;
    emit(kViewOp, {ValueId{writer.value}, ValueId{i}});
    return {};
  }

  void after_write(uint32_t i) {
    const TensorRecord* t = planned(i);
    if (t != nullptr && numel(t->sizes) > 0) latest_[address(*t)] = {i, ++sequence_};
  }

  // In-place results may carry another value's id: bring them home.
  Status write_back_state() {
    for (const uint32_t i : states_) {
      const TensorRecord& t = *planned(i);
      const Writer& writer = latest_[address(t)];
      if (writer.value == i) continue;
      const TensorRecord& other = *planned(writer.value);
      if (other.dtype == t.dtype && other.sizes == t.sizes)
        emit(kCopyOp, {ValueId{writer.value}, ValueId{i}});
    }
    return {};
  }

  // ---- nodes

  std::string_view intern(std::string_view spelling) {
    const auto it = interned_.find(spelling);
    if (it != interned_.end()) return it->second;
    const std::string_view stable = g_.spellings.emplace_back(spelling);
    interned_.emplace(stable, stable);
    return stable;
  }

  // A result that is also a plain argument (buffers updated by way of a functional operator) is
  // computed aside and copied: no dispatch may read and write one buffer.
  void emit(std::string_view spelling, std::vector<ValueId> args) {
    const OpInfo* info = ops_.find(spelling);
    const auto* result =
        args.empty() ? nullptr : std::get_if<Tensor>(&g_.values[index(args.back())]);
    for (size_t a = 0; result != nullptr && a + 1 < args.size(); ++a) {
      const bool in_place = info != nullptr && ((info->mutated >> a) & 1U) != 0;
      if (args[a] != args.back() || in_place) continue;
      const ValueId home = args.back();
      args.back() =
          add(Tensor{.dtype = result->dtype, .max = result->max, .data = {}, .dim_order = {}},
              fmt::format("new {}", g_.label(home)));
      append(spelling, args);
      append(kCopyOp, {args.back(), home});
      return;
    }
    append(spelling, std::move(args));
  }

  void append(std::string_view spelling, std::vector<ValueId> args) {
    Node n;
    n.spelling = intern(spelling);
    n.op = ops_.find(n.spelling);
    n.args = std::move(args);
    n.delegate = current_delegate_;
    n.call = current_call_;
    mark_state(n);
    g_.nodes.push_back(std::move(n));
  }

  // A constant that is written becomes state: it keeps its contents between runs.
  void mark_state(const Node& n) {
    const auto mark = [&](ValueId id) {
      if (id == kNoValue) return;
      auto* t = std::get_if<Tensor>(&g_.values[index(id)]);
      if (t != nullptr && t->has_data()) t->state = true;
    };
    if (n.args.empty()) return;
    for (size_t a = 0; n.op != nullptr && a < n.args.size(); ++a) {
      if (((n.op->mutated >> a) & 1U) != 0) mark(n.args[a]);
    }
    mark(n.args.back());
    if (const auto* list = std::get_if<ValueList>(&g_[n.args.back()])) {
      for (const ValueId id : list->items) mark(id);
    }
  }

  Status add_instructions() {
    std::vector<uint32_t> first_node;  // of each instruction
    for (size_t p = 0; p < method_.instructions.size(); ++p) {
      first_node.push_back(static_cast<uint32_t>(g_.nodes.size()));
      current_delegate_ = -1;
      current_call_ = static_cast<uint32_t>(p);
      const program::Instruction& instruction = method_.instructions[p];
      if (const auto* k = std::get_if<program::KernelCall>(&instruction)) {
        PTERYX_TRY(add_kernel(*k));
      } else if (const auto* d = std::get_if<program::DelegateCall>(&instruction)) {
        PTERYX_TRY(inline_delegate(*d));
      } else if (const auto* m = std::get_if<program::MoveCall>(&instruction)) {
        PTERYX_TRY(add_move(*m));
      } else if (const auto* j = std::get_if<program::JumpFalseCall>(&instruction)) {
        PTERYX_TRY(add_jump(*j));
      }  // FreeCall: memory is planned here, nothing to do
    }
    first_node.push_back(static_cast<uint32_t>(g_.nodes.size()));
    for (Node& n : g_.nodes) {
      if (n.kind == Node::Kind::kJumpFalse) n.target = first_node[n.target];
    }
    return {};
  }

  bool is_tensor(uint32_t i) const {
    return std::holds_alternative<TensorRecord>(method_.values[i]);
  }

  // `.out` kernels repeat their result behind the arguments; drop the copies so that the result is
  // last, once.
  std::vector<uint32_t> without_repeated_results(const std::vector<uint32_t>& args) const {
    std::vector<uint32_t> out = args;
    if (args.size() < 2) return out;
    const uint32_t before = args[args.size() - 2];
    const auto* list = std::get_if<program::TensorListRecord>(&method_.values[args.back()]);
    if (list == nullptr) {
      if (is_tensor(args.back()) && args.back() == before) out.pop_back();
      return out;
    }
    const auto* twin = std::get_if<program::TensorListRecord>(&method_.values[before]);
    if (twin != nullptr && twin->items == list->items) {
      out.pop_back();
      return out;
    }
    const size_t count = list->items.size();
    bool repeated = count > 0 && args.size() > count;
    for (size_t i = 0; repeated && i < count; ++i) {
      repeated = list->items[i] == args[args.size() - 1 - count + i];
    }
    if (repeated) out.erase(out.end() - 1 - static_cast<ptrdiff_t>(count), out.end() - 1);
    return out;
  }

  Status before_read_any(uint32_t i) {
    if (const auto* list = std::get_if<program::TensorListRecord>(&method_.values[i])) {
      for (const auto& item : list->items) {
        if (item) PTERYX_TRY(before_read(*item));
      }
      return {};
    }
    return before_read(i);
  }

  Status add_kernel(const program::KernelCall& call) {
    const std::string& spelling = method_.operators[call.op];
    if (call.args.empty()) {
      return invalid_program(
          fmt::format("{} (instruction {}) has no arguments", spelling, current_call_));
    }
    std::vector<uint32_t> args = without_repeated_results(call.args);
    if (spelling == kCopyIndex)
      args.push_back(args[0]);  // its result is its first argument, and is not repeated
    const OpInfo* info = ops_.find(spelling);
    for (size_t a = 0; a + 1 < args.size(); ++a) {
      if (args[a] != args.back()) PTERYX_TRY(before_read_any(args[a]));
    }
    std::vector<ValueId> ids;
    for (const uint32_t a : args) {
      while (info != nullptr && is_factory(*info, ids.size())) ids.push_back(null_);
      ids.push_back(ValueId{a});
    }
    emit(spelling, std::move(ids));
    const uint32_t result = args.back();
    if (const auto* list = std::get_if<program::TensorListRecord>(&method_.values[result])) {
      for (const auto& item : list->items) {
        if (item) after_write(*item);
      }
    } else {
      after_write(result);
    }
    return {};
  }

  static bool is_factory(const OpInfo& info, size_t position) {
    for (const uint8_t f : info.factory) {
      if (f == position) return true;
    }
    return false;
  }

  Status add_move(const program::MoveCall& m) {
    if (is_tensor(m.from) != is_tensor(m.to)) {
      return invalid_program(fmt::format("instruction {}: move between {} and {}", current_call_,
                                         kind_name(g_.values[m.from]), kind_name(g_.values[m.to])));
    }
    PTERYX_TRY(before_read(m.from));
    emit(is_tensor(m.from) ? kCopyOp : kScalarMoveOp, {ValueId{m.from}, ValueId{m.to}});
    after_write(m.to);
    return {};
  }

  Status add_jump(const program::JumpFalseCall& j) {
    g_.has_jumps = true;
    ValueId condition{j.condition};
    if (is_tensor(j.condition)) {
      PTERYX_TRY(before_read(j.condition));
      condition = add(LiveScalar{ScalarKind::kBool},
                      fmt::format("condition of instruction {}", current_call_));
      emit(kItemOp, {ValueId{j.condition}, condition});
    } else if (!std::holds_alternative<bool>(method_.values[j.condition])) {
      return invalid_program(
          fmt::format("instruction {}: condition (value {}) is {}, expected a bool", current_call_,
                      j.condition, kind_name(g_.values[j.condition])));
    }
    Node n;
    n.kind = Node::Kind::kJumpFalse;
    n.spelling = intern("jump_false");
    n.args = {condition};
    n.target = j.destination;  // instruction for now
    n.call = current_call_;
    g_.nodes.push_back(std::move(n));
    return {};
  }

  // ---- delegates

  // Values that calls of the blob write in place.
  std::vector<bool> find_mutated(const Blob& blob) const {
    std::vector<bool> mutated(blob.values.size());
    for (const BlobCall& call : blob.chain) {
      const OpInfo* info = ops_.find(call.name);
      for (size_t a = 0; info != nullptr && a + 1 < call.args.size(); ++a) {
        if (((info->mutated >> a) & 1U) != 0) mutated[call.args[a]] = true;
      }
      for (size_t a = 0; a + 1 < call.args.size(); ++a) {
        if (call.args[a] == call.args.back())
          mutated[call.args[a]] = true;  // the result is an argument
      }
    }
    return mutated;
  }

  Status inline_delegate(const program::DelegateCall& call) {
    const Blob& blob = blobs_[call.delegate];
    current_delegate_ = static_cast<int32_t>(call.delegate);
    if (call.args.size() != blob.inputs.size() + blob.outputs.size()) {
      return invalid_program(fmt::format(
          "instruction {}: delegate {} takes {} inputs and gives {} outputs, the call has {} "
          "arguments",
          current_call_, call.delegate, blob.inputs.size(), blob.outputs.size(), call.args.size()));
    }
    const uint64_t size = inlined_size(blob);
    if (size > inlining_left_) {
      return invalid_program(
          fmt::format("instruction {}: delegate {} is called too often: its calls make the method "
                      "over {} times what the file holds",
                      current_call_, call.delegate, kInliningFactor));
    }
    inlining_left_ -= size;
    Inlining in{blob, call, std::vector<ValueId>(blob.values.size(), kNoValue), find_mutated(blob)};
    for (size_t i = 0; i < blob.inputs.size(); ++i) PTERYX_TRY(bind_input(in, i));
    std::vector<bool> bound(blob.outputs.size());
    for (size_t i = 0; i < blob.outputs.size(); ++i) {
      PTERYX_ASSIGN(const bool direct, bind_output(in, i));
      bound[i] = direct;
    }
    PTERYX_TRY(add_blob_values(in));
    for (const BlobCall& c : blob.chain) {
      current_call_ = c.node_id;
      PTERYX_TRY(add_blob_call(in, c));
    }
    for (size_t i = 0; i < blob.outputs.size(); ++i) {
      const uint32_t target = call.args[blob.inputs.size() + i];
      if (!bound[i]) {
        const bool tensor = is_tensor(target);
        emit(tensor ? kCopyOp : kScalarMoveOp, {in.map[blob.outputs[i]], ValueId{target}});
      }
      after_write(target);
    }
    return {};
  }

  struct Inlining {
    const Blob& blob;
    const program::DelegateCall& call;
    std::vector<ValueId> map;  // blob value -> graph value
    std::vector<bool> mutated;
  };

  std::string blob_label(const Inlining& in, uint32_t value) const {
    return fmt::format("delegate {} value {}", in.call.delegate, value);
  }

  Status dims_differ(const Inlining& in, std::string_view what, size_t i, const Dims& blob,
                     const Dims& program) const {
    return invalid_program(fmt::format("{} {} of delegate {}: the delegate has {}, the program {}",
                                       what, i, in.call.delegate, to_string(blob),
                                       to_string(program)));
  }

  Status bind_input(Inlining& in, size_t i) {
    const uint32_t inner = in.blob.inputs[i];
    const uint32_t outer = in.call.args[i];
    if (in.map[inner] != kNoValue) {
      return invalid_program(fmt::format("delegate {}: input {} names value {} a second time",
                                         in.call.delegate, i, inner));
    }
    PTERYX_TRY(before_read(outer));
    if (const auto* t = std::get_if<BlobTensor>(&in.blob.values[inner])) {
      const auto* record = std::get_if<TensorRecord>(&method_.values[outer]);
      if (record == nullptr) {
        return invalid_program(fmt::format("input {} of delegate {}: expected a tensor, got {}", i,
                                           in.call.delegate, kind_name(g_.values[outer])));
      }
      if (record->sizes != t->dims) return dims_differ(in, "input", i, t->dims, record->sizes);
      if (record->dtype == t->dtype && !in.mutated[inner]) {
        in.map[inner] = ValueId{outer};
        return {};
      }
      in.map[inner] = add(Tensor{.dtype = t->dtype, .max = t->dims, .data = {}, .dim_order = {}},
                          blob_label(in, inner));
      emit(kCopyOp, {ValueId{outer}, in.map[inner]});
      return {};
    }
    if (!std::holds_alternative<program::BlobSymInt>(in.blob.values[inner])) {
      return invalid_program(
          fmt::format("input {} of delegate {} is neither a tensor nor a symbolic integer", i,
                      in.call.delegate));
    }
    if (is_tensor(outer)) {
      in.map[inner] = add(LiveScalar{}, blob_label(in, inner));
      emit(kItemOp, {ValueId{outer}, in.map[inner]});
      return {};
    }
    if (!std::holds_alternative<int64_t>(method_.values[outer])) {
      return invalid_program(fmt::format("input {} of delegate {}: expected an int, got {}", i,
                                         in.call.delegate, kind_name(g_.values[outer])));
    }
    in.map[inner] = ValueId{outer};
    return {};
  }

  // True if the blob writes the program's value directly; false if a copy must follow.
  Result<bool> bind_output(Inlining& in, size_t i) {
    const uint32_t inner = in.blob.outputs[i];
    const uint32_t outer = in.call.args[in.blob.inputs.size() + i];
    if (const auto* t = std::get_if<BlobTensor>(&in.blob.values[inner])) {
      const auto* record = std::get_if<TensorRecord>(&method_.values[outer]);
      if (record == nullptr) {
        return invalid_program(fmt::format("output {} of delegate {}: expected a tensor, got {}", i,
                                           in.call.delegate, kind_name(g_.values[outer])));
      }
      if (record->sizes != t->dims) return dims_differ(in, "output", i, t->dims, record->sizes);
      for (size_t k = 0; k < in.blob.inputs.size(); ++k) {
        if (in.call.args[k] == outer) return false;  // still needed as an input
      }
      if (record->dtype != t->dtype || record->data || t->constant || in.mutated[inner] ||
          in.map[inner] != kNoValue) {
        return false;
      }
      in.map[inner] = ValueId{outer};
      return true;
    }
    if (!std::holds_alternative<program::BlobSymInt>(in.blob.values[inner]) || is_tensor(outer)) {
      return invalid_program(fmt::format(
          "output {} of delegate {}: expected a symbolic integer and an int", i, in.call.delegate));
    }
    if (in.map[inner] != kNoValue) return false;
    in.map[inner] = ValueId{outer};
    return true;
  }

  Status add_blob_values(Inlining& in) {
    auto& shared = blob_constants_[in.call.delegate];  // constants and state are one per delegate
    const auto& prepacked = blob_prepacked_[in.call.delegate];
    for (uint32_t v = 0; v < in.blob.values.size(); ++v) {
      if (in.map[v] != kNoValue || std::holds_alternative<BlobValueList>(in.blob.values[v]))
        continue;
      if (const auto it = prepacked.find(v); it != prepacked.end()) {
        in.map[v] = it->second;
        continue;
      }
      const auto* t = std::get_if<BlobTensor>(&in.blob.values[v]);
      const bool constant = t != nullptr && t->constant;
      if (constant) {
        if (const auto it = shared.find(v); it != shared.end()) {
          in.map[v] = it->second;
          continue;
        }
      }
      in.map[v] = add(blob_value(in.blob.values[v]), blob_label(in, v));
      if (constant) shared.emplace(v, in.map[v]);
    }
    for (uint32_t v = 0; v < in.blob.values.size(); ++v) {
      const auto* list = std::get_if<BlobValueList>(&in.blob.values[v]);
      if (list == nullptr) continue;
      ValueList mapped;
      for (const uint32_t item : list->items) {
        const bool none = std::holds_alternative<program::NullRecord>(in.blob.values[item]);
        mapped.items.push_back(none ? kNoValue : in.map[item]);
      }
      in.map[v] = add(std::move(mapped), blob_label(in, v));
    }
    return {};
  }

  static Value blob_value(const BlobValue& v) {
    if (const auto* i = std::get_if<int64_t>(&v)) return *i;
    if (const auto* d = std::get_if<double>(&v)) return *d;
    if (const auto* b = std::get_if<bool>(&v)) return *b;
    if (const auto* s = std::get_if<std::string>(&v)) return *s;
    if (const auto* t = std::get_if<BlobTensor>(&v)) {
      Tensor tensor{.dtype = t->dtype, .max = t->dims, .data = {}, .dim_order = {}};
      if (t->constant) tensor.data.push_back(*t->constant);
      return tensor;
    }
    if (std::holds_alternative<program::BlobSymInt>(v)) return LiveScalar{};
    if (const auto* l = std::get_if<program::BlobIntList>(&v)) return IntList{l->items};
    if (const auto* l = std::get_if<program::DoubleListRecord>(&v)) return DoubleList{l->items};
    if (const auto* l = std::get_if<program::BoolListRecord>(&v)) return BoolList{l->items};
    return Null{};
  }

  Status add_blob_call(Inlining& in, const BlobCall& call) {
    if (call.args.empty()) {
      return invalid_program(fmt::format("delegate {}, call {} ({}) has no arguments",
                                         in.call.delegate, call.node_id, call.name));
    }
    if (call.name == kPrepack) return prepack(in, call);
    std::vector<ValueId> args;
    args.reserve(call.args.size());
    for (const uint32_t a : call.args) args.push_back(in.map[a]);
    emit(call.name, std::move(args));
    return {};
  }

  // The result of a prepack is the constant itself, in memory of its own if it is written later.
  Status prepack(Inlining& in, const BlobCall& call) {
    auto& shared = blob_prepacked_[in.call.delegate];
    if (call.args.size() == 2 && shared.contains(call.args[1]))
      return {};  // done by an earlier call
    const auto* from = call.args.size() == 2 ? g_.tensor(in.map[call.args[0]]) : nullptr;
    const auto* to = call.args.size() == 2 ? g_.tensor(in.map[call.args[1]]) : nullptr;
    if (from == nullptr || to == nullptr || !from->has_data() || from->dtype != to->dtype ||
        from->max != to->max || to->has_data()) {
      return invalid_program(fmt::format(
          "delegate {}, call {}: prepack needs a constant and a result of equal type and "
          "shape",
          in.call.delegate, call.node_id));
    }
    const std::vector<ByteRange> data = from->data;
    const ValueId target = in.map[call.args[1]];
    if (index(target) <
        method_.values.size()) {  // the result leaves the delegate: it must be written each run
      emit(kCopyOp, {in.map[call.args[0]], target});
      return {};
    }
    std::get_if<Tensor>(&g_.values[index(target)])->data = data;
    shared.emplace(call.args[1], target);
    return {};
  }

  // ---- order

  // Every value is an input, a constant, state or the result of an earlier node when it is read.
  Status check_order() const {
    if (g_.has_jumps) return {};
    std::vector<bool> ready(g_.values.size());
    for (size_t i = 0; i < g_.values.size(); ++i) {
      const auto* t = std::get_if<Tensor>(&g_.values[i]);
      const auto* s = std::get_if<LiveScalar>(&g_.values[i]);
      ready[i] = t != nullptr ? (t->has_data() || t->state || numel(t->max) == 0) : s == nullptr;
    }
    for (const ValueId id : g_.inputs) ready[index(id)] = true;
    const auto each = [&](ValueId id, const auto& visit) -> Status {
      if (const auto* list = std::get_if<ValueList>(&g_[id])) {
        for (const ValueId item : list->items) {
          if (item != kNoValue) PTERYX_TRY(visit(item));
        }
        return {};
      }
      return visit(id);
    };
    for (const Node& n : g_.nodes) {
      for (size_t a = 0; a + 1 < n.args.size(); ++a) {
        const bool in_place =
            n.op != nullptr && ((n.op->mutated >> a) & 1U) != 0 && n.args[a] == n.args.back();
        if (in_place) continue;  // overwritten, not read
        PTERYX_TRY(each(n.args[a], [&](ValueId id) -> Status {
          if (ready[index(id)]) return {};
          return invalid_program(fmt::format("{}: argument {} ({}) is used before it is written",
                                             describe(g_, n), a, g_.label(id)));
        }));
      }
      PTERYX_TRY(each(n.args.back(), [&](ValueId id) -> Status {
        ready[index(id)] = true;
        return {};
      }));
    }
    for (const ValueId id : g_.outputs) {
      if (!ready[index(id)]) {
        return invalid_program(
            fmt::format("output {} of '{}' is never written", g_.label(id), g_.method));
      }
    }
    return {};
  }

  const program::Program& program_;
  const MethodRecord& method_;
  const OpLookup& ops_;
  Graph g_;
  std::vector<Blob> blobs_;
  std::vector<bool> written_;
  ValueId null_ = kNoValue;
  std::map<Address, Writer> latest_;
  std::unordered_map<uint32_t, uint32_t>
      viewed_;  // value -> sequence of the writer it is a view of
  std::vector<uint32_t> states_;
  uint32_t sequence_ = 0;
  std::unordered_map<std::string_view, std::string_view> interned_;
  std::unordered_map<uint32_t, std::unordered_map<uint32_t, ValueId>> blob_constants_;
  std::unordered_map<uint32_t, std::unordered_map<uint32_t, ValueId>> blob_prepacked_;
  int32_t current_delegate_ = -1;
  uint32_t current_call_ = 0;
  uint64_t inlining_left_ = 0;
};

}  // namespace

Result<Graph> build_graph(const program::Program& program, const program::MethodRecord& method,
                          const OpLookup& ops) {
  return Builder(program, method, ops).build();
}

}  // namespace pteryx::graph
