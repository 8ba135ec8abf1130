// Keys and signals. SPDX-License-Identifier: BSD-3-Clause
#include "terminal_input.h"

#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

#include <poll.h>

#include "pteryx/base/utf8.h"

namespace pteryx::cli {
namespace {

// Signals come through a pipe, since any thread may be the one that takes them.
std::array<int, 2> signal_pipe = {-1, -1};

void forward(int signal) {
  const int error = errno;
  const auto number = static_cast<unsigned char>(signal);
  static_cast<void>(::write(signal_pipe[1], &number, 1) == 0);
  errno = error;
}

}  // namespace

SignalEvents::SignalEvents() {
  for (size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler == SIG_IGN) continue;
    struct sigaction action = {};
    action.sa_handler = forward;
    action.sa_flags = SA_RESTART;
    ::sigaction(kSignals[i], &action, nullptr);
  }
}

SignalEvents::~SignalEvents() {
  for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
  unsigned char number = 0;
  while (::read(signal_pipe[0], &number, 1) == 1) static_cast<void>(std::raise(number));
}

TerminalInput::TerminalInput() {
  if (::pipe(signal_pipe.data()) != 0) return;  // poll() then ignores it
  for (const int fd : signal_pipe) {
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    ::fcntl(fd, F_SETFL, O_NONBLOCK);
  }
}

TerminalInput::~TerminalInput() {
  for (int& fd : signal_pipe) {
    if (fd >= 0) ::close(fd);
    fd = -1;
  }
}

TerminalInput::Event TerminalInput::next() {
  while (true) {
    switch (wait()) {
      case Wait::kBytes: return character();
      case Wait::kEnd: return {};
      case Wait::kSignal: break;
    }
    unsigned char number = 0;
    if (::read(signal_pipe[0], &number, 1) == 1)
      return {.kind = Event::Kind::kSignal, .signal = number};
  }
}

TerminalInput::Wait TerminalInput::wait() {
  while (true) {
    std::array<pollfd, 2> files = {pollfd{.fd = signal_pipe[0], .events = POLLIN, .revents = 0},
                                   pollfd{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0}};
    const bool have = at_ < bytes_.size();
    const int ready = ::poll(files.data(), files.size(), have ? 0 : -1);
    if (ready < 0 && errno != EINTR) return Wait::kEnd;
    if (ready > 0 && files[0].revents != 0) return Wait::kSignal;
    if (have) return Wait::kBytes;
    if (ready <= 0) continue;
    std::array<char, 4096> part{};
    const ssize_t n = ::read(STDIN_FILENO, part.data(), part.size());
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return Wait::kEnd;
    bytes_.assign(part.data(), static_cast<size_t>(n));
    at_ = 0;
  }
}

// Waits for the rest of a character whose first bytes are there.
TerminalInput::Event TerminalInput::character() {
  std::string text;
  while (true) {
    text += bytes_[at_++];
    if (complete_prefix(text) == text.size()) break;
    if (wait() != Wait::kBytes) break;
    const auto next = static_cast<unsigned char>(bytes_[at_]);
    if ((next & 0xC0U) != 0x80U) break;
  }
  return {.kind = Event::Kind::kCharacter, .character = char_at(text, 0).code};
}

}  // namespace pteryx::cli
