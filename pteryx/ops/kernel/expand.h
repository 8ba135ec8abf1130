// Kernels as files: WGSL with a few directives, expanded with the values that a plan chooses.
//
//   #option NAME                 yes or no
//   #option NAME 1..8            a number
//   #option NAME plain | norm    one of these words, or numbers
//   #option NAME text            a piece of WGSL, such as an expression over a and b
//   #require EXPRESSION          combinations of options that are none are refused
//   #enable f16                  what the code asks of the device: f16, subgroups, subgroup_matrix
//   #tensor NAME read f32 | f16  the next binding, with accessors: read, words or elements
//   #tensor NAME raw vec4<u32>   the next binding as an array of that; raw_write: to be written
//   #include "common/x.wgsl"     once; or any number of times with values: "slot.wgsl" rows=2
//   #let NAME = EXPRESSION
//   #if EXPRESSION               also #elif EXPRESSION, #else; ends with #end
//   #for NAME in 0..EXPRESSION   ends with #end
//
// Elsewhere $name and $(expression) stand for their values. An expression has numbers, options,
// words, + - * / %, == != < <= > >=, ! && || and parentheses. No name is also a word of an option.
// An included file may read the options of the one that includes it, and declares those that it
// needs. The element type of a tensor is the option NAME_type; common/tensor.wgsl has the
// accessors.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "pteryx/base/status.h"

namespace pteryx::ops {

// The text of a file by its name; nothing where there is no such file.
using KernelFiles = std::function<std::optional<std::string_view>(std::string_view name)>;

// A number, or a word or text.
using OptionValue = std::variant<int64_t, std::string>;

// What an option is set to. Refers to texts, so that plans make it without copies of them, which
// would be 3 % of a module for the web.
class OptionSetting {
 public:
  template <std::integral T>
  OptionSetting(T number) : number_(static_cast<int64_t>(number)) {}       // NOLINT: implicit
  OptionSetting(std::string_view text) : text_(text), is_text_(true) {}    // NOLINT: by design
  OptionSetting(const char* text) : text_(text), is_text_(true) {}         // NOLINT
  OptionSetting(const std::string& text) : text_(text), is_text_(true) {}  // NOLINT
  OptionSetting(const OptionValue& value);                                 // NOLINT
  OptionValue value() const;

 private:
  int64_t number_ = 0;
  std::string_view text_;
  bool is_text_ = false;
};

struct NamedSetting {
  std::string_view name;
  OptionSetting value;
};

class Options {
 public:
  Options() = default;
  Options(std::initializer_list<NamedSetting> settings);
  Options& set(std::string_view name, const OptionSetting& setting);
  const OptionValue* find(std::string_view name) const;
  const std::map<std::string, OptionValue, std::less<>>& all() const { return values_; }
  // "rows=4, x=norm", for labels and messages.
  std::string describe() const;
  friend auto operator<=>(const Options&, const Options&) = default;

 private:
  std::map<std::string, OptionValue, std::less<>> values_;
};

struct OptionDeclaration {
  enum class Kind : uint8_t { kFlag, kRange, kChoice, kText };
  std::string name;
  Kind kind = Kind::kFlag;
  int64_t low = 0;
  int64_t high = 1;  // included
  std::vector<OptionValue> choices;

  // Whether a value is one of those declared.
  bool takes(const OptionValue& v) const;
  std::string describe() const;  // "1..8", "plain | norm"
};

// How a kernel binds a tensor. Binding 0 is for its params, the first tensor has 1.
struct KernelTensor {
  enum class Access : uint8_t { kRead, kWords, kElements, kRaw, kRawWrite };
  std::string name;
  Access access = Access::kRead;
  bool is_written() const { return access != Access::kRead && access != Access::kRaw; }
};

struct Kernel {
  std::string code;
  std::vector<KernelTensor> tensors;
  bool f16 = false;
  bool subgroups = false;
  bool subgroup_matrix = false;
};

// Errors: kInvalidArgument, "FILE:LINE: what", for what the file does wrong and for options that it
// does not declare, that are missing, or that are none of the values declared.
Result<Kernel> expand_kernel(std::string_view file, const Options& options,
                             const KernelFiles& files);

// The options that a file declares itself. Errors: as above.
Result<std::vector<OptionDeclaration>> declared_options(std::string_view file,
                                                        const KernelFiles& files);

// Every combination of the values of its options that it does not refuse; texts have the value of
// `texts`. Errors: as above, kInvalidArgument above `most` combinations.
Result<std::vector<Options>> kernel_variants(std::string_view file, const Options& texts,
                                             const KernelFiles& files, size_t most);

}  // namespace pteryx::ops
