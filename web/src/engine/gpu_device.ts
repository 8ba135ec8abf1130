// Opening a GPU. SPDX-License-Identifier: BSD-3-Clause
import { PteryxError } from "../errors.js";
import { isNode } from "../node_check.js";
import { gpuProblem } from "../platform.js";

const kFeatures: readonly GPUFeatureName[] = ["shader-f16", "subgroups" as GPUFeatureName];
const kLimits = [
  "maxBufferSize",
  "maxStorageBufferBindingSize",
  "maxStorageBuffersPerShaderStage",
  "maxComputeWorkgroupStorageSize",
  "maxComputeInvocationsPerWorkgroup",
  "maxComputeWorkgroupSizeX",
  "maxComputeWorkgroupSizeY",
  "maxComputeWorkgroupSizeZ",
  "maxComputeWorkgroupsPerDimension",
] as const;
const kAlignments = ["minUniformBufferOffsetAlignment", "minStorageBufferOffsetAlignment"] as const;

/** A GPU that is open, and what the module is told of it. */
export interface OpenGpu {
  readonly device: GPUDevice;
  readonly name: string;
  readonly features: readonly string[];
  /** A CPU that pretends. */
  readonly software: boolean;
  /** Sentences on what this GPU lacks. */
  readonly lacks: readonly string[];
  readonly description: Record<string, unknown>;
}

type AdapterInfo = GPUAdapterInfo & { subgroupMinSize?: number; subgroupMaxSize?: number; isFallbackAdapter?: boolean };

/** The name that a person knows it by, as far as it is told: browsers have it in the description, if at all, and Node's WebGPU its driver's there. */
function nameOf(info: Partial<AdapterInfo>): string {
  if (isNode && info.device) return info.device;
  return info.description || [info.vendor, info.architecture, info.device].filter(Boolean).join(" ") || "GPU";
}

/** Opens the fastest GPU, with all that it offers of what Pteryx uses. Rejects with the code `no-device` where there is none. */
export async function openGpu(gpu: GPU | undefined, disable = ""): Promise<OpenGpu> {
  if (gpu === undefined) throw new PteryxError("no-device", gpuProblem());
  let adapter: GPUAdapter | null;
  try {
    adapter = await gpu.requestAdapter({ powerPreference: "high-performance" });
  } catch (error) {
    throw new PteryxError("no-device", `WebGPU offers no GPU: ${String(error)}`, { cause: error });
  }
  if (adapter === null) throw new PteryxError("no-device", "WebGPU is there, but it offers no GPU");
  const features = kFeatures.filter((feature) => adapter.features.has(feature));
  const requiredLimits: Record<string, number> = {};
  for (const limit of kLimits) requiredLimits[limit] = adapter.limits[limit];
  let device: GPUDevice;
  try {
    device = await adapter.requestDevice({ label: "pteryx", requiredFeatures: features, requiredLimits });
  } catch (error) {
    throw new PteryxError("device", `the GPU could not be opened: ${String(error)}`, { cause: error });
  }
  const info: Partial<AdapterInfo> = adapter.info ?? {}; // Chromium has it since version 127
  const name = nameOf(info);
  const software = info.isFallbackAdapter ?? false;
  const description: Record<string, unknown> = {
    name,
    vendor: info.vendor ?? "",
    architecture: info.architecture ?? "",
    features,
    language_features: [...(gpu.wgslLanguageFeatures ?? [])],
    subgroupMinSize: info.subgroupMinSize ?? 0,
    subgroupMaxSize: info.subgroupMaxSize ?? 0,
    isFallbackAdapter: software,
    disable,
  };
  for (const limit of [...kLimits, ...kAlignments]) description[limit] = device.limits[limit];
  const lacks: string[] = [];
  if (!features.includes("shader-f16")) lacks.push(`${name} offers no shader-f16: products with f16 operands are computed in f32, which is slower.`);
  if (software) lacks.push(`${name} is a software GPU, which is slow.`);
  return { device, name, features, software, lacks, description };
}
