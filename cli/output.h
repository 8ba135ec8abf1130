// What commands print: one checked path to stdout, and one to stderr that cannot fail.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json_fwd.hpp>

#include "pteryx/base/status.h"

namespace pteryx::cli {

// 130 is what shells give a program that Ctrl-C ended.
enum Exit : int {
  kSuccess = 0,
  kFailed = 1,
  kUsage = 2,
  kBadFile = 3,
  kNoGpu = 4,
  kInterrupted = 130,
};

// To be called before anything is opened. A standard stream that the caller closed becomes one that
// refuses, so that no file of ours takes its number, and a closed pipe becomes an error.
void prepare_streams();

// To stdout. What could not be written is remembered, and finish() tells.
void write(std::string_view text);
template <typename... Args>
void print(fmt::format_string<Args...> format, Args&&... args) {
  write(fmt::format(format, std::forward<Args>(args)...));
}
void print_json(const nlohmann::json& document);
// Hands on what was written so far; false once stdout takes no more: time to stop.
bool flush();

// To stderr; what cannot be written there is lost.
void write_note(std::string_view text);
template <typename... Args>
void note(fmt::format_string<Args...> format, Args&&... args) {
  write_note(fmt::format(format, std::forward<Args>(args)...));
}

// The same mistake has the same exit code, whichever command finds it.
int exit_code(const Status& status);
// Prints "pteryx: MESSAGE" to stderr (and, after answer_in_json, {"error": ...} to stdout) and
// returns the exit code: `exit`, or that of the status.
int fail(const Status& status);
int fail(const Status& status, int exit);
// The command was asked for JSON, so its errors are JSON, too.
void answer_in_json();

// Flushes stdout and gives the exit code of the program: kFailed, with a sentence unless the reader
// just went away, where not all could be written, else `exit`.
int finish(int exit);

bool stdin_is_terminal();
bool stdout_is_terminal();
bool stderr_is_terminal();
// Whether terminals move the cursor and erase when they are told to: TERM names one that does.
bool understands_escapes();
// Whether colours and the like are welcome there: a terminal, and no NO_COLOR.
bool stdout_has_colour();

// A text from a file or a person as part of a message: control characters spelled out, long lines
// cut.
std::string printable(std::string_view text);

}  // namespace pteryx::cli
