// The only place that knows utf8proc.
// SPDX-License-Identifier: BSD-3-Clause
#include <cstdlib>
#include <memory>

#include <fmt/format.h>
#include <utf8proc.h>

#include "pteryx/llm/tokenizer/unicode_tables.h"

namespace pteryx::llm {
namespace {

int options_of(NormalForm form) {
  switch (form) {
    case NormalForm::kNfc: return UTF8PROC_STABLE | UTF8PROC_COMPOSE;
    case NormalForm::kNfd: return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;
    case NormalForm::kNfkc: return UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT;
    case NormalForm::kNfkd: return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT;
  }
  return 0;
}

}  // namespace

CharKind kind_of(char32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return CharKind::kLetter;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME: return CharKind::kMark;
    case UTF8PROC_CATEGORY_ND: return CharKind::kDigit;
    case UTF8PROC_CATEGORY_NL: return CharKind::kLetterNumber;
    case UTF8PROC_CATEGORY_NO: return CharKind::kOtherNumber;
    case UTF8PROC_CATEGORY_PC: return CharKind::kConnector;
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO: return CharKind::kOtherPunctuation;
    default: return CharKind::kOther;
  }
}

char32_t to_lower(char32_t c) {
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}
char32_t to_upper(char32_t c) {
  return static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c)));
}
char32_t to_title(char32_t c) {
  return static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c)));
}

Result<std::string> normalize_by_tables(std::string_view text, NormalForm form) {
  utf8proc_uint8_t* made = nullptr;
  const auto size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                 static_cast<utf8proc_ssize_t>(text.size()), &made,
                                 static_cast<utf8proc_option_t>(options_of(form)));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owned(made, &std::free);
  if (size == UTF8PROC_ERROR_NOMEM) return memory_error("text to normalise is too large");
  if (size < 0) {
    return invalid_argument(fmt::format("text cannot be normalised: {}", utf8proc_errmsg(size)));
  }
  return std::string(reinterpret_cast<const char*>(made), static_cast<size_t>(size));
}

}  // namespace pteryx::llm
