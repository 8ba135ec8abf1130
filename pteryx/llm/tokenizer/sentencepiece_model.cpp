// SentencePiece's .model file: a protocol buffer, of which a few fields matter.
// SPDX-License-Identifier: BSD-3-Clause
#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "pteryx/base/bytes.h"
#include "pteryx/base/utf8.h"
#include "pteryx/llm/tokenizer/limits.h"
#include "pteryx/llm/tokenizer/sentencepiece.h"

namespace pteryx::llm {
namespace {

struct Field {
  uint32_t number = 0;
  uint64_t scalar = 0;     // of a varint, or the bits of a fixed-width number
  std::string_view bytes;  // of a string or message
};

class Message {
 public:
  Message(std::string_view bytes, const char* what) : bytes_(bytes), what_(what) {}

  // nullopt at the end.
  Result<std::optional<Field>> next() {
    if (bytes_.empty()) return std::optional<Field>();
    const auto tag = varint();
    if (!tag || *tag >> 3 == 0 || *tag >> 3 > UINT32_MAX) return broken();
    Field field = {.number = static_cast<uint32_t>(*tag >> 3)};
    switch (*tag & 7) {
      case 0: {
        const auto v = varint();
        if (!v) return broken();
        field.scalar = *v;
        break;
      }
      case 1:
        if (!fixed<uint64_t>(field.scalar)) return broken();
        break;
      case 5:
        if (!fixed<uint32_t>(field.scalar)) return broken();
        break;
      case 2: {
        const auto size = varint();
        if (!size || *size > bytes_.size()) return broken();
        field.bytes = bytes_.substr(0, *size);
        bytes_.remove_prefix(*size);
        break;
      }
      default: return broken();
    }
    return std::optional<Field>(field);
  }

 private:
  Status broken() const {
    return invalid_program(fmt::format("SentencePiece model: {} is not a protocol buffer", what_));
  }

  std::optional<uint64_t> varint() {
    uint64_t v = 0;
    for (uint32_t shift = 0; shift < 64 && !bytes_.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(bytes_[0]);
      bytes_.remove_prefix(1);
      v |= uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return v;
    }
    return std::nullopt;
  }

  template <typename T>
  bool fixed(uint64_t& out) {
    const auto v = read_at<T>(std::as_bytes(std::span(bytes_)), 0);
    if (!v) return false;
    out = *v;
    bytes_.remove_prefix(sizeof(T));
    return true;
  }

  std::string_view bytes_;
  const char* what_;
};

// Calls take(field) for each field of a message until one fails.
template <typename Take>
Status each_field(std::string_view bytes, const char* what, Take take) {
  Message message(bytes, what);
  while (true) {
    PTERYX_ASSIGN(const auto field, message.next());
    if (!field) return {};
    PTERYX_TRY(take(*field));
  }
}

Status read_piece(std::string_view bytes, SpmModel& m) {
  SpmPiece piece;
  const size_t id = m.pieces.size();
  const auto take = [&](const Field& f) -> Status {
    if (f.number == 1) piece.text = f.bytes;
    if (f.number == 2) piece.score = std::bit_cast<float>(static_cast<uint32_t>(f.scalar));
    if (f.number == 3) {
      if (f.scalar < 1 || f.scalar > 6) {
        return invalid_program(
            fmt::format("token {}: type {} is none of SentencePiece's", id, f.scalar));
      }
      piece.type = static_cast<SpmType>(f.scalar);
    }
    return {};
  };
  PTERYX_TRY(each_field(bytes, "a token", take));
  if (!is_utf8(piece.text)) return invalid_program(fmt::format("token {} is not UTF-8", id));
  PTERYX_TRY(check_token_count(id + 1));
  m.pieces.push_back(std::move(piece));
  return {};
}

struct Trainer {
  uint64_t model_type = 1;
  uint64_t bos = 1;
  uint64_t eos = 2;
};

Status read_trainer(std::string_view bytes, Trainer& t, SpmModel& m) {
  return each_field(bytes, "the trainer's part", [&](const Field& f) -> Status {
    if (f.number == 3) t.model_type = f.scalar;
    if (f.number == 24 && f.scalar != 0) {
      return unsupported("SentencePiece model: spaces at the ends of words are not supported");
    }
    if (f.number == 35) m.byte_fallback = f.scalar != 0;
    if (f.number == 41) t.bos = f.scalar;
    if (f.number == 42) t.eos = f.scalar;
    if (f.number == 44) m.unknown_surface = f.bytes;
    return {};
  });
}

Status read_normalizer(std::string_view bytes, SpmModel& m) {
  return each_field(bytes, "the normalizer's part", [&](const Field& f) -> Status {
    if (f.number == 2) {
      PTERYX_ASSIGN(m.charsmap, Charsmap::read(f.bytes));
    }
    if (f.number == 3) m.dummy_prefix = f.scalar != 0;
    if (f.number == 4) m.remove_extra_spaces = f.scalar != 0;
    if (f.number == 5 && f.scalar == 0) m.space = " ";
    return {};
  });
}

std::optional<TokenId> control_id(const SpmModel& m, uint64_t id) {
  if (id >= m.pieces.size() || m.pieces[id].type != SpmType::kControl) return std::nullopt;
  return static_cast<TokenId>(id);
}

}  // namespace

Result<TokenizerPtr> read_sentencepiece(Bytes file) {
  SpmModel m;
  m.remove_extra_spaces = true;  // SentencePiece's default where the file is silent
  Trainer t;
  const std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.size());
  const auto take = [&](const Field& f) -> Status {
    if (f.number == 1) return read_piece(f.bytes, m);
    if (f.number == 2) return read_trainer(f.bytes, t, m);
    if (f.number == 3) return read_normalizer(f.bytes, m);
    return {};
  };
  PTERYX_TRY(each_field(bytes, "the file", take));
  if (t.model_type != 1 && t.model_type != 2) {
    return unsupported(fmt::format(
        "SentencePiece model: model type {} is not supported (expected 1 unigram or 2 BPE)",
        t.model_type));
  }
  m.unigram = t.model_type == 1;
  m.bos = control_id(m, t.bos);
  m.eos = control_id(m, t.eos);
  return make_sentencepiece(std::move(m));
}

}  // namespace pteryx::llm
