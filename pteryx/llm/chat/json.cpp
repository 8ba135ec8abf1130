// Values from and to JSON. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "pteryx/llm/chat/evaluator.h"
#include "pteryx/llm/chat/template.h"
#include "pteryx/llm/tokenizer/utf8.h"

namespace pteryx::llm::chat {
namespace {

constexpr size_t kDeepest = 48;
constexpr size_t kLongest = size_t{64} << 20;

// Builds values as the parser goes, in the order of the document.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  Value take() { return std::move(root_); }

  bool null() override { return put(Value()); }
  bool boolean(bool b) override { return put(Value(b)); }
  bool number_integer(number_integer_t n) override { return put(Value(int64_t{n})); }
  bool number_unsigned(number_unsigned_t n) override {
    return put(n > INT64_MAX ? Value(static_cast<double>(n)) : Value(static_cast<int64_t>(n)));
  }
  bool number_float(number_float_t n, const string_t&) override { return put(Value(n)); }
  bool string(string_t& s) override { return put(Value(std::move(s))); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open(true); }
  bool start_array(size_t) override { return open(false); }
  bool key(string_t& k) override {
    open_.back().key = std::move(k);
    return true;
  }
  bool end_object() override {
    Value v(std::move(open_.back().members));
    open_.pop_back();
    return put(std::move(v));
  }
  bool end_array() override {
    Value v(std::move(open_.back().elements));
    open_.pop_back();
    return put(std::move(v));
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  struct Open {
    bool is_dict = false;
    std::string key;
    List elements;
    Dict members;
  };

  bool open(bool is_dict) {
    if (open_.size() == kDeepest) return false;
    open_.push_back({.is_dict = is_dict});
    return true;
  }

  bool put(Value v) {
    if (open_.empty()) {
      root_ = std::move(v);
    } else if (open_.back().is_dict) {
      open_.back().members.emplace_back(std::move(open_.back().key), std::move(v));
    } else {
      open_.back().elements.push_back(std::move(v));
    }
    return true;
  }

  Value root_;
  std::vector<Open> open_;
};

class Writer {
 public:
  explicit Writer(const JsonStyle& style) : style_(style) {}

  Result<std::string> run(const Value& v) {
    PTERYX_TRY(write(v, 1));
    return std::move(out_);
  }

 private:
  Status write(const Value& v, int64_t depth) {
    if (out_.size() > kLongest) {
      return template_error(fmt::format("JSON of more than {} bytes", kLongest));
    }
    if (v.is_none()) {
      out_ += "null";
    } else if (v.boolean() != nullptr) {
      out_ += *v.boolean() ? "true" : "false";
    } else if (v.is_number()) {
      out_ += v.real() != nullptr && std::isnan(*v.real()) ? "NaN" : v.repr();
    } else if (v.is_string()) {
      quote(*v.string());
    } else if (v.list() != nullptr) {
      out_ += '[';
      for (size_t i = 0; i < v.list()->size(); ++i) {
        separate(i, depth);
        PTERYX_TRY(write((*v.list())[i], depth + 1));
      }
      close(']', v.list()->empty(), depth);
    } else if (v.dict() != nullptr) {
      return write_dict(*v.dict(), depth);
    } else {
      return template_error(fmt::format("a value of type {} cannot be JSON", v.type_name()));
    }
    return {};
  }

  Status write_dict(const Dict& dict, int64_t depth) {
    std::vector<const Dict::value_type*> order;
    for (const auto& m : dict) order.push_back(&m);
    if (style_.sort_keys) {
      std::stable_sort(order.begin(), order.end(),
                       [](const auto* a, const auto* b) { return a->first < b->first; });
    }
    out_ += '{';
    for (size_t i = 0; i < order.size(); ++i) {
      separate(i, depth);
      quote(order[i]->first);
      out_ += style_.key_separator;
      PTERYX_TRY(write(order[i]->second, depth + 1));
    }
    close('}', dict.empty(), depth);
    return {};
  }

  void new_line(int64_t depth) {
    if (style_.indent < 0) return;
    out_ += '\n';
    out_.append(static_cast<size_t>(style_.indent * depth), ' ');
  }

  void separate(size_t i, int64_t depth) {
    if (i != 0) out_ += style_.item_separator;
    new_line(depth);
  }

  void close(char bracket, bool empty, int64_t depth) {
    if (!empty) new_line(depth - 1);
    out_ += bracket;
  }

  void quote(std::string_view text) {
    constexpr std::string_view kEscaped = "\"\\\b\f\n\r\t";
    constexpr std::string_view kLetters = "\"\\bfnrt";
    out_ += '"';
    for (size_t at = 0; at < text.size();) {
      const Utf8Char c = char_at(text, at);
      const size_t escape =
          c.code < 0x80 ? kEscaped.find(static_cast<char>(c.code)) : kEscaped.npos;
      if (escape != kEscaped.npos) {
        out_ += '\\';
        out_ += kLetters[escape];
      } else if (c.code < 0x20 || (style_.ascii_only && c.code > 0x7F)) {
        if (c.code < 0x10000) {
          out_ += fmt::format("\\u{:04x}", static_cast<uint32_t>(c.code));
        } else {
          const uint32_t pair = c.code - 0x10000;
          out_ += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 | pair >> 10, 0xDC00 | (pair & 0x3FF));
        }
      } else {
        out_ += text.substr(at, c.size_bytes);
      }
      at += c.size_bytes;
    }
    out_ += '"';
  }

  const JsonStyle& style_;
  std::string out_;
};

}  // namespace

Result<Value> value_of_json(std::string_view json) {
  Builder builder;
  if (!nlohmann::json::sax_parse(json.begin(), json.end(), &builder)) {
    return invalid_argument(fmt::format("expected JSON that is nested at most {} deep", kDeepest));
  }
  return builder.take();
}

Result<std::string> json_of_value(const Value& value, const JsonStyle& style) {
  return Writer(style).run(value);
}

}  // namespace pteryx::llm::chat
