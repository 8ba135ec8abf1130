// The GPU as the rest of Pteryx sees it: buffers, pipelines, bindings, recorded dispatches, reads.
// Made for replay: a recorded span of Dispatch is data and costs nothing to keep. No call waits:
// what takes time is asked about again, and native/blocking.h has the loop for those who may wait.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pteryx/base/bytes.h"
#include "pteryx/base/source.h"
#include "pteryx/base/status.h"
#include "pteryx/gpu/caps.h"

namespace pteryx::gpu {

enum class BufferId : uint32_t { kNone = 0 };
enum class PipelineId : uint32_t { kNone = 0 };
enum class BindGroupId : uint32_t { kNone = 0 };
enum class Ticket : uint32_t { kNone = 0 };
enum class TimerId : uint32_t { kNone = 0 };

enum class BufferKind : uint8_t {
  kStorage,   // read and written by shaders, source and target of copies and writes; zero at
              // creation
  kUniform,   // params; written by the host
  kReadback,  // target of copies, mapped by read()
};

struct BufferDesc {
  uint64_t size = 0;  // bytes; rounded up to 4, of storage to 16 so that arrays of vec4 can be
                      // bound; at least that
  BufferKind kind = BufferKind::kStorage;
  std::string_view label;
};

struct Binding {
  BufferId buffer = BufferId::kNone;
  uint64_t offset = 0;
  uint64_t size = 0;  // 0 = the rest of the buffer
};

// What a shader expects at binding 0, 1, 2 ... of group 0.
enum class BindingKind : uint8_t { kUniform, kStorageRead, kStorageReadWrite };

struct Constant {
  std::string_view name;  // of a WGSL `override`
  double value = 0;
};

struct ShaderDesc {
  std::string_view label;  // "binary/add/f32"
  std::string_view code;   // complete WGSL, entry point `main`, without `enable` directives
  std::span<const Constant> constants;
  std::span<const BindingKind> bindings;
  bool uses_f16 = false;  // the device layer writes the `enable` directives the provider wants
  bool uses_subgroups = false;
  bool uses_subgroup_matrix = false;
};

struct Grid {
  uint32_t x = 1;
  uint32_t y = 1;
  uint32_t z = 1;
  friend bool operator==(const Grid&, const Grid&) = default;
};

struct Dispatch {
  PipelineId pipeline = PipelineId::kNone;
  BindGroupId bindings = BindGroupId::kNone;
  Grid grid;
};

struct Copy {
  BufferId src = BufferId::kNone;
  uint64_t src_offset = 0;  // offsets and size are multiples of 4
  BufferId dst = BufferId::kNone;
  uint64_t dst_offset = 0;
  uint64_t size = 0;
};

// What a submit is timed with, and what it took. WebGPU times passes, so that dispatches that are
// timed one by one have a pass each, which is slower than what it measures.
struct Timing {
  enum class Each : uint8_t { kSubmit, kDispatch };
  TimerId timer = TimerId::kNone;
  Each each = Each::kSubmit;
  // Of the host, filled in by submit_timed.
  uint64_t encode_ns = 0;
  uint64_t submit_ns = 0;
};

// What was asked of the device since it was made. Tests assert on differences.
struct Counters {
  uint64_t submits = 0;
  uint64_t passes = 0;
  uint64_t dispatches = 0;
  uint64_t writes = 0;
  uint64_t write_bytes = 0;
  uint64_t reads = 0;
  uint64_t read_bytes = 0;
  uint64_t buffers_created = 0;
  uint64_t buffers_alive = 0;
  uint64_t buffer_bytes_alive = 0;
  uint64_t pipelines_created = 0;
  uint64_t pipelines_compiling = 0;  // now, in the background
  uint64_t pipeline_cache_hits = 0;
  // Parts of pipelines that earlier processes kept, or that this one did; see PipelineCacheOptions.
  uint64_t blobs_found = 0;
  uint64_t blobs_kept = 0;
  uint64_t bind_groups_created = 0;
  uint64_t bind_groups_alive = 0;
};

// Thread-safe: several sessions may use one device from several threads.
class Device {
 public:
  virtual ~Device() = default;
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  virtual const Caps& caps() const = 0;

  // Creation gives an id at once, whatever becomes of it; settled() says what did. Who uses what
  // failed gets its error again. Asked of each object, so that those who share a device do not
  // hear of each other's failures, nor wait for each other's shaders.
  virtual BufferId create_buffer(const BufferDesc& desc) = 0;
  // Starts compiling; the same text, constants and bindings give the same id, compiled once.
  virtual PipelineId create_pipeline(const ShaderDesc& desc) = 0;
  virtual BindGroupId create_bindings(PipelineId pipeline, std::span<const Binding> bindings,
                                      std::string_view label) = 0;
  virtual void destroy(BufferId buffer) = 0;
  virtual void destroy(BindGroupId bindings) = 0;

  // False: it is under way, ask again. Errors name the object: kMemory with the size, kDevice with
  // the compiler's or the library's words, kUnsupported for a shader that needs what the device
  // lacks, kIo of a source, kInvalidArgument for bindings that do not fit.
  virtual Result<bool> settled(BufferId buffer) = 0;  // and what is written to it from sources
  virtual Result<bool> settled(PipelineId pipeline) = 0;
  virtual Result<bool> settled(BindGroupId bindings) = 0;

  // Queued before the next submit. `bytes` may have any length; offset is a multiple of 4; up to 3
  // bytes behind the end are written as zero, so the buffer must have room for them.
  virtual Status write(BufferId buffer, uint64_t offset, Bytes bytes) = 0;
  // The same with bytes of a source, when they are there: in order with what is submitted once the
  // buffer is settled.
  virtual Status write(BufferId buffer, uint64_t offset, const SourcePtr& source, uint64_t from,
                       uint64_t size) = 0;

  // One encoder, one compute pass (none if there are no dispatches), then the copies, one submit;
  // several where dispatches are many and no read is under way. One whose grid has a zero is left
  // out. Reports errors that callbacks recorded since the last call.
  virtual Status submit(std::span<const Dispatch> dispatches, std::span<const Copy> copies) = 0;

  // Timers are there where caps().timestamps says so (kUnsupported elsewhere), and have room for so
  // many passes.
  virtual TimerId create_timer(uint32_t /*passes*/) { return TimerId::kNone; }
  virtual void destroy(TimerId /*timer*/) {}
  // The same as submit, timed. A timer holds one submit at a time.
  virtual Status submit_timed(std::span<const Dispatch> /*dispatches*/,
                              std::span<const Copy> /*copies*/, Timing& /*timing*/) {
    return unsupported("the device has no timestamps");
  }
  // Begin and end of each pass of the submit that it timed last, pairs of u64 ticks of
  // caps().timestamp_ns. Dispatches without workgroups have none.
  virtual Result<Ticket> read_times(TimerId /*timer*/) {
    return unsupported("the device has no timestamps");
  }

  // Starts mapping [offset, offset+size) of a kReadback buffer; completes after all work submitted
  // before.
  virtual Result<Ticket> read(BufferId buffer, uint64_t offset, uint64_t size) = 0;
  virtual Result<bool> done(Ticket ticket) = 0;
  virtual Bytes mapped(Ticket ticket) = 0;  // valid after done() until release
  virtual void release(Ticket ticket) = 0;  // unmaps

  // An error that callbacks recorded since the last call (validation, out of memory, device lost),
  // else ok.
  virtual Status take_error() = 0;
  virtual Counters counters() const = 0;

  // For the loop that waits: lets the library work, for at most so long if it can sleep meanwhile.
  virtual void idle(uint64_t /*most_ns*/) {}
};

// Where compiled shaders are kept for later processes. One folder serves all GPUs, drivers and
// libraries; what is damaged in it is made again, and where it cannot be used nothing is kept.
// Dawn only: wgpu-native offers nothing to keep.
struct PipelineCacheOptions {
  std::string folder = {};  // of one user alone, made where it is not there; "": nothing is kept
  uint64_t limit_bytes = uint64_t{256} << 20;  // beyond it, what was used longest ago goes
};

struct DeviceOptions {
  // Index or part of the name of an adapter, or "software"; "": a GPU, never a software one. The
  // software driver is among the adapters if the Vulkan loader finds it.
  std::string adapter = {};
  std::string provider = {};  // "dawn" or "wgpu"; "": the first of them that has what is asked for
  // Path of the WebGPU library to use, whatever the provider; "": that of the provider, or of any.
  // "none": no library is opened, as if there were none.
  std::string library = {};
  // Capabilities to mask and limits to lower, such as "f16,max_binding_bytes=4MiB"; see mask_caps.
  std::string disable = {};
  // Lets the WebGPU library check every access of a shader to memory, which no shader here needs
  // and which costs up to half of the speed. Tests run with it and without.
  bool bounds_checks = false;
  // Where what was measured of GPUs is kept, see keep_sizes; "": nowhere.
  std::string folder = {};
  std::optional<Sizes> sizes = {};  // in place of those measured, or usual for the adapter
  PipelineCacheOptions pipeline_cache = {};
};

// Opens a provider and an adapter. Errors: kDevice with what was tried, kInvalidArgument for a
// provider or a capability that there is not.
Result<std::shared_ptr<Device>> open_device(const DeviceOptions& options = {});
// The same, and the CPU (cpu_device.h) where the options name no adapter and no GPU can be used. A
// library or provider that they name has to be one that can be opened.
Result<std::shared_ptr<Device>> open_gpu_or_cpu(const DeviceOptions& options = {});

// What `pteryx doctor` shows: every adapter of every provider, or of the library in the options,
// opened with their capabilities and checks. Never fails, problems are in the text fields.
struct AdapterReport {
  std::string provider;  // "dawn", "wgpu"
  std::string name, vendor, architecture, description, backend, type;
  Caps caps;
  std::string problem;  // why it cannot be used, or ""
};
struct ProviderReport {
  std::string provider;
  std::string library;  // path
  std::string version;
  std::string problem;  // why it could not be opened, or ""
  std::vector<AdapterReport> adapters;
};
std::vector<ProviderReport> survey(const DeviceOptions& options = {});

}  // namespace pteryx::gpu
