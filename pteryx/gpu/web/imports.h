// What the script around the module does with its GPUDevice. Objects are known by the numbers that
// the module gives them: the low 20 bits count from 1 and are used again once an object is gone.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

#include "pteryx/base/web/host.h"
#include "pteryx/gpu/device.h"

namespace pteryx::gpu::web {

using pteryx::web::Answer;

// As the script reads them.
struct WebConstant {
  const char* name;
  size_t name_size;
  double value;
};
struct WebBinding {
  BufferId buffer;
  uint32_t unused;
  uint64_t offset;
  uint64_t size;
};
static_assert(sizeof(void*) == 4 && sizeof(WebConstant) == 16 && sizeof(WebBinding) == 24);
static_assert(sizeof(Dispatch) == 20 && sizeof(Copy) == 40 && sizeof(BindingKind) == 1);

extern "C" {

// Creation is answered for by gpu_buffer_answer and gpu_pipeline_answer; errors of bindings, which
// are checked before, come through gpu_error.
PTERYX_IMPORT(gpu_buffer_create)
void pteryx_gpu_buffer_create(uint32_t device, BufferId buffer, double size, uint32_t kind,
                              const char* label, size_t label_size);
PTERYX_IMPORT(gpu_buffer_destroy) void pteryx_gpu_buffer_destroy(uint32_t device, BufferId buffer);
// Of its creation, and of all that was to be written to it from sources.
PTERYX_IMPORT(gpu_buffer_answer) Answer pteryx_gpu_buffer_answer(uint32_t device, BufferId buffer);
PTERYX_IMPORT(gpu_pipeline_create)
void pteryx_gpu_pipeline_create(uint32_t device, PipelineId pipeline, const char* label,
                                size_t label_size, const char* code, size_t code_size,
                                const WebConstant* constants, size_t constant_count,
                                const BindingKind* bindings, size_t binding_count);
PTERYX_IMPORT(gpu_pipeline_answer)
Answer pteryx_gpu_pipeline_answer(uint32_t device, PipelineId pipeline);
PTERYX_IMPORT(gpu_bind_group_create)
void pteryx_gpu_bind_group_create(uint32_t device, BindGroupId bindings, PipelineId pipeline,
                                  const char* label, size_t label_size, const WebBinding* entries,
                                  size_t count);
PTERYX_IMPORT(gpu_bind_group_destroy)
void pteryx_gpu_bind_group_destroy(uint32_t device, BindGroupId bindings);

// Sizes are multiples of 4.
PTERYX_IMPORT(gpu_write)
void pteryx_gpu_write(uint32_t device, BufferId buffer, double offset, const void* bytes,
                      size_t size);
// Of any size; up to 3 bytes behind the end become zero.
PTERYX_IMPORT(gpu_write_source)
void pteryx_gpu_write_source(uint32_t device, BufferId buffer, double offset, uint32_t source,
                             double from, double size);
// In this order: one compute pass, copies.
PTERYX_IMPORT(gpu_submit)
void pteryx_gpu_submit(uint32_t device, const Dispatch* dispatches, size_t dispatch_count,
                       const Copy* copies, size_t copy_count);

PTERYX_IMPORT(gpu_read)
void pteryx_gpu_read(uint32_t device, Ticket ticket, BufferId buffer, double offset, double size);
PTERYX_IMPORT(gpu_read_answer) Answer pteryx_gpu_read_answer(uint32_t device, Ticket ticket);
// Of a read that is done: copies all of its bytes.
PTERYX_IMPORT(gpu_read_copy)
void pteryx_gpu_read_copy(uint32_t device, Ticket ticket, void* out);
PTERYX_IMPORT(gpu_read_release) void pteryx_gpu_read_release(uint32_t device, Ticket ticket);

// kDone, or the first error that nobody asked for since the last call; of a lost device always.
PTERYX_IMPORT(gpu_error) Answer pteryx_gpu_error(uint32_t device);
// The GPUDevice is no longer needed.
PTERYX_IMPORT(gpu_close) void pteryx_gpu_close(uint32_t device);

}  // extern "C"

}  // namespace pteryx::gpu::web
