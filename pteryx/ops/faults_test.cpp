// Whose fault a refusal is: sizes that disagree are the caller's in a run, what is written in the
// file is the file's. One row or more for each family that can refuse sizes.
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {
namespace {

TestTensor f32(const Dims& dims) { return random(DType::kF32, dims); }
TestTensor typed(DType t, const Dims& dims) { return random(t, dims, 1, 0, 1); }

struct Fault {
  const char* family;
  const char* text;
  Case call;
};

// Every one of these can be met with sizes that the file allows.
std::vector<Fault> sizes_that_disagree() {
  const DType i32 = DType::kI32;
  const DType u8 = DType::kU8;
  std::vector<Fault> rows;
  const auto add = [&](const char* family, const char* text, const Case& call) {
    rows.push_back({family, text, call});
  };
  add("affine", "scale (value 1) shape",
      Case("quantized_decomposed.quantize_per_token.default")
          .in(f32({3, 4}))
          .in(f32({2, 1}))
          .in(typed(i32, {2, 1}))
          .integer(-128)
          .integer(127)
          .none()
          .out(DType::kI8, {3, 4}));
  add("attention", "k_cache",
      Case("llama.custom_sdpa.default")
          .in(f32({1, 2, 4, 8}))
          .in(f32({1, 6, 2, 6}))
          .in(f32({1, 6, 2, 6}))
          .live(0)
          .none()
          .number(0)
          .flag(true)
          .none()
          .out(DType::kF32, {1, 2, 4, 8}));
  add("attention", "attn_mask",
      Case("et_vk.sdpa.default")
          .in(f32({1, 2, 3, 8}))
          .in(f32({1, 2, 5, 8}))
          .in(f32({1, 2, 5, 8}))
          .in(f32({3, 4}))
          .none()
          .out(DType::kF32, {1, 2, 3, 8}));
  add("attention", "value",
      Case("update_cache.default")
          .in(f32({1, 2, 3, 8}))
          .in(f32({1, 6, 2, 8}))
          .live(0)
          .out(DType::kF32, {1}));
  add("binary", "do not broadcast",
      Case("aten.mul.Tensor").in(f32({3})).in(f32({2})).out(DType::kF32, {3}));
  add("conv", "channels",
      Case("aten.convolution.default")
          .in(f32({1, 3, 5, 5}))
          .in(f32({2, 4, 3, 3}))
          .none()
          .ints({1, 1})
          .ints({0, 0})
          .ints({1, 1})
          .flag(false)
          .ints({0, 0})
          .integer(1)
          .out(DType::kF32, {1, 2, 3, 3}));
  add("copy", "does not broadcast",
      Case("aten.copy.default").in(f32({3})).in(f32({2})).flag(false).out(DType::kF32, {3}));
  add("creation", "negative",
      Case("aten.full.default")
          .live_ints({-1, 2})
          .number(1)
          .none()
          .none()
          .none()
          .none()
          .out(DType::kF32, {1, 2}));
  add("distance", "do not go together",
      Case("aten._cdist_forward.default")
          .in(f32({2, 3}))
          .in(f32({2, 4}))
          .number(2)
          .none()
          .out(DType::kF32, {2, 2}));
  add("embedding_bag", "per_sample_weights",
      Case("aten._embedding_bag_forward_only.default")
          .in(f32({4, 2}))
          .in(typed(i32, {3}))
          .in(typed(i32, {1}))
          .flag(false)
          .integer(0)
          .flag(false)
          .in(f32({2}))
          .flag(false)
          .integer(-1)
          .outs({f32({1, 2}), typed(i32, {0}), typed(i32, {1}), typed(i32, {1})}));
  add("embedding_q4", "scales",
      Case("et_vk.embedding_q4gsw.default")
          .in(typed(u8, {5, 4}))
          .in(f32({4, 2}))
          .integer(4)
          .in(typed(i32, {3}))
          .flag(false)
          .out(DType::kF32, {3, 8}));
  add("grid", "grid",
      Case("aten.grid_sampler_2d.default")
          .in(f32({2, 1, 3, 3}))
          .in(f32({1, 2, 2, 2}))
          .integer(0)
          .integer(0)
          .flag(false)
          .out(DType::kF32, {2, 1, 2, 2}));
  add("index", "do not broadcast",
      Case("aten.index.Tensor")
          .in(f32({4, 4}))
          .optional_list({typed(i32, {3}), typed(i32, {2})})
          .out(DType::kF32, {3}));
  add("join", "does not go with",
      Case("aten.cat.default")
          .list({f32({2, 3}), f32({2, 4})})
          .integer(0)
          .out(DType::kF32, {4, 3}));
  add("join", "member 1 is",
      Case("aten.stack.default").list({f32({3}), f32({4})}).integer(0).out(DType::kF32, {2, 3}));
  add("join", "src",
      Case("aten.slice_scatter.default")
          .in(f32({5, 3}))
          .in(f32({3, 3}))
          .integer(0)
          .integer(0)
          .integer(2)
          .integer(1)
          .out(DType::kF32, {5, 3}));
  add("matmul", "b (value 1) shape",
      Case("aten.mm.default").in(f32({2, 3})).in(f32({4, 5})).out(DType::kF32, {2, 5}));
  add("matmul", "broadcasts to",
      Case("aten.addmm.default")
          .in(f32({4}))
          .in(f32({2, 3}))
          .in(f32({3, 5}))
          .number(1)
          .number(1)
          .out(DType::kF32, {2, 5}));
  add("movement", "does not expand",
      Case("aten.expand_copy.default")
          .in(f32({3, 2}))
          .live_ints({4, 2})
          .flag(false)
          .out(DType::kF32, {4, 2}));
  add("movement", "split_sizes",
      Case("aten.split_with_sizes_copy.default")
          .in(f32({5}))
          .live_ints({2, 2})
          .integer(0)
          .outs({f32({2}), f32({2})}));
  add("movement", "repeats",
      Case("aten.repeat.default").in(f32({2})).live_ints({-1}).out(DType::kF32, {2}));
  add("movement", "pad",
      Case("aten.reflection_pad1d.default").in(f32({1, 2})).ints({2, 2}).out(DType::kF32, {1, 6}));
  add("norm", "weight",
      Case("et_vk.rms_norm.default")
          .in(f32({2, 8}))
          .in(f32({6}))
          .number(1e-5)
          .out(DType::kF32, {2, 8}));
  add("norm", "normalized_shape",
      Case("aten.native_layer_norm.default")
          .in(f32({2, 6}))
          .ints({8})
          .none()
          .none()
          .number(1e-5)
          .outs({f32({2, 6}), f32({2, 1}), f32({2, 1})}));
  add("norm", "zero rows",
      Case("et_vk.rms_norm.default")
          .in(f32({0, 8}))
          .in(f32({8}))
          .number(1e-5)
          .out(DType::kF32, {0, 8}));
  add("pool", "exceeds the padded input",
      Case("aten.max_pool2d.default")
          .in(f32({1, 2, 2}))
          .ints({3, 3})
          .ints({1, 1})
          .ints({0, 0})
          .ints({1, 1})
          .flag(false)
          .out(DType::kF32, {1, 1, 1}));
  add("put", "do not broadcast",
      Case("aten.index_put.default")
          .in(f32({4}))
          .optional_list({typed(i32, {3})})
          .in(f32({2}))
          .flag(false)
          .out(DType::kF32, {4}));
  add("qlinear", "weight",
      Case("aten._weight_int8pack_mm.default")
          .in(f32({2, 8}))
          .in(typed(DType::kI8, {4, 6}))
          .in(f32({4}))
          .out(DType::kF32, {2, 4}));
  add("rope", "xk",
      Case("et_vk.apply_rotary_emb.default")
          .in(f32({1, 3, 2, 4}))
          .in(f32({1, 2, 2, 4}))
          .in(f32({3, 2}))
          .in(f32({3, 2}))
          .outs({f32({1, 3, 2, 4}), f32({1, 2, 2, 4})}));
  add("scalars", "expected an integer",
      Case("aten.select_copy.int").in(f32({3})).integer(0).number(0.5).out(DType::kF32, {}));
  add("shapes", "the file allows", Case("aten.relu.default").in(f32({9})).out(DType::kF32, {3}));
  add("sort", "k: 5 of 3",
      Case("aten.topk.default")
          .in(f32({3}))
          .live(5)
          .integer(0)
          .flag(true)
          .flag(true)
          .outs({f32({3}), typed(i32, {3})}));
  add("upsample", "is empty",
      Case("aten.upsample_nearest2d.vec")
          .in(f32({1, 1, 0, 2}))
          .ints({4, 4})
          .none()
          .out(DType::kF32, {1, 1, 4, 4}));
  add("upsample", "0 or more",
      Case("aten.upsample_nearest2d.vec")
          .in(f32({1, 1, 2, 2}))
          .live_ints({-1, 4})
          .none()
          .out(DType::kF32, {1, 1, 1, 4}));
  // The harness makes the file's rows two longer than the run's.
  add("choose_qparams", "only whole rows",
      Case("torchao.choose_qparams_affine.default")
          .in(f32({3, 8}))
          .text("ASYMMETRIC")
          .ints({1, 10})
          .none()
          .integer(-128)
          .integer(127)
          .number(1e-5)
          .none()
          .none()
          .flag(false)
          .outs({f32({3}), typed(DType::kI8, {3})}));
  add("views", "has 6 elements",
      Case("aten.view_copy.default").in(f32({4})).live_ints({2, 3}).out(DType::kF32, {2, 3}));
  add("where", "does not broadcast",
      Case("aten.where.self")
          .in(typed(DType::kBool, {3}))
          .in(f32({3}))
          .in(f32({2}))
          .out(DType::kF32, {3}));
  return rows;
}

TEST(Faults, SizesOfARunAreTheCallers) {
  for (const Fault& f : sizes_that_disagree()) {
    const auto got = run(f.call, Where::kCpu);
    ASSERT_FALSE(got.ok()) << f.family << ": " << f.text;
    EXPECT_EQ(got.status().code(), Code::kInvalidArgument)
        << f.family << ": " << got.status().message();
    EXPECT_NE(got.status().message().find(f.text), std::string::npos)
        << f.family << ": " << got.status().message();
  }
}

TEST(Faults, WhatIsWrittenInTheFileIsTheFiles) {
  const Fault rows[] = {
      {"grid", "interpolation_mode",
       Case("aten.grid_sampler_2d.default")
           .in(f32({1, 1, 3, 3}))
           .in(f32({1, 2, 2, 2}))
           .integer(7)
           .integer(0)
           .flag(false)
           .out(DType::kF32, {1, 1, 2, 2})},
      {"join", "the list is empty",
       Case("aten.cat.default").list({}).integer(0).out(DType::kF32, {1})},
      {"pool", "length",
       Case("aten.max_pool2d.default")
           .in(f32({1, 4, 4}))
           .ints({3, 3, 3})
           .ints({1, 1})
           .ints({0, 0})
           .ints({1, 1})
           .flag(false)
           .out(DType::kF32, {1, 2, 2})},
      {"reduce", "appears twice",
       Case("aten.sum.dim_IntList")
           .in(f32({2, 3}))
           .ints({0, 0})
           .flag(false)
           .none()
           .out(DType::kF32, {3})},
      {"movement", "permutation",
       Case("aten.permute_copy.default").in(f32({2, 3})).ints({0, 0}).out(DType::kF32, {2, 2})},
      {"norm", "type",
       Case("et_vk.rms_norm.default")
           .in(f32({2, 8}))
           .in(typed(DType::kF16, {8}))
           .number(1e-5)
           .out(DType::kF32, {2, 8})},
  };
  for (const Fault& f : rows) {
    const auto got = run(f.call, Where::kCpu);
    ASSERT_FALSE(got.ok()) << f.family;
    EXPECT_EQ(got.status().code(), Code::kInvalidProgram)
        << f.family << ": " << got.status().message();
    EXPECT_NE(got.status().message().find(f.text), std::string::npos)
        << f.family << ": " << got.status().message();
  }
}

}  // namespace
}  // namespace pteryx::ops::testing
