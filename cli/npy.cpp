// .npy reading and writing. SPDX-License-Identifier: BSD-3-Clause
#include "npy.h"

#include <cctype>
#include <charconv>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "pteryx/base/file.h"
#include "pteryx/base/output_file.h"

namespace pteryx::cli {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr uint64_t kLargestBytes = uint64_t{1} << 32;  // more than any GPU buffer holds

struct TypeCode {
  std::string_view code;
  DType dtype;
};
constexpr TypeCode kTypes[] = {{"b1", DType::kBool}, {"u1", DType::kU8},  {"i1", DType::kI8},
                               {"i2", DType::kI16},  {"u2", DType::kU16}, {"i4", DType::kI32},
                               {"u4", DType::kU32},  {"i8", DType::kI64}, {"u8", DType::kU64},
                               {"f2", DType::kF16},  {"f4", DType::kF32}, {"f8", DType::kF64}};

// The value text behind 'key': in the header dict, up to the comma or brace that ends it.
std::optional<std::string_view> field(std::string_view header, std::string_view key) {
  const size_t at = header.find(fmt::format("'{}'", key));
  if (at == std::string_view::npos) return std::nullopt;
  size_t begin = header.find(':', at);
  if (begin == std::string_view::npos) return std::nullopt;
  begin = header.find_first_not_of(' ', begin + 1);
  if (begin == std::string_view::npos) return std::nullopt;
  const char open = header[begin];
  const size_t end = open == '('    ? header.find(')', begin)
                     : open == '\'' ? header.find('\'', begin + 1)
                                    : header.find_first_of(",}", begin);
  if (end == std::string_view::npos) return std::nullopt;
  return header.substr(begin, open == '(' || open == '\'' ? end - begin + 1 : end - begin);
}

Result<DType> parse_type(std::string_view text) {
  if (text.size() != 5 || text.front() != '\'' || text.back() != '\'') {
    return invalid_program(fmt::format("descr: expected a plain type such as '<f4', got {}", text));
  }
  const char order = text[1];
  const std::string_view code = text.substr(2, 2);
  for (const TypeCode& t : kTypes) {
    if (t.code != code) continue;
    if (order == '>' && size_bytes(t.dtype) > 1) {
      return invalid_program(fmt::format("descr: expected little endian, got {}", text));
    }
    return t.dtype;
  }
  return invalid_program(fmt::format("descr: type {} is not one Pteryx knows", text));
}

Result<Dims> parse_shape(std::string_view text) {
  Dims dims;
  const char* at = text.data() + 1;
  const char* end = text.data() + text.size() - 1;
  while (at < end) {
    if (*at == ' ' || *at == ',') {
      ++at;
      continue;
    }
    int64_t v = 0;
    const auto [next, error] = std::from_chars(at, end, v);
    if (error != std::errc() || v < 0)
      return invalid_program(fmt::format("shape: cannot read {}", text));
    if (dims.rank() == kMaxRank) {
      return invalid_program(
          fmt::format("shape: expected at most {} dims, got {}", kMaxRank, text));
    }
    dims.push_back(v);
    at = next;
    if (at < end && *at == 'L') ++at;  // written by Python 2
  }
  return dims;
}

}  // namespace

Result<Array> parse_npy(Bytes file) {
  const auto* text = reinterpret_cast<const char*>(file.data());
  if (file.size() < 10 || std::string_view(text, kMagic.size()) != kMagic) {
    return invalid_program("not a .npy file");
  }
  const auto major = static_cast<uint8_t>(file[6]);
  if (major < 1 || major > 3)
    return invalid_program(fmt::format(".npy version {} is not supported", major));
  uint64_t header_at = 10;
  uint64_t header_size = *read_at<uint16_t>(file, 8);
  if (major > 1) {
    const auto wide = read_at<uint32_t>(file, 8);
    if (!wide) return invalid_program(".npy header is truncated");
    header_at = 12;
    header_size = *wide;
  }
  const auto header_bytes = slice(file, header_at, header_size);
  if (!header_bytes) {
    return invalid_program(
        fmt::format(".npy header of {} bytes exceeds the file of {}", header_size, file.size()));
  }
  const std::string_view header(text + header_at, header_size);
  const auto descr = field(header, "descr");
  const auto fortran = field(header, "fortran_order");
  const auto shape = field(header, "shape");
  if (!descr || !fortran || !shape || !shape->starts_with('(')) {
    return invalid_program(".npy header lacks descr, fortran_order or shape");
  }
  if (*fortran != "True" && *fortran != "False") {
    return invalid_program(fmt::format("fortran_order: expected True or False, got {}", *fortran));
  }
  Array a;
  PTERYX_ASSIGN(a.dtype, parse_type(*descr));
  PTERYX_ASSIGN(a.dims, parse_shape(*shape));
  const auto count = checked_numel(a.dims.span(), size_bytes(a.dtype));
  if (!count) return invalid_program(fmt::format("shape {} overflows", *shape));
  const uint64_t bytes = static_cast<uint64_t>(*count) * size_bytes(a.dtype);
  const auto data = slice(file, header_at + header_size, bytes);
  if (!data) {
    return invalid_program(fmt::format("{} {} needs {} bytes of data, the file has {}",
                                       name(a.dtype), to_string(a.dims), bytes,
                                       file.size() - header_at - header_size));
  }
  if (bytes > kLargestBytes) {
    return invalid_program(fmt::format("{} {} has {} bytes: expected at most {}", name(a.dtype),
                                       to_string(a.dims), bytes, kLargestBytes));
  }
  if (*fortran == "True" && a.dims.rank() > 1) {
    std::vector<uint8_t> order;
    for (size_t d = a.dims.rank(); d-- > 0;) order.push_back(static_cast<uint8_t>(d));
    a.strides = strides_for_order(a.dims, order);
  }
  a.data.assign(data->begin(), data->end());
  return a;
}

Result<Array> read_npy(const std::string& path) {
  PTERYX_ASSIGN(const auto file, MappedFile::open(path));
  auto a = parse_npy(file->bytes());
  if (!a.ok()) return std::move(a).status().during("reading " + path);
  return a;
}

Status write_npy(const std::string& path, const TensorView& tensor) {
  std::string_view code;
  for (const TypeCode& t : kTypes) {
    if (t.dtype == tensor.dtype) code = t.code;
  }
  if (code.empty())
    return unsupported(fmt::format("{} cannot be written as .npy", name(tensor.dtype)));
  std::string shape;
  for (const int64_t d : tensor.dims) shape += fmt::format("{}, ", d);
  std::string header = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                   size_bytes(tensor.dtype) == 1 ? '|' : '<', code, shape);
  header.resize(align_up(10 + header.size() + 1, 64) - 10 - 1, ' ');
  header += '\n';
  std::string prefix(kMagic);
  prefix += std::string("\x01\x00", 2);
  prefix += static_cast<char>(header.size() & 0xFF);
  prefix += static_cast<char>(header.size() >> 8);

  PTERYX_ASSIGN(OutputFile file, OutputFile::create(path));
  PTERYX_TRY(file.write(prefix));
  PTERYX_TRY(file.write(header));
  PTERYX_TRY(file.write(Bytes(static_cast<const std::byte*>(tensor.data), tensor.size_bytes)));
  return file.commit();
}

}  // namespace pteryx::cli
