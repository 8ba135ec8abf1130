// Unicode's tables as the browser has them.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/utf8.h"
#include "pteryx/llm/tokenizer/unicode_tables.h"
#include "pteryx/llm/tokenizer/web_imports.h"

namespace pteryx::llm {
namespace {

char letter_of(NormalForm form) {
  switch (form) {
    case NormalForm::kNfc: return 'C';
    case NormalForm::kNfd: return 'D';
    case NormalForm::kNfkc: return 'K';
    case NormalForm::kNfkd: return 'k';
  }
  return 0;
}

}  // namespace

CharKind kind_of(char32_t c) { return static_cast<CharKind>(pteryx_unicode_kind(c)); }

char32_t to_lower(char32_t c) { return pteryx_unicode_lower(c); }
char32_t to_upper(char32_t c) { return pteryx_unicode_upper(c); }
char32_t to_title(char32_t c) { return pteryx_unicode_title(c); }

Result<std::string> normalize_by_tables(std::string_view text, NormalForm form) {
  if (!is_utf8(text)) return invalid_argument("text cannot be normalised: it is not UTF-8");
  std::string out(text.size() * 2, '\0');
  for (;;) {
    const size_t size =
        pteryx_unicode_normalize(text.data(), text.size(), letter_of(form), out.data(), out.size());
    const bool fits = size <= out.size();
    out.resize(size);
    if (fits) return out;
  }
}

}  // namespace pteryx::llm
