// SPDX-License-Identifier: BSD-3-Clause
#include "check.h"

#include <cstddef>
#include <cstring>
#include <set>
#include <variant>

#include "pteryx/program/delegate.h"
#include "pteryx/program/program.h"

namespace pteryx::fuzz {
namespace {

using program::Blob;
using program::BlobTensor;
using program::DelegateRecord;
using program::MethodRecord;
using program::NamedData;
using program::Program;
using program::TensorRecord;

volatile std::byte sink;

// Reads both ends, so that a sanitizer sees a span that leaves the file.
void touch(Bytes bytes) {
  if (bytes.empty()) return;
  sink = bytes.front();
  sink = bytes.back();
}

void touch(const MethodRecord& m) {
  for (const auto& v : m.values) {
    const auto* const tensor = std::get_if<TensorRecord>(&v);
    if (tensor != nullptr && tensor->data) touch(*tensor->data);
  }
  for (const DelegateRecord& d : m.delegates) touch(d.blob);
}

void touch(const Blob& blob) {
  for (const auto& v : blob.values) {
    const auto* const tensor = std::get_if<BlobTensor>(&v);
    if (tensor != nullptr && tensor->constant) touch(*tensor->constant);
  }
}

Status check_data_file(Bytes file) {
  NamedData named;
  PTERYX_TRY(program::read_data_file(file, "data file", named));
  for (const auto& [key, blob] : named) touch(blob.bytes);
  return {};
}

Status check_program(Bytes file) {
  PTERYX_ASSIGN(const Program program, Program::parse(file));
  std::set<const std::byte*> seen;  // delegates may share a blob, and reading it once is enough
  for (const MethodRecord& m : program.methods()) {
    touch(m);
    for (const DelegateRecord& d : m.delegates) {
      if (d.id != "VulkanBackend" || !seen.insert(d.blob.data()).second) continue;
      PTERYX_ASSIGN(const Blob blob, program::parse_blob(d.blob, program.named_data()));
      touch(blob);
    }
  }
  return {};
}

}  // namespace

Status check(Bytes file) {
  const bool data_file = file.size() >= 8 && std::memcmp(file.data() + 4, "FT01", 4) == 0;
  return data_file ? check_data_file(file) : check_program(file);
}

bool is_refusal(const Status& status) {
  return (status.code() == Code::kInvalidProgram || status.code() == Code::kUnsupported) &&
         !status.message().empty();
}

}  // namespace pteryx::fuzz
