// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/checkpoint.h"

#include <vector>

#include <fmt/format.h>

#include "pteryx/base/checked.h"

namespace pteryx::convert {

uint64_t SourceTensor::row_bytes() const {
  const SourceFormat& f = format(type);
  return static_cast<uint64_t>(cols()) / f.block_elems * f.block_bytes;
}

Status SourceTensor::reading(Status status) const {
  return status.ok() ? Status()
                     : std::move(status).during(fmt::format("reading tensor '{}'", name));
}

Result<bool> SourceTensor::read_bytes(int64_t first_row, MutableBytes out) const {
  auto there = file->read(offset + static_cast<uint64_t>(first_row) * row_bytes(), out);
  if (!there.ok()) return reading(std::move(there).status());
  return there;
}

void SourceTensor::decode(Bytes row, std::span<float> out) const {
  const SourceFormat& f = format(type);
  const std::byte* block = row.data();
  for (size_t i = 0; i < out.size(); i += f.block_elems, block += f.block_bytes) {
    f.decode(block, out.data() + i);
  }
}

Status SourceTensor::read_row(int64_t row, std::span<float> out) const {
  std::vector<std::byte> bytes(row_bytes());
  PTERYX_TRY(reading(file->read_now(offset + static_cast<uint64_t>(row) * row_bytes(), bytes)));
  decode(bytes, out);
  return {};
}

std::optional<uint64_t> data_bytes(SourceType type, std::span<const int64_t> dims) {
  const SourceFormat& f = format(type);
  const auto count = checked_numel(dims, f.block_bytes);
  if (!count) return std::nullopt;
  if (!dims.empty() && dims.back() % f.block_elems != 0) return std::nullopt;
  return static_cast<uint64_t>(*count) / f.block_elems * f.block_bytes;
}

Status Checkpoint::check_new(const std::string& tensor, const std::string& file) const {
  const SourceTensor* t = find(tensor);
  const auto u = unreadable_.find(tensor);
  if (t == nullptr && u == unreadable_.end()) return {};
  const std::string& first = t != nullptr ? t->file->name() : u->second.file;
  return invalid_program(first == file
                             ? fmt::format("{}: tensor '{}' occurs twice", file, tensor)
                             : fmt::format("{}: tensor '{}' is also in {}", file, tensor, first));
}

Status Checkpoint::add(SourceTensor tensor) {
  PTERYX_TRY(check_new(tensor.name, tensor.file->name()));
  std::string key = tensor.name;
  tensors_.emplace(std::move(key), std::move(tensor));
  return {};
}

Status Checkpoint::add_unreadable(std::string tensor, std::string type, const Source& file) {
  PTERYX_TRY(check_new(tensor, file.name()));
  unreadable_.emplace(std::move(tensor), Unreadable{std::move(type), file.name()});
  return {};
}

Status Checkpoint::add_all(Checkpoint other) {
  for (auto& [key, tensor] : other.tensors_) PTERYX_TRY(add(std::move(tensor)));
  for (auto& [key, u] : other.unreadable_) {
    PTERYX_TRY(check_new(key, u.file));
    unreadable_.emplace(key, std::move(u));
  }
  return {};
}

const SourceTensor* Checkpoint::find(std::string_view tensor) const {
  const auto at = tensors_.find(tensor);
  return at == tensors_.end() ? nullptr : &at->second;
}

bool Checkpoint::has(std::string_view tensor) const {
  return tensors_.contains(tensor) || unreadable_.contains(tensor);
}

Result<const SourceTensor*> Checkpoint::get(std::string_view tensor, const Dims& dims) const {
  const SourceTensor* t = find(tensor);
  if (t != nullptr) {
    if (t->dims == dims) return t;
    return invalid_program(fmt::format("tensor '{}' shape: expected {}, got {}", tensor,
                                       to_string(dims), to_string(t->dims)));
  }
  if (const auto at = unreadable_.find(tensor); at != unreadable_.end()) {
    return unsupported(
        fmt::format("tensor '{}': {} is not supported (F32, F16, BF16, Q8_0, Q4_0, "
                    "Q4_1, Q5_0, Q5_1, Q4_K, Q5_K, Q6_K are)",
                    tensor, at->second.type));
  }
  return invalid_program(fmt::format("tensor '{}' {} is missing", tensor, to_string(dims)));
}

}  // namespace pteryx::convert
