// Text to token ids and back, for every kind of tokenizer file.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "pteryx/base/bytes.h"
#include "pteryx/base/status.h"
#include "pteryx/base/token.h"

namespace pteryx::llm {

struct EncodeOptions {
  bool add_bos = false;        // what the file puts in front of a text
  bool add_eos = false;        // what it puts behind one
  bool parse_special = false;  // "<|im_start|>" in the text is that token, not its characters
};

// What decoding makes of special tokens.
enum class Specials : uint8_t { kSkip, kShow };

// What is decoded: a whole text, or one that goes on from an earlier one.
enum class TextStart : uint8_t { kNew, kContinued };

enum class TokenKind : uint8_t { kHole, kNormal, kUnknown, kSpecial, kAdded, kByte };

struct Token {
  std::string text;   // as the file spells it
  std::string bytes;  // what it decodes to; part of a character at times
  TokenKind kind = TokenKind::kHole;
};

// The spaces at the start of a decoded text that are left out.
struct LeadingSpaces {
  uint32_t most = 0;
  bool first_token_only = false;
};

// What the file says besides how to cut a text.
struct Vocabulary {
  std::vector<Token> tokens;  // by id; ids that the file leaves out are holes
  std::optional<TokenId> bos;
  std::vector<TokenId> eos;  // each ends a text
  std::optional<TokenId> unknown;
  std::vector<TokenId> prefix;  // what add_bos adds; bos if it is empty
  std::vector<TokenId> suffix;  // what add_eos adds; the first eos if it is empty
  EncodeOptions usual;          // what the file asks for when nobody says otherwise
  LeadingSpaces leading;
};

// Immutable; calls from several threads need no lock.
class Tokenizer {
 public:
  explicit Tokenizer(Vocabulary vocabulary);
  virtual ~Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Errors: kInvalidArgument for a text that is too long or that the file's patterns do not get
  // through. Bytes that are not UTF-8 become themselves where the vocabulary has them, or U+FFFD.
  Result<std::vector<TokenId>> encode(std::string_view text, const EncodeOptions& options) const;

  // The bytes, which need not be UTF-8 when the ids are not. Errors: kInvalidArgument for an id
  // that is out of range.
  Result<std::string> decode(std::span<const TokenId> ids, Specials specials,
                             TextStart start = TextStart::kNew) const;

  size_t size() const { return vocabulary_.tokens.size(); }  // one more than the largest id
  const Vocabulary& vocabulary() const { return vocabulary_; }
  std::optional<TokenId> find(std::string_view token_text) const;
  bool ends_text(TokenId id) const;

 protected:
  // Appends the ids of a text; options.add_* are none of its business.
  virtual Status encode_text(std::string_view text, const EncodeOptions& options,
                             std::vector<TokenId>& ids) const = 0;

 private:
  friend class StreamDecoder;
  // Appends what an id adds to a text; `spaces` is how many may still be left out.
  Status append_token(TokenId id, Specials specials, uint32_t& spaces, std::string& text) const;
  uint32_t leading_spaces(TextStart start) const {
    return start == TextStart::kNew ? vocabulary_.leading.most : 0;
  }

  Vocabulary vocabulary_;
  std::unordered_map<std::string_view, TokenId> by_text_;
};

using TokenizerPtr = std::unique_ptr<const Tokenizer>;

// Decodes token by token and never gives out a part of a character.
class StreamDecoder {
 public:
  StreamDecoder(const Tokenizer& tokenizer, Specials specials, TextStart start);

  // The text that is complete with this token; empty while a character is not. Errors as decode().
  Result<std::string> push(TokenId id);
  // What was held back, with U+FFFD for what never became a character.
  std::string finish();

 private:
  const Tokenizer& tokenizer_;
  Specials specials_;
  uint32_t spaces_;
  std::string held_;
};

// Far above any; what is read of a file before it is looked at.
inline constexpr uint64_t kLargestTokenizer = uint64_t{1} << 30;

enum class TokenizerFile : uint8_t { kHuggingFace, kSentencePiece, kTiktoken, kLlama2c };
// What a tokenizer file is, told by its content; kLlama2c if nothing else fits.
TokenizerFile tokenizer_file(Bytes file);
// "tokenizer.json", "sentencepiece", "tiktoken" or "llama2c".
std::string_view name(TokenizerFile kind);

// Reads a tokenizer file of any kind. Errors: kInvalidProgram, kUnsupported.
Result<TokenizerPtr> read_tokenizer(Bytes file);

Result<TokenizerPtr> read_hf_tokenizer(Bytes json);        // Hugging Face's tokenizer.json
Result<TokenizerPtr> read_sentencepiece(Bytes model);      // SentencePiece's .model
Result<TokenizerPtr> read_tiktoken(Bytes ranks);           // Llama 3's tokenizer.model
Result<TokenizerPtr> read_llama2c_tokenizer(Bytes table);  // llama2.c's tokenizer.bin

// The tokenizer that a GGUF file holds in its metadata, as plain arrays.
struct GgufVocabulary {
  std::string model;  // "gpt2" or "llama"
  std::string pre;    // how "gpt2" cuts a text: "smollm", "llama-bpe", "qwen2", "default" ...
  std::vector<std::string> tokens;  // by id
  std::vector<float> scores;        // of "llama"
  std::vector<int32_t> types;  // 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte
  std::vector<std::string> merges;  // of "gpt2": "left right"
  std::optional<TokenId> bos;
  std::optional<TokenId> eos;
  std::optional<TokenId> unknown;
  std::optional<bool> add_bos;
  std::optional<bool> add_eos;
  std::optional<bool> add_space_prefix;
};
Result<TokenizerPtr> make_gguf_tokenizer(const GgufVocabulary& gguf);

}  // namespace pteryx::llm
