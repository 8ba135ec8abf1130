// Standard streams, checked. SPDX-License-Identifier: BSD-3-Clause
#include "output.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

namespace pteryx::cli {
namespace {

using nlohmann::json;

// Longer lines of a message are cut in the middle: what is wrong stands at either end.
constexpr size_t kLongestLine = 300;

int stdout_error = 0;  // errno of the first write that failed
bool json_errors = false;

void append_printable(std::string& out, std::string_view line) {
  for (const char c : line) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
}

// Where a UTF-8 character begins, at `at` or before it.
size_t character_start(std::string_view text, size_t at) {
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U) --at;
  return at;
}

std::string cut(std::string line) {
  if (line.size() <= kLongestLine) return line;
  const size_t head = character_start(line, kLongestLine / 2);
  const size_t tail = character_start(line, line.size() - kLongestLine / 3);
  return fmt::format("{} ... {}", std::string_view(line).substr(0, head),
                     std::string_view(line).substr(tail));
}

}  // namespace

void prepare_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest free number is this one. Open the wrong way round: each use fails, as it should.
    const int refusing = ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    static_cast<void>(refusing);
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on the size of files is an error of the write, too
}

void write(std::string_view text) {
  if (stdout_error != 0) return;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) stdout_error = errno;
}

void print_json(const json& document) {
  write(document.dump(2, ' ', false, json::error_handler_t::replace));
  write("\n");
}

bool flush() {
  if (stdout_error == 0 && std::fflush(stdout) != 0) stdout_error = errno;
  return stdout_error == 0;
}

void write_note(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

int exit_code(const Status& status) {
  switch (status.code()) {
    case Code::kOk: return kSuccess;
    case Code::kInvalidArgument: return kUsage;
    case Code::kInvalidProgram:
    case Code::kUnsupported:
    case Code::kIo: return kBadFile;
    case Code::kDevice: return kNoGpu;
    case Code::kCancelled: return kInterrupted;
    case Code::kMemory: return kFailed;
  }
  return kFailed;
}

int fail(const Status& status) { return fail(status, exit_code(status)); }

int fail(const Status& status, int exit) {
  const std::string message = printable(status.message());
  note("pteryx: {}\n", message);
  if (json_errors) {
    print_json({{"error", {{"message", message}, {"code", name(status.code())}, {"exit", exit}}}});
  }
  return exit;
}

void answer_in_json() { json_errors = true; }

int finish(int exit) {
  if (flush()) return exit;
  if (stdout_error != EPIPE)
    note("pteryx: cannot write to stdout: {}\n", std::generic_category().message(stdout_error));
  return exit == kSuccess ? static_cast<int>(kFailed) : exit;
}

bool stdin_is_terminal() { return ::isatty(STDIN_FILENO) != 0; }
bool stdout_is_terminal() { return ::isatty(STDOUT_FILENO) != 0; }
bool stderr_is_terminal() { return ::isatty(STDERR_FILENO) != 0; }

bool understands_escapes() {
  const char* const terminal = std::getenv("TERM");
  return terminal != nullptr && *terminal != '\0' && std::string_view(terminal) != "dumb";
}

bool stdout_has_colour() {
  const char* const no_colour = std::getenv("NO_COLOR");
  return stdout_is_terminal() && (no_colour == nullptr || *no_colour == '\0') &&
         understands_escapes();
}

std::string printable(std::string_view text) {
  std::string out;
  std::string line;
  for (size_t at = 0; at < text.size();) {
    // What goes on in a new line is indented; any other end of a line came with a name.
    const size_t end = std::min(text.find("\n  ", at), text.size());
    line.clear();
    append_printable(line, text.substr(at, end - at));
    if (at > 0) out += '\n';
    out += cut(std::move(line));
    at = end + 1;
  }
  return out;
}

}  // namespace pteryx::cli
