// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include "pteryx/base/excerpt.h"
#include "pteryx/base/json.h"
#include "pteryx/base/json_reader.h"

namespace pteryx {

// Puts the pieces of a document together.
class JsonBuilder {
 public:
  using Piece = JsonReader::Piece;

  JsonBuilder(std::string_view text, size_t deepest) : reader_(text, deepest) {}

  // kEnd, or what is wrong at at_byte().
  Piece build() {
    for (;;) {
      const Piece piece = reader_.next();
      switch (piece) {
        case Piece::kNull: put({}); break;
        case Piece::kFalse: put(false); break;
        case Piece::kTrue: put(true); break;
        case Piece::kNegative: put(reader_.negative()); break;
        case Piece::kWhole: put(reader_.whole()); break;
        case Piece::kReal: put(reader_.real()); break;
        case Piece::kString: put(reader_.take_text()); break;
        case Piece::kKey: put_key(); break;
        case Piece::kBeginArray: open_.push_back(&put(Json::Array())); break;
        case Piece::kBeginObject: open_.push_back(&put(Json::Object())); break;
        case Piece::kEndArray:
        case Piece::kEndObject: open_.pop_back(); break;
        case Piece::kEnd:
        case Piece::kWrong:
        case Piece::kTooDeep: return piece;
      }
    }
  }

  size_t at_byte() const { return reader_.at_byte(); }
  // The first member of the outermost object that was there before.
  const std::optional<std::string>& twice() const { return twice_; }
  Json take() { return std::move(root_); }

 private:
  Json& put(Json value) {
    if (!open_.empty()) {
      if (auto* const a = std::get_if<Json::Array>(&open_.back()->value_))
        return a->emplace_back(std::move(value));
    }
    return *place_ = std::move(value);
  }

  void put_key() {
    auto* const o = std::get_if<Json::Object>(&open_.back()->value_);
    const auto [it, added] = o->try_emplace(reader_.take_text());
    if (!added && open_.size() == 1 && !twice_) twice_ = it->first;
    place_ = &it->second;
  }

  JsonReader reader_;
  Json root_;
  Json* place_ = &root_;  // of the next value, unless that is an element of an array
  std::vector<Json*> open_;
  std::optional<std::string> twice_;
};

Result<Json> parse_json(std::string_view text, std::string_view what, const JsonRules& rules) {
  if (text.size() > kLargestJson) {
    return invalid_program(fmt::format("{}: expected at most {} bytes of JSON, got {}", what,
                                       kLargestJson, text.size()));
  }
  JsonBuilder builder(text, rules.deepest);
  const JsonReader::Piece last = builder.build();
  if (last == JsonReader::Piece::kTooDeep) {
    return invalid_program(fmt::format("{}: JSON is nested deeper than {} levels at byte {}", what,
                                       rules.deepest, builder.at_byte()));
  }
  if (last != JsonReader::Piece::kEnd)
    return invalid_program(fmt::format("{}: not JSON at byte {}", what, builder.at_byte()));
  if (rules.unique && builder.twice())
    return invalid_program(fmt::format("{}: '{}' occurs twice", what, excerpt(*builder.twice())));
  return builder.take();
}

Result<Json> parse_json(Bytes bytes, std::string_view what, const JsonRules& rules) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return parse_json(text, what, rules);
}

}  // namespace pteryx
