// Whether this browser has WebGPU, and in words what to do if not. SPDX-License-Identifier: BSD-3-Clause

export type Support =
  | { readonly kind: "gpu"; readonly name: string; readonly software: boolean }
  /** `insecure`: the page came over plain http; `absent`: the browser has no WebGPU, or it is switched off; `no-adapter`: it has, but no GPU for it. */
  | { readonly kind: "none"; readonly reason: "insecure" | "absent" | "no-adapter" };

let last: Support | null = null;

/** Whether that choice of a device ends at a GPU, as far as is known. */
export function mayUseGpu(device: string): boolean {
  return device === "gpu" || (device === "auto" && last?.kind === "gpu" && !last.software);
}

export async function detectWebGpu(): Promise<Support> {
  return (last = await detect());
}

async function detect(): Promise<Support> {
  if (!isSecureContext) return { kind: "none", reason: "insecure" };
  if (!navigator.gpu) return { kind: "none", reason: "absent" };
  const adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" }).catch(() => null);
  if (!adapter) return { kind: "none", reason: "no-adapter" };
  const info: Partial<GPUAdapterInfo> = adapter.info ?? {}; // Chromium has it since version 127
  const name = adapterName(info);
  return { kind: "gpu", name, software: info.isFallbackAdapter === true || /swiftshader|llvmpipe/i.test(name) };
}

export function adapterName(info: Partial<Pick<GPUAdapterInfo, "description" | "vendor" | "architecture" | "device">>): string {
  return info.description || [info.vendor, info.architecture || info.device].filter(Boolean).join(" ") || "GPU without a name";
}

export interface Browser {
  readonly name: "chrome" | "edge" | "firefox" | "safari" | "other";
  readonly system: "windows" | "mac" | "linux" | "android" | "ios" | "other";
}

export function browserOf(userAgent: string): Browser {
  const system = /Android/.test(userAgent) ? "android" : /iPhone|iPad/.test(userAgent) ? "ios" : /Windows/.test(userAgent) ? "windows"
    : /Mac OS X/.test(userAgent) ? "mac" : /Linux|CrOS/.test(userAgent) ? "linux" : "other";
  const name = /Edg\//.test(userAgent) ? "edge" : /Firefox\//.test(userAgent) ? "firefox" : /Chrome\//.test(userAgent) ? "chrome"
    : /Safari\//.test(userAgent) ? "safari" : "other";
  return { name, system };
}

/** Steps that may bring WebGPU, the likeliest first. */
export function webGpuAdvice(reason: "insecure" | "absent" | "no-adapter", { name, system }: Browser): string[] {
  if (reason === "insecure") return ["Open this page over https:// or from localhost: browsers offer WebGPU nowhere else."];
  const chromium = name === "chrome" || name === "edge";
  const flags = `${name === "edge" ? "edge" : "chrome"}://`;
  const steps: string[] = [];
  if (name === "firefox") {
    steps.push("Update Firefox: WebGPU is on from version 141 on Windows and 145 on macOS. Elsewhere set dom.webgpu.enabled to true in about:config.");
  } else if (name === "safari") {
    steps.push(`Update to ${system === "ios" ? "iOS 26" : "macOS 26 with Safari 26"}, where WebGPU is on. Before that it is under Feature Flags in the settings.`);
  } else if (chromium && reason === "absent") {
    steps.push("Update the browser: WebGPU is on from version 113 (on Android from 121).");
  }
  if (chromium && reason === "no-adapter") {
    steps.push(`Switch on "Use graphics acceleration when available" in the settings under System, and restart the browser.`);
  }
  if (chromium && system === "linux") steps.push(`On Linux, switch on ${flags}flags/#enable-unsafe-webgpu and ${flags}flags/#enable-vulkan, and restart.`);
  if (chromium && reason === "no-adapter") steps.push(`${flags}gpu says why the GPU is not used; a newer graphics driver often helps.`);
  if (!chromium) steps.push("A current Chrome or Edge has WebGPU on most machines.");
  return steps;
}
