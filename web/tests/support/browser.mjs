// Headless Chromium for tests. SPDX-License-Identifier: BSD-3-Clause
import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const ARGS = [
  "--headless=new", "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
];

/**
 * Starts Chromium (`CHROMIUM`, or Debian's) with a profile that can outlive it.
 * @param {{ profile?: string, webgpu?: boolean, args?: string[], context?: import("playwright-core").LaunchOptions }} [options]
 *   `profile`: a folder, kept afterwards; a fresh one that is removed by `close` unless told. `webgpu`: with the software adapter.
 *   `args`: more of the command line. `context`: options of Playwright's `launchPersistentContext`, such as `viewport` and `colorScheme`.
 */
export async function launchBrowser(options = {}) {
  const profile = options.profile ?? (await mkdtemp(join(tmpdir(), "pteryx-chromium-")));
  const gpu = options.webgpu ? ["--enable-unsafe-webgpu"] : ["--disable-gpu"];
  const marker = `--pteryx-test=${process.pid}-${Math.random().toString(36).slice(2)}`;
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", headless: false, args: [...ARGS, ...gpu, marker, ...(options.args ?? [])], ...options.context,
  });
  const discard = () => (options.profile ? undefined : rm(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 }));
  return {
    context,
    profile,
    /** A page at an address whose errors end up on the test's stderr. */
    async open(url) {
      const page = await context.newPage();
      page.on("pageerror", (error) => console.error(`page: ${error.stack ?? error}`));
      page.on("console", (message) => message.type() === "error" && console.error(`console: ${message.text()}`));
      await page.goto(url);
      return page;
    },
    async close() {
      await context.close();
      await discard();
    },
    /** Ends the process that has the GPU, as a driver that crashes would: every GPUDevice is lost, and the browser starts another one. */
    async killGpu() {
      const zygotes = await findProcesses((line) => line.includes("--type=zygote"), await findProcesses((line) => line.includes(marker)));
      const pids = await findProcesses((line) => line.includes("--type=gpu-process"), zygotes);
      if (pids.length !== 1) throw new Error(`expected one GPU process, found ${pids.length}`);
      process.kill(pids[0], "SIGKILL");
    },
    /** Ends every process of this browser with SIGKILL, as a crash or a reset of the machine would. */
    async kill() {
      await killProcesses(marker);
      await context.close().catch(() => {});
    },
  };
}

/** Processes by their command line, an array; `parents`: only children of these. */
async function findProcesses(wanted, parents) {
  const found = [];
  for (const pid of await readdir("/proc")) {
    if (!/^\d+$/.test(pid)) continue;
    const line = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
    if (!wanted(line.split("\0").flatMap((part) => part.split(" ")))) continue;
    const parent = Number(/^PPid:\s+(\d+)/m.exec(await readFile(`/proc/${pid}/status`, "utf8").catch(() => ""))?.[1]);
    if (!parents || parents.includes(parent)) found.push(Number(pid));
  }
  return found;
}

/** Kills the browser whose command line has `marker`; its children go with it. Waits until it is gone. */
async function killProcesses(marker) {
  const find = () => findProcesses((line) => line.includes(marker));
  for (let pids = await find(); pids.length > 0; pids = await find()) {
    for (const pid of pids) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // Gone by itself.
      }
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
