// Pteryx: run ExecuTorch programs on any GPU through WebGPU, or on the CPU.
//
//   #include <pteryx/pteryx.h>
//
//   auto session = pteryx::Session::load("model.pte");
//   if (!session.ok()) return fail(session.status().message());
//
//   std::vector<float> x(1 * 3 * 224 * 224);
//   const pteryx::Value inputs[] = {pteryx::tensor<float>({1, 3, 224, 224}, x)};
//   auto outputs = session->run("forward", inputs);
//   if (!outputs.ok()) return fail(outputs.status().message());
//
//   std::span<const float> scores = outputs->front().tensor()->as<float>();
//
// Nothing throws: every fallible call returns a Status or a Result. A session is used by one thread
// at a time; several sessions may share a device from several threads.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "pteryx/base/dims.h"
#include "pteryx/base/dtype.h"
#include "pteryx/base/precision.h"
#include "pteryx/base/source.h"
#include "pteryx/base/status.h"

namespace pteryx {

namespace exec {
class Method;
}
namespace gpu {
class Device;
struct Counters;
}  // namespace gpu

class Profile;  // pteryx/profile.h

// The DType of a C++ type.
template <typename T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, bool>)
    return DType::kBool;
  else if constexpr (std::is_same_v<T, uint8_t>)
    return DType::kU8;
  else if constexpr (std::is_same_v<T, int8_t>)
    return DType::kI8;
  else if constexpr (std::is_same_v<T, int16_t>)
    return DType::kI16;
  else if constexpr (std::is_same_v<T, int32_t>)
    return DType::kI32;
  else if constexpr (std::is_same_v<T, int64_t>)
    return DType::kI64;
  else if constexpr (std::is_same_v<T, float>)
    return DType::kF32;
  else if constexpr (std::is_same_v<T, double>)
    return DType::kF64;
}

// A tensor in somebody else's memory.
struct TensorView {
  DType dtype = DType::kF32;
  Dims dims;
  const void* data = nullptr;
  Dims strides = {};        // in elements; empty = dense row-major
  uint64_t size_bytes = 0;  // of the memory at data

  template <typename T>
  std::span<const T> as() const {
    return dtype == dtype_of<T>() ? std::span(static_cast<const T*>(data), size_bytes / sizeof(T))
                                  : std::span<const T>();
  }
};

// What goes into a method and comes out of it.
class Value {
 public:
  Value() = default;                          // None
  Value(TensorView v) : v_(std::move(v)) {}   // NOLINT: implicit by design
  Value(int64_t v) : v_(v) {}                 // NOLINT
  Value(double v) : v_(v) {}                  // NOLINT
  Value(bool v) : v_(v) {}                    // NOLINT
  Value(std::string v) : v_(std::move(v)) {}  // NOLINT

  const TensorView* tensor() const { return std::get_if<TensorView>(&v_); }
  const int64_t* integer() const { return std::get_if<int64_t>(&v_); }
  const double* number() const { return std::get_if<double>(&v_); }
  const bool* flag() const { return std::get_if<bool>(&v_); }
  const std::string* text() const { return std::get_if<std::string>(&v_); }

 private:
  std::variant<std::monostate, TensorView, int64_t, double, bool, std::string> v_;
};

template <typename T>
TensorView tensor(const Dims& dims, std::span<const T> data) {
  return {
      .dtype = dtype_of<T>(), .dims = dims, .data = data.data(), .size_bytes = data.size_bytes()};
}
template <typename T>
TensorView tensor(const Dims& dims, const std::vector<T>& data) {
  return tensor(dims, std::span<const T>(data));
}

struct ValueInfo {
  std::string kind;  // "tensor", "int", "float", "bool", "string", "none"
  DType dtype = DType::kF32;
  Dims dims;             // upper bound
  bool dynamic = false;  // a smaller size is allowed
  Value fixed = {};      // of an input that is not a tensor: the only value it takes
  // Of an input whose elements are indices of something with a size that the file fixes: they are
  // below this.
  std::optional<int64_t> index_bound = {};
};

struct MethodInfo {
  std::string name;
  std::vector<ValueInfo> inputs;
  std::vector<ValueInfo> outputs;
  uint64_t gpu_bytes = 0;   // memory it holds on the device, constants included
  uint64_t host_bytes = 0;  // of the host: activations and state of what runs on the CPU
  // Constants that the CPU reads: where the file lies in memory, and in a copy of their own where
  // the file has them in another form.
  uint64_t in_place_bytes = 0;
  uint64_t copied_bytes = 0;
  uint64_t state_bytes = 0;  // of gpu_bytes: what stays from run to run, such as KV caches
  std::string note;          // what LoadOptions asked for and got in part only
};

struct LoadOptions {
  std::vector<std::string> data_files = {};  // .ptd
  std::vector<std::string> methods = {};     // empty = all
  // gpu::open_device and gpu::cpu_device make one; null = a GPU and, where none can be used, the
  // CPU.
  std::shared_ptr<gpu::Device> device = nullptr;
  // Bytes; 0 = none. Over it, load fails with the number before anything is allocated. On a GPU its
  // memory counts, on the CPU activations, state, temporaries and copies of constants, and mapped
  // files if they are locked.
  uint64_t memory_limit = 0;
  Precision precision = Precision::kF32;  // of matrix products; kF16 lets them round their operands
  // That kernels on the CPU run with, at most kMostThreads; 0: as many as this process may use
  // cores. Sessions with the same number share them.
  uint32_t threads = 0;
  static constexpr uint32_t kMostThreads = 1024;
  // On the CPU: reads the weights into memory and keeps them there, so that no run waits for a
  // disk: mapped files, and scales that are held in another form. Errors of load: kMemory where the
  // system does not allow it, kUnsupported for sources that are not mapped.
  bool lock = false;
  // Element type of KV caches, kF32 or kF16; none: kF16 where precision is and a cache can be, else
  // as in the file. Applies to caches that attention
  // operators alone read and write; where no method has any, load fails (kUnsupported) and says
  // why.
  std::optional<DType> kv_cache = {};
  // A language model, (tokens [1, S], position [1]) -> logits, gets a third input of 16 i32, see
  // pteryx/ops/sample/sample.h, and a second output: the next token, drawn on the GPU.
  bool sampling = false;
  bool all_logits =
      false;  // such a model gives the logits of every position, not of the last alone
  // Called from load with what is being done and how far it is; returning false cancels the load
  // (kCancelled).
  std::function<bool(std::string_view what, uint64_t done, uint64_t total)> progress = nullptr;

  // What tests and measurements force.
  struct Testing {
    bool fuse = true;          // join operators where that is cheaper
    bool reference = false;    // the plain loops on the CPU, not the fast kernels
    std::string routes = {};   // kernels to take where they fit: "linear:tiled,conv:direct"
    uint32_t plan_cache = 16;  // shapes remembered per method
  };
  Testing testing = {};
};

struct RunOptions {
  static constexpr uint64_t kAllOutputs = ~uint64_t{0};
  // Bit i: output i is wanted; the others come as None, and what only they need is left out where
  // that is possible. Outputs behind the 64th are always wanted. Where none is read, an index
  // outside its tensor that the program computed is an error of the next run that reads one.
  uint64_t outputs = kAllOutputs;
  Profile* profile = nullptr;  // takes note of what the run costs; outlives it
};

// A run that is under way: never waits. Destroyed before it is finished, it ends where it is.
class Run {
 public:
  Run(Run&& other) noexcept;
  Run& operator=(Run&& other) noexcept;
  ~Run();

  // Does what can be done now, on the CPU for about 10 ms; true once outputs() are there. Errors:
  // those of Session::run; they end it.
  Result<bool> advance();
  // Valid until the next run of the same method.
  std::span<const Value> outputs() const;

 private:
  friend class Session;
  Run(exec::Method& method, uint64_t number) : method_(&method), number_(number) {}
  exec::Method* method_;
  uint64_t number_;
};

// What a session holds: known, and compared with LoadOptions::memory_limit, before anything is
// allocated. What several methods share counts once.
struct MemoryUse {
  uint64_t gpu = 0;
  uint64_t host = 0;      // activations and state of what runs on the CPU
  uint64_t scratch = 0;   // temporaries of kernels on the CPU, at the largest sizes
  uint64_t copied = 0;    // constants that the CPU needs in another form than the file's
  uint64_t in_place = 0;  // constants that it reads where the file is mapped
};

class Session {
 public:
  // Loads a program and plans every method; waits until that is done. Errors: kIo,
  // kInvalidProgram, kUnsupported (all operators at once), kMemory, kDevice, kCancelled.
  static Result<Session> load(const std::string& path, const LoadOptions& options = {});

  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  std::span<const MethodInfo> methods() const;
  const MemoryUse& memory() const;
  // That kernels on the CPU run with: fewer than were asked for where the system has no more.
  size_t threads() const;
  // Runs a method, and waits for it. Outputs stay valid until the next run of the same method;
  // state such as KV caches is kept. A call with wrong inputs changes nothing, which includes
  // elements that the program uses as indices of something smaller, such as a position behind the
  // end of a cache. Indices that the program computes are found while it runs: an error that names
  // the operator, the element, its value and the bound, and whether state was changed, as any error
  // of a call that changed state does. Errors: kInvalidArgument, kDevice, kMemory.
  Result<std::span<const Value>> run(std::string_view method, std::span<const Value> inputs,
                                     const RunOptions& options = {});
  // The same without waiting. The inputs' memory stands until it is finished; one run of a method
  // at a time.
  Result<Run> start(std::string_view method, std::span<const Value> inputs,
                    const RunOptions& options = {});
  // Puts all state back to what it was after load. Errors: kInvalidArgument while a run is under
  // way, kDevice.
  Status reset();
  // A blob that the program carries under a name, such as a tokenizer.
  // Null: there is none.
  std::shared_ptr<const Source> named_data(std::string_view key) const;

  const std::shared_ptr<gpu::Device>& device() const;

 private:
  friend class SessionLoad;
  friend class Steps;  // pteryx/session/steps.h
  struct Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  exec::Method* find(std::string_view method) const;
  std::unique_ptr<Impl> impl_;
};

// A session that is being loaded, from bytes that may come later: never waits.
//
//   SessionLoad load(source, {}, options);
//   // whenever something may have happened, until it says true:
//   PTERYX_ASSIGN(const bool done, load.advance());
//   Session session = load.take();
class SessionLoad {
 public:
  // `data`: .ptd files, in place of LoadOptions::data_files. LoadOptions::device must be there.
  SessionLoad(std::shared_ptr<const Source> program,
              std::vector<std::shared_ptr<const Source>> data, LoadOptions options);
  SessionLoad(SessionLoad&&) noexcept;
  SessionLoad& operator=(SessionLoad&&) noexcept;
  ~SessionLoad();

  // Does what can be done now; true once take() has a session. Errors: those of Session::load.
  Result<bool> advance();
  Session take();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pteryx
