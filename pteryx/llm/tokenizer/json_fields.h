// Members of JSON objects from files, with errors that say which one.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pteryx/base/json.h"
#include "pteryx/base/status.h"

namespace pteryx::llm {

// A value of a document, and the way to it for messages.
class JsonField {
 public:
  JsonField(const Json& value, std::string path) : value_(&value), path_(std::move(path)) {}

  const Json& value() const { return *value_; }
  const std::string& path() const { return path_; }
  bool is_null() const { return value_->is_null(); }

  // The member, null if it is not there or this is no object.
  JsonField member(std::string_view key) const;
  // The element of an array; the index is in range.
  JsonField at(size_t index) const;
  size_t size() const { return value_->size(); }

  // Errors: kInvalidProgram with the path, what was expected and what was got.
  Result<std::string> string() const;
  Result<std::string_view> text() const;  // lives as long as the document
  Result<uint32_t> number() const;
  Result<int64_t> integer() const;
  Result<double> real() const;  // also an integer
  Status expect_array() const;
  Status expect_object() const;
  // With a value for null.
  Result<bool> boolean(bool otherwise) const;
  Result<std::string> string_or(std::string_view otherwise) const;

 private:
  Status wrong(std::string_view expected) const;

  const Json* value_;
  std::string path_;
};

}  // namespace pteryx::llm
