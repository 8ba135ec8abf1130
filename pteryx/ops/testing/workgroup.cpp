// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/testing/workgroup.h"

#include <cctype>
#include <regex>
#include <string>

namespace pteryx::ops::testing {
namespace {

uint32_t product_of(const PlannedDispatch& d, const std::string& factors);

// A name or number, from constants that the text declares; 0 if it is neither.
uint32_t size_of(const PlannedDispatch& d, const std::string& word) {
  if (std::isdigit(static_cast<unsigned char>(word[0])) != 0)
    return static_cast<uint32_t>(std::stoul(word));
  std::smatch found;
  const std::regex declared("const +" + word + " *(?:: *u32)? *= *([^;+/-]+);");
  return std::regex_search(d.code, found, declared) ? product_of(d, found[1]) : 0;
}

uint32_t product_of(const PlannedDispatch& d, const std::string& factors) {
  uint32_t product = 1;
  const std::regex word("[A-Za-z0-9_]+");
  for (std::sregex_iterator i(factors.begin(), factors.end(), word), end; i != end; ++i)
    product *= size_of(d, i->str());
  return product;
}

}  // namespace

uint32_t workgroup_size(const PlannedDispatch& d) {
  std::smatch found;
  const std::regex attribute("@workgroup_size\\(([^)]*)\\)");
  return std::regex_search(d.code, found, attribute) ? product_of(d, found[1]) : 0;
}

}  // namespace pteryx::ops::testing
