// How a template's text, lists and dicts are made: every growth is paid for before it happens, and
// the value holds what was paid for it.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "pteryx/base/status.h"
#include "pteryx/llm/chat/meter.h"
#include "pteryx/llm/chat/value.h"

namespace pteryx::llm::chat {

inline constexpr uint64_t kObjectBytes = 96;  // a value on the heap, less what it holds

class TextBuilder {
 public:
  explicit TextBuilder(Meter& meter) : meter_(meter), charge_(meter) {}

  // Errors of all: kInvalidArgument past a limit.
  Status append(std::string_view text) {
    PTERYX_TRY(meter_.work(1 + text.size() / kMadePerUnit));
    if (text.size() > text_.capacity() - text_.size()) PTERYX_TRY(grow(text.size()));
    text_.append(text);
    return {};
  }
  Status append_code(char32_t code);
  Result<Value> finish();

  std::string_view view() const { return text_; }
  std::string release() { return std::move(text_); }
  Meter& meter() { return meter_; }

 private:
  static constexpr size_t kMadePerUnit = 8;  // bytes, new pages included
  Status grow(size_t more);

  Meter& meter_;
  std::string text_;
  Charge charge_;
};

class ListBuilder {
 public:
  explicit ListBuilder(Meter& meter) : meter_(meter), charge_(meter) {}

  // Errors of all: kInvalidArgument past a limit, and for a namespace.
  Status push(Value value);
  Status push(std::string_view text);
  Status append(const List& list);
  Status reserve(size_t count);
  Result<Value> finish();

  List& list() { return list_; }
  Meter& meter() { return meter_; }

 private:
  Meter& meter_;
  List list_;
  Charge charge_;
};

class DictBuilder {
 public:
  explicit DictBuilder(Meter& meter) : meter_(meter), charge_(meter) {}

  // Errors of all: kInvalidArgument past a limit, and for a namespace.
  Status set(std::string_view key, Value value);
  Status copy(const Dict& dict);  // into an empty one
  Result<Value> finish();
  Result<Value> finish_namespace();

 private:
  Status add(std::string_view key, Value value);

  Meter& meter_;
  Dict dict_;
  Charge charge_;
};

// A new text.
Result<Value> make_text(Meter& meter, std::string_view text);
// The text of a value as it is printed; of a text, itself.
Result<Value> text_of(Meter& meter, const Value& value);
// As it is printed, and as it is inside a list.
Status print(const Value& value, TextBuilder& out);
Status print_repr(const Value& value, TextBuilder& out);

// What a loop goes over: elements, keys, characters; nothing for undefined. A list is itself.
Result<Value> elements(Meter& meter, const Value& value);

}  // namespace pteryx::llm::chat
