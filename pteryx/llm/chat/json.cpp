// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/chat/json.h"

#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pteryx/base/json_reader.h"
#include "pteryx/base/order.h"
#include "pteryx/base/utf8.h"
#include "pteryx/llm/chat/evaluator.h"
#include "pteryx/llm/chat/template.h"

namespace pteryx::llm::chat {
namespace {

constexpr size_t kDeepest = 48;

// Puts the pieces of a document together, in their order.
class Builder {
 public:
  using Piece = JsonReader::Piece;

  explicit Builder(std::string_view json) : reader_(json, kDeepest) {}

  // Whether all of it is JSON that is not nested too deep.
  bool build() {
    for (;;) {
      switch (reader_.next()) {
        case Piece::kNull: put(Value()); break;
        case Piece::kFalse: put(Value(false)); break;
        case Piece::kTrue: put(Value(true)); break;
        case Piece::kNegative: put(Value(reader_.negative())); break;
        case Piece::kWhole: put(whole_value(reader_.whole())); break;
        case Piece::kReal: put(Value(reader_.real())); break;
        case Piece::kString: put(Value(reader_.take_text())); break;
        case Piece::kKey: open_.back().key = reader_.take_text(); break;
        case Piece::kBeginArray: open_.push_back({.is_dict = false}); break;
        case Piece::kBeginObject: open_.push_back({.is_dict = true}); break;
        case Piece::kEndArray:
        case Piece::kEndObject: close(); break;
        case Piece::kEnd: return true;
        case Piece::kWrong:
        case Piece::kTooDeep: return false;
      }
    }
  }

  Value take() { return std::move(root_); }

 private:
  struct Open {
    bool is_dict = false;
    std::string key;
    List elements;
    Dict members;
  };

  static Value whole_value(uint64_t n) {
    return n > INT64_MAX ? Value(static_cast<double>(n)) : Value(static_cast<int64_t>(n));
  }

  void close() {
    Open& last = open_.back();
    Value v = last.is_dict ? Value(std::move(last.members)) : Value(std::move(last.elements));
    open_.pop_back();
    put(std::move(v));
  }

  void put(Value v) {
    if (open_.empty()) {
      root_ = std::move(v);
    } else if (open_.back().is_dict) {
      open_.back().members.emplace_back(std::move(open_.back().key), std::move(v));
    } else {
      open_.back().elements.push_back(std::move(v));
    }
  }

  JsonReader reader_;
  Value root_;
  std::vector<Open> open_;
};

class Writer {
 public:
  Writer(const JsonStyle& style, TextBuilder& out) : style_(style), out_(out) {}

  Status write(const Value& v, int64_t depth) {
    if (v.is_none()) return out_.append("null");
    if (v.boolean() != nullptr) return out_.append(*v.boolean() ? "true" : "false");
    if (v.real() != nullptr && std::isnan(*v.real())) return out_.append("NaN");
    if (v.is_number()) return print_repr(v, out_);
    if (v.is_string()) return quote(*v.string());
    if (v.list() != nullptr) return write_list(*v.list(), depth);
    if (v.dict() != nullptr) return write_dict(*v.dict(), depth);
    return template_error(fmt::format("a value of type {} cannot be JSON", v.type_name()));
  }

 private:
  Status write_list(const List& list, int64_t depth) {
    PTERYX_TRY(out_.append("["));
    for (size_t i = 0; i < list.size(); ++i) {
      PTERYX_TRY(separate(i, depth));
      PTERYX_TRY(write(list[i], depth + 1));
    }
    return close("]", list.empty(), depth);
  }

  Status write_dict(const Dict& dict, int64_t depth) {
    Charge charge(out_.meter());
    PTERYX_TRY(charge.add(2 * dict.size() * sizeof(const Dict::value_type*)));
    std::vector<uint32_t> order = places_of(dict.size());
    for (const auto& m : dict) PTERYX_TRY(out_.meter().work(20 + m.first.size()));
    if (style_.sort_keys) {
      sort_places(order, [&](uint32_t a, uint32_t b) { return dict[a].first < dict[b].first; });
    }
    PTERYX_TRY(out_.append("{"));
    for (size_t i = 0; i < order.size(); ++i) {
      PTERYX_TRY(separate(i, depth));
      const auto& [key, value] = dict[order[i]];
      PTERYX_TRY(quote(key));
      PTERYX_TRY(out_.append(style_.key_separator));
      PTERYX_TRY(write(value, depth + 1));
    }
    return close("}", dict.empty(), depth);
  }

  Status new_line(int64_t depth) {
    if (style_.indent < 0) return {};
    PTERYX_TRY(out_.append("\n"));
    return out_.append(std::string(static_cast<size_t>(style_.indent * depth), ' '));
  }

  Status separate(size_t i, int64_t depth) {
    if (i != 0) PTERYX_TRY(out_.append(style_.item_separator));
    return new_line(depth);
  }

  Status close(std::string_view bracket, bool empty, int64_t depth) {
    if (!empty) PTERYX_TRY(new_line(depth - 1));
    return out_.append(bracket);
  }

  Status quote(std::string_view text) {
    PTERYX_TRY(out_.append("\""));
    size_t done = 0;  // what needs no escape is copied in one piece
    for (size_t at = 0; at < text.size();) {
      const Utf8Char c = char_at(text, at);
      const size_t end = at + c.size_bytes;
      PTERYX_TRY(out_.meter().work(2));
      if (c.code < 0x20 || c.code == '"' || c.code == '\\' ||
          (style_.ascii_only && c.code > 0x7F)) {
        PTERYX_TRY(out_.append(text.substr(done, at - done)));
        PTERYX_TRY(escape(c.code));
        done = end;
      }
      at = end;
    }
    PTERYX_TRY(out_.append(text.substr(done)));
    return out_.append("\"");
  }

  Status escape(char32_t code) {
    constexpr std::string_view kEscaped = "\"\\\b\f\n\r\t";
    constexpr std::string_view kLetters = "\"\\bfnrt";
    const size_t letter = code < 0x80 ? kEscaped.find(static_cast<char>(code)) : kEscaped.npos;
    if (letter != kEscaped.npos) return out_.append(std::string{'\\', kLetters[letter]});
    PTERYX_TRY(out_.meter().work(20));
    if (code < 0x10000) return out_.append(fmt::format("\\u{:04x}", static_cast<uint32_t>(code)));
    const uint32_t pair = code - 0x10000;
    return out_.append(
        fmt::format("\\u{:04x}\\u{:04x}", 0xD800 | pair >> 10, 0xDC00 | (pair & 0x3FF)));
  }

  const JsonStyle& style_;
  TextBuilder& out_;
};

}  // namespace

Result<Value> value_of_json(std::string_view json) {
  Builder builder(json);
  if (!builder.build()) {
    return invalid_argument(fmt::format("expected JSON that is nested at most {} deep", kDeepest));
  }
  return builder.take();
}

Status write_json(const Value& value, const JsonStyle& style, TextBuilder& out) {
  return Writer(style, out).write(value, 1);
}

}  // namespace pteryx::llm::chat
