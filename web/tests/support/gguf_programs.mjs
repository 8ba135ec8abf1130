// node web/tests/support/gguf_programs.mjs build/pteryx: prints what the command-line tool makes of the files of the tests, as recorded below.
// SPDX-License-Identifier: BSD-3-Clause
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { sha256 } from "./bytes.mjs";
import { makeGguf } from "./gguf.mjs";

/** Some seconds of work for a converter. */
export const kLarge = { hidden: 512, ffn: 2048, layers: 2 };

const kFixture = new URL("../../../tests/fixtures/convert/llama.gguf", import.meta.url);
/** The files, by name. */
export const kFiles = {
  "llama.gguf": () => readFileSync(kFixture),
  "f32.gguf": () => makeGguf({ type: "f32" }),
  "f16.gguf": () => makeGguf({ type: "f16" }),
  "q4_0.gguf": () => makeGguf({ type: "q4_0" }),
  "q8_0.gguf": () => makeGguf({ type: "q8_0" }),
  "large.gguf": () => makeGguf(kLarge),
};

/** SHA-256 of the programs that `pteryx convert` makes of them. */
export const kProgramHashes = {
  "llama.gguf": "2c0507abf3764ed9ccf8bff41ab928734a0986317b688e83e494895b77a42227",
  "f32.gguf": "1a676ee0181c06a36e700331c9ee86bc8d28078b32c5f4ad46217fee4937fb3a",
  "f16.gguf": "e7796f137963742874abe27c9459180f807b301ce3f41cd88fa56422cb130b4f",
  "q4_0.gguf": "37a9b0dceae1aba605f444690e61ce4d899dcf2b68b04f41bbdb5a651ddd77be",
  "q8_0.gguf": "b2aceb3a2c5436bfcb8f72aa32b2d5f14d91aab2164fcc27616a362315609d04",
  "large.gguf": "e10d7c8a285bf7b9cb31d8f3da893e2f89ce5bc99852f2d80b21c18e249b48c9",
};

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const folder = mkdtempSync(join(tmpdir(), "pteryx-programs-"));
  for (const [name, make] of Object.entries(kFiles)) {
    writeFileSync(join(folder, name), make());
    execFileSync(process.argv[2], ["convert", join(folder, name), "-o", join(folder, "program.pte")], { stdio: ["ignore", "ignore", "inherit"] });
    console.log(`  "${name}": "${sha256(readFileSync(join(folder, "program.pte")))}",`);
  }
  rmSync(folder, { recursive: true });
}
