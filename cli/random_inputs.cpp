// SPDX-License-Identifier: BSD-3-Clause
#include "random_inputs.h"

#include <algorithm>
#include <random>

#include <fmt/format.h>

#include "arguments.h"

#include "pteryx/ops/op.h"

namespace pteryx::cli {
namespace {

bool is_shape(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789=x") == std::string_view::npos &&
         word.find('=') != std::string_view::npos;
}

int64_t random_integer(const ValueInfo& v, std::minstd_rand& random) {
  if (v.dtype == DType::kBool) return random() % 2;
  if (v.index_bound) {
    return *v.index_bound > 0 ? static_cast<int64_t>(random()) % *v.index_bound : 0;
  }
  return size_bytes(v.dtype) == 1 ? static_cast<int64_t>(random() % 256) : 0;
}

Result<Dims> dims_of(const MethodInfo& m, size_t input, const Shapes& shapes) {
  const ValueInfo& v = m.inputs[input];
  const auto given = shapes.find(input);
  if (given == shapes.end()) return v.dims;
  const Dims& dims = given->second;
  bool fits = dims.rank() == v.dims.rank();
  for (size_t i = 0; fits && i < dims.rank(); ++i)
    fits = v.dynamic ? dims[i] <= v.dims[i] : dims[i] == v.dims[i];
  if (fits) return dims;
  return invalid_argument(fmt::format("--shape: input {} of '{}': expected {}{}, got {}", input,
                                      m.name, v.dynamic ? "up to " : "", to_string(v.dims),
                                      to_string(dims)));
}

}  // namespace

void add_shapes(CLI::App& app, std::vector<std::string>& shapes) {
  add_words(app, "--shape", shapes, is_shape,
            "size of an input, by its number; otherwise its bound, e.g. 0=1x3x224x224")
      ->type_name("N=AxB,...");
}

Result<Shapes> parse_shapes(const std::vector<std::string>& texts) {
  Shapes shapes;
  for (const std::string& text : texts) {
    const size_t equals = std::min(text.find('='), text.size());
    const auto input = parse_number<size_t>(std::string_view(text).substr(0, equals));
    std::vector<int64_t> dims;
    bool good = input.has_value() && equals < text.size();
    const std::string sizes = text.substr(std::min(equals + 1, text.size()));
    const std::vector<std::string> words = split(sizes, "x");
    good = good && fmt::format("{}", fmt::join(words, "x")) == sizes;
    for (const std::string& word : words) {
      const auto dim = parse_number<int64_t>(word);
      good = good && dim && *dim >= 0;
      dims.push_back(dim.value_or(0));
    }
    if (!good || dims.size() > kMaxRank) {
      return invalid_argument(fmt::format(
          "--shape: expected a number and sizes such as 0=1x3x224x224, got '{}'", printable(text)));
    }
    shapes[*input] = Dims(std::span<const int64_t>(dims));
  }
  return shapes;
}

Result<RandomInputs> random_inputs(const MethodInfo& method, const Shapes& shapes) {
  RandomInputs inputs;
  std::minstd_rand random(1);  // NOLINT(bugprone-random-generator-seed): the same each time
  for (const auto& [input, dims] : shapes) {
    if (input < method.inputs.size() && method.inputs[input].kind == "tensor") continue;
    return invalid_argument(
        fmt::format("--shape: '{}' has no tensor as its input {}", method.name, input));
  }
  for (size_t i = 0; i < method.inputs.size(); ++i) {
    const ValueInfo& v = method.inputs[i];
    const std::string before = inputs.text.empty() ? "" : ", ";
    if (v.kind != "tensor") {
      const bool fixed = v.fixed.integer() != nullptr || v.fixed.number() != nullptr ||
                         v.fixed.flag() != nullptr || v.fixed.text() != nullptr;
      inputs.values.push_back(fixed               ? v.fixed
                              : v.kind == "int"   ? Value(int64_t{0})
                              : v.kind == "float" ? Value(0.5)
                              : v.kind == "bool"  ? Value(true)
                                                  : Value());
      inputs.text += before + v.kind;
      continue;
    }
    PTERYX_ASSIGN(const Dims dims, dims_of(method, i, shapes));
    const auto count = static_cast<size_t>(numel(dims));
    std::vector<std::byte>& bytes = inputs.memory.emplace_back(count * size_bytes(v.dtype));
    const ops::HostTensor x{v.dtype, dims, bytes.data()};
    for (int64_t k = 0; k < x.numel(); ++k) {
      if (is_float(v.dtype)) {
        x.put(k, static_cast<double>(random()) / std::minstd_rand::max() * 2 - 1);
      } else {
        x.put_integer(k, random_integer(v, random));
      }
    }
    inputs.values.emplace_back(TensorView{
        .dtype = v.dtype, .dims = dims, .data = bytes.data(), .size_bytes = bytes.size()});
    inputs.text += fmt::format("{}{} {}", before, name(v.dtype), to_string(dims));
  }
  return inputs;
}

Result<std::vector<const MethodInfo*>> methods_to_measure(const Session& session,
                                                          const std::string& wanted,
                                                          const std::string& path) {
  std::vector<const MethodInfo*> methods;
  for (const MethodInfo& m : session.methods()) {
    const bool computes = !m.inputs.empty() || m.gpu_bytes > 0;  // others are metadata
    if (wanted.empty() ? computes : m.name == wanted) methods.push_back(&m);
  }
  if (methods.empty())
    return invalid_argument(fmt::format("{} has no method that computes something", path));
  return methods;
}

}  // namespace pteryx::cli
