// What a page does for tokenizers. Texts are UTF-8 in the module's memory.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

#define PTERYX_IMPORT(name) __attribute__((import_module("pteryx"), import_name(#name)))

extern "C" {

// A number for a compiled expression, above 0; 0 where the browser does not accept the pattern. \s
// and \w are Unicode's White_Space and letters, marks, digits, letter numbers and connectors; ^ and
// $ match at every line.
PTERYX_IMPORT(regex_compile) int32_t pteryx_regex_compile(const char* pattern, size_t size);
PTERYX_IMPORT(regex_release) void pteryx_regex_release(int32_t regex);
// Writes the matches that are not empty, from left to right, as pairs of byte offsets; says how
// many, or SIZE_MAX when the browser gives up. There is room for `size` of them.
PTERYX_IMPORT(regex_find_all)
size_t pteryx_regex_find_all(int32_t regex, const char* text, size_t size, uint32_t* pairs);

// A number of CharKind.
PTERYX_IMPORT(unicode_kind) int32_t pteryx_unicode_kind(uint32_t c);
// The character, or the one that it becomes by Unicode's simple mappings.
PTERYX_IMPORT(unicode_lower) uint32_t pteryx_unicode_lower(uint32_t c);
PTERYX_IMPORT(unicode_upper) uint32_t pteryx_unicode_upper(uint32_t c);
PTERYX_IMPORT(unicode_title) uint32_t pteryx_unicode_title(uint32_t c);
// Normalises by 'C', 'D', 'K' (NFKC) or 'k' (NFKD). Says how many bytes the result has; writes it
// if there is room.
PTERYX_IMPORT(unicode_normalize)
size_t pteryx_unicode_normalize(const char* text, size_t size, int32_t form, char* out,
                                size_t room);

}  // extern "C"

#undef PTERYX_IMPORT
