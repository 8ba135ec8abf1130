// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/chat/time_text.h"

#include <algorithm>

#include <fmt/format.h>

namespace pteryx::llm::chat {
namespace {

constexpr std::string_view kDays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                      "Thursday", "Friday", "Saturday"};
constexpr std::string_view kMonths[] = {"January",   "February", "March",    "April",
                                        "May",       "June",     "July",     "August",
                                        "September", "October",  "November", "December"};
constexpr size_t kShortName = 3;

std::string_view day_of(const std::tm& t) { return kDays[std::clamp(t.tm_wday, 0, 6)]; }
std::string_view month_of(const std::tm& t) { return kMonths[std::clamp(t.tm_mon, 0, 11)]; }

int year_of(const std::tm& t) { return t.tm_year + 1900; }
int hour_of_twelve(const std::tm& t) { return (t.tm_hour + 11) % 12 + 1; }
bool is_leap(int year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

// Of weeks that begin on that day, 0 for Sunday.
int week_of(const std::tm& t, int first) {
  return (t.tm_yday + 7 - (t.tm_wday + 7 - first) % 7) / 7;
}

struct IsoWeek {
  int year;
  int week;
};

// The week is of the year that has its Thursday.
IsoWeek iso_week_of(const std::tm& t) {
  const int year = year_of(t);
  const int thursday = t.tm_yday + 3 - (t.tm_wday + 6) % 7;
  const int days = is_leap(year) ? 366 : 365;
  if (thursday < 0) return {year - 1, (thursday + (is_leap(year - 1) ? 366 : 365)) / 7 + 1};
  if (thursday >= days) return {year + 1, 1};
  return {year, thursday / 7 + 1};
}

// A number of at least so many characters, filled up with `fill`; 0: as it is.
std::string padded(int n, size_t width, char fill) {
  std::string text = fmt::format("{}", n);
  if (fill != 0 && text.size() < width) text.insert(0, width - text.size(), fill);
  return text;
}

// What a letter stands for, which is other letters; empty where it is not.
std::string_view longer(char letter) {
  switch (letter) {
    case 'c': return "%a %b %e %H:%M:%S %Y";
    case 'D':
    case 'x': return "%m/%d/%y";
    case 'F': return "%Y-%m-%d";
    case 'R': return "%H:%M";
    case 'r': return "%I:%M:%S %p";
    case 'T':
    case 'X': return "%H:%M:%S";
    default: return {};
  }
}

// Whether the letter is one of those that are known. `plain`: numbers are not padded.
bool append(std::string& out, char letter, bool plain, const std::tm& t) {
  const char zero = plain ? '\0' : '0';
  const char space = plain ? '\0' : ' ';
  switch (letter) {
    case 'a': out += day_of(t).substr(0, kShortName); return true;
    case 'A': out += day_of(t); return true;
    case 'b':
    case 'h': out += month_of(t).substr(0, kShortName); return true;
    case 'B': out += month_of(t); return true;
    case 'C': out += padded(year_of(t) / 100, 2, zero); return true;
    case 'd': out += padded(t.tm_mday, 2, zero); return true;
    case 'e': out += padded(t.tm_mday, 2, space); return true;
    case 'G': out += padded(iso_week_of(t).year, 1, zero); return true;
    case 'g': out += padded(iso_week_of(t).year % 100, 2, zero); return true;
    case 'H': out += padded(t.tm_hour, 2, zero); return true;
    case 'I': out += padded(hour_of_twelve(t), 2, zero); return true;
    case 'j': out += padded(t.tm_yday + 1, 3, zero); return true;
    case 'k': out += padded(t.tm_hour, 2, space); return true;
    case 'l': out += padded(hour_of_twelve(t), 2, space); return true;
    case 'M': out += padded(t.tm_min, 2, zero); return true;
    case 'm': out += padded(t.tm_mon + 1, 2, zero); return true;
    case 'n': out += '\n'; return true;
    case 'P': out += t.tm_hour < 12 ? "am" : "pm"; return true;
    case 'p': out += t.tm_hour < 12 ? "AM" : "PM"; return true;
    case 'S': out += padded(t.tm_sec, 2, zero); return true;
    case 't': out += '\t'; return true;
    case 'U': out += padded(week_of(t, 0), 2, zero); return true;
    case 'u': out += padded((t.tm_wday + 6) % 7 + 1, 1, zero); return true;
    case 'V': out += padded(iso_week_of(t).week, 2, zero); return true;
    case 'W': out += padded(week_of(t, 1), 2, zero); return true;
    case 'w': out += padded(t.tm_wday, 1, zero); return true;
    case 'Y': out += padded(year_of(t), 1, zero); return true;
    case 'y': out += padded(year_of(t) % 100, 2, zero); return true;
    case 'Z':
    case 'z': return true;
    case '%': out += '%'; return true;
    default: return false;
  }
}

}  // namespace

std::string time_text(std::string_view format, const std::tm& time) {
  std::string out;
  for (size_t at = 0; at < format.size();) {
    const size_t begin = at;
    if (format[at++] != '%' || at == format.size()) {
      out += format[begin];
      continue;
    }
    const bool plain = format[at] == '-' && at + 1 < format.size();
    if (plain) ++at;
    const char letter = format[at++];
    if (const std::string_view more = longer(letter); !more.empty()) {
      out += time_text(more, time);
    } else if (!append(out, letter, plain, time)) {
      out += format.substr(begin, at - begin);
    }
  }
  return out;
}

}  // namespace pteryx::llm::chat
