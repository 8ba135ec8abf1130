// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/json.h"

#include <cmath>

#include <fmt/format.h>

#include "pteryx/base/checked.h"
#include "pteryx/base/utf8.h"

namespace pteryx {
namespace {

class JsonWriter {
 public:
  explicit JsonWriter(int indent) : indent_(indent) {}

  void write(const Json& j, int depth) {
    if (const bool* const b = j.flag()) {
      out_ += *b ? "true" : "false";
    } else if (const std::string* const s = j.text()) {
      quote(*s);
    } else if (const Json::Array* const a = j.array()) {
      write_array(*a, depth);
    } else if (const Json::Object* const o = j.object()) {
      write_object(*o, depth);
    } else {
      write_number(j);
    }
  }

  std::string take() { return std::move(out_); }

 private:
  void write_number(const Json& j) {
    if (const auto u = j.whole()) {
      out_ += fmt::format("{}", *u);
    } else if (const auto i = j.integer()) {
      out_ += fmt::format("{}", *i);
    } else if (const auto d = j.number(); d && std::isfinite(*d)) {
      out_ += fmt::format("{}", *d);
    } else {
      out_ += "null";
    }
  }

  void write_array(const Json::Array& a, int depth) {
    out_ += '[';
    for (const Json& element : a) {
      separate(&element == a.data(), depth + 1);
      write(element, depth + 1);
    }
    close(']', a.empty(), depth);
  }

  void write_object(const Json::Object& o, int depth) {
    out_ += '{';
    bool first = true;
    for (const auto& [key, value] : o) {
      separate(first, depth + 1);
      first = false;
      quote(key);
      out_ += indent_ < 0 ? ":" : ": ";
      write(value, depth + 1);
    }
    close('}', o.empty(), depth);
  }

  void separate(bool first, int depth) {
    if (!first) out_ += ',';
    new_line(depth);
  }

  void close(char bracket, bool empty, int depth) {
    if (!empty) new_line(depth);
    out_ += bracket;
  }

  void new_line(int depth) {
    if (indent_ < 0) return;
    out_ += '\n';
    out_.append(static_cast<size_t>(indent_) * static_cast<size_t>(depth), ' ');
  }

  void quote(std::string_view text) {
    out_ += '"';
    for (size_t at = 0; at < text.size();) {
      const Utf8Char c = char_at(text, at);
      if (c.code == '"' || c.code == '\\') {
        out_ += '\\';
        out_ += static_cast<char>(c.code);
      } else if (c.code == '\n') {
        out_ += "\\n";
      } else if (c.code < 0x20) {
        out_ += fmt::format("\\u{:04x}", static_cast<uint32_t>(c.code));
      } else {
        append_utf8(out_, c.code);
      }
      at += c.size_bytes;
    }
    out_ += '"';
  }

  int indent_;
  std::string out_;
};

}  // namespace

Json::Json(const Json&) = default;
Json::Json(Json&&) noexcept = default;
Json& Json::operator=(const Json&) = default;
Json& Json::operator=(Json&&) noexcept = default;
Json::~Json() = default;

std::optional<double> Json::number() const {
  if (const auto* const d = std::get_if<double>(&value_)) return *d;
  if (const auto* const u = std::get_if<uint64_t>(&value_)) return static_cast<double>(*u);
  if (const auto* const i = std::get_if<int64_t>(&value_)) return static_cast<double>(*i);
  return std::nullopt;
}

std::optional<int64_t> Json::integer() const {
  if (const auto* const i = std::get_if<int64_t>(&value_)) return *i;
  const auto* const u = std::get_if<uint64_t>(&value_);
  if (u == nullptr || !fits<int64_t>(*u)) return std::nullopt;
  return static_cast<int64_t>(*u);
}

std::optional<uint64_t> Json::whole() const {
  const auto* const u = std::get_if<uint64_t>(&value_);
  return u == nullptr ? std::nullopt : std::optional(*u);
}

std::string_view Json::type_name() const {
  if (is_null()) return "null";
  if (flag() != nullptr) return "boolean";
  if (text() != nullptr) return "string";
  if (array() != nullptr) return "array";
  return object() != nullptr ? "object" : "number";
}

const Json& Json::operator[](std::string_view key) const {
  static const Json kNull;
  const Object* const o = object();
  if (o == nullptr) return kNull;
  const auto it = o->find(key);
  return it == o->end() ? kNull : it->second;
}

size_t Json::size() const {
  if (const Array* const a = array()) return a->size();
  return object() == nullptr ? 0 : object()->size();
}

Json& Json::set(std::string_view key, Json value) {
  if (object() == nullptr) value_.emplace<Object>();
  std::get_if<Object>(&value_)->insert_or_assign(std::string(key), std::move(value));
  return *this;
}

Json& Json::push(Json value) {
  if (array() == nullptr) value_.emplace<Array>();
  std::get_if<Array>(&value_)->push_back(std::move(value));
  return *this;
}

bool Json::erase(std::string_view key) {
  auto* const o = std::get_if<Object>(&value_);
  if (o == nullptr) return false;
  const auto it = o->find(key);
  if (it == o->end()) return false;
  o->erase(it);
  return true;
}

std::string Json::dump(int indent) const {
  JsonWriter writer(indent);
  writer.write(*this, 0);
  return writer.take();
}

}  // namespace pteryx
