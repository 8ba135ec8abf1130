// The pteryx command. SPDX-License-Identifier: BSD-3-Clause
#include <CLI/CLI.hpp>

#include "chat.h"
#include "command.h"

int main(int argc, char** argv) {
  CLI::App app{"Run ExecuTorch programs on any GPU through WebGPU.", "pteryx"};
  app.set_version_flag("--version", "pteryx " PTERYX_VERSION);
  app.require_subcommand(1);
  app.footer("`pteryx COMMAND --help` tells more about a command.");
  pteryx::cli::Action action;
  pteryx::cli::add_run(app, action);
  pteryx::cli::add_inspect(app, action);
  pteryx::cli::add_verify(app, action);
  pteryx::cli::add_convert(app, action);
  pteryx::cli::add_synth(app, action);
  pteryx::cli::add_generate(app, action);
  pteryx::cli::add_chat(app, action);
  pteryx::cli::add_bench(app, action);
  pteryx::cli::add_eval(app, action);
  pteryx::cli::add_doctor(app, action);
  pteryx::cli::add_ops(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? pteryx::cli::kSuccess : pteryx::cli::kUsage;
  }
  return action();
}
