// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <utility>

#include "pteryx/base/utf8.h"

namespace pteryx::llm {

namespace {

struct Run {
  Span span;
  bool match = false;
};

// The whole of a piece as matches and what is between them.
void cover(Span piece, const std::vector<Span>& matches, bool invert, std::vector<Run>& runs) {
  runs.clear();
  uint32_t done = piece.begin;
  for (const Span m : matches) {
    const Span match = {piece.begin + m.begin, piece.begin + m.end};
    if (done != match.begin) runs.push_back({{done, match.begin}, invert});
    runs.push_back({match, !invert});
    done = match.end;
  }
  if (done != piece.end) runs.push_back({{done, piece.end}, invert});
}

void cut_with_next(const std::vector<Run>& runs, std::vector<Span>& out) {
  const size_t first = out.size();
  bool later_match = false;
  for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
    if (run->match && !later_match && out.size() > first) {
      out.back().begin = run->span.begin;
    } else {
      out.push_back(run->span);
    }
    later_match = run->match;
  }
  std::reverse(out.begin() + static_cast<std::ptrdiff_t>(first), out.end());
}

void cut_runs(const std::vector<Run>& runs, Cut cut, std::vector<Span>& out) {
  if (cut == Cut::kWithNext) return cut_with_next(runs, out);
  const size_t first = out.size();
  bool previous_match = false;
  for (const Run& run : runs) {
    if (cut == Cut::kRemoved && run.match) continue;
    const bool joins =
        out.size() > first && ((cut == Cut::kWithPrevious && run.match && !previous_match) ||
                               (cut == Cut::kContiguous && run.match == previous_match));
    if (joins) {
      out.back().end = run.span.end;
    } else {
      out.push_back(run.span);
    }
    previous_match = run.match;
  }
}

struct Step {
  Pieces& pieces;
  bool at_start;

  template <typename Find>
  Status cut_all(Find find, Cut cut, bool invert) const {
    std::vector<Span> out;
    std::vector<Span> matches;
    std::vector<Run> runs;
    for (const Span piece : pieces.spans) {
      matches.clear();
      PTERYX_TRY(find(pieces[piece], matches));
      cover(piece, matches, invert, runs);
      cut_runs(runs, cut, out);
    }
    pieces.spans = std::move(out);
    return {};
  }

  Status operator()(const Split& s) const {
    const auto find = [&](std::string_view text, std::vector<Span>& matches) {
      return s.pattern.find_all(text, matches);
    };
    return cut_all(find, s.cut, s.invert);
  }

  Status operator()(const CharSplit& s) const {
    const auto find = [&](std::string_view text, std::vector<Span>& matches) -> Status {
      for (size_t at = 0; at < text.size();) {
        const Utf8Char c = char_at(text, at);
        const auto begin = static_cast<uint32_t>(at);
        at += c.size_bytes;
        if (s.matches(c.code)) matches.push_back({begin, static_cast<uint32_t>(at)});
      }
      return {};
    };
    return cut_all(find, s.cut, false);
  }

  // Writes every piece anew; change(piece, out) appends to `out`.
  template <typename Change>
  Status rewrite(Change change) const {
    std::string text;
    text.reserve(pieces.text.size() + pieces.spans.size());
    for (Span& span : pieces.spans) {
      const auto begin = static_cast<uint32_t>(text.size());
      change(pieces[span], span, text);
      if (text.size() > UINT32_MAX) return invalid_argument("text grows past 4 GiB");
      span = {begin, static_cast<uint32_t>(text.size())};
    }
    pieces.text = std::move(text);
    return {};
  }

  Status operator()(PrefixSpace) const {
    return rewrite([](std::string_view piece, Span, std::string& out) {
      if (!piece.starts_with(' ')) out += ' ';
      out += piece;
    });
  }

  Status operator()(const Metaspace& m) const {
    const auto change = [&](std::string_view piece, Span span, std::string& out) {
      const bool may = m.prepend == PrependWhen::kAlways ||
                       (m.prepend == PrependWhen::kFirst && at_start && span.begin == 0);
      if (may && !piece.starts_with(' ') && !piece.starts_with(m.replacement)) {
        out += m.replacement;
      }
      for (const char c : piece) {
        if (c == ' ') {
          out += m.replacement;
        } else {
          out += c;
        }
      }
    };
    PTERYX_TRY(rewrite(change));
    if (!m.split) return {};
    const Pattern space{m.replacement};
    const auto find = [&](std::string_view text, std::vector<Span>& matches) {
      return space.find_all(text, matches);
    };
    return cut_all(find, Cut::kWithNext, false);
  }
};

}  // namespace

Result<Pieces> pre_tokenize(const std::vector<PreTokenizer>& steps, std::string text,
                            bool at_start) {
  Pieces pieces{.text = std::move(text)};
  if (!pieces.text.empty()) {
    pieces.spans.push_back({0, static_cast<uint32_t>(pieces.text.size())});
  }
  for (const PreTokenizer& step : steps) {
    PTERYX_TRY(std::visit(Step{pieces, at_start}, step));
  }
  return pieces;
}

}  // namespace pteryx::llm
