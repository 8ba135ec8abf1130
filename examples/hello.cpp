// hello MODEL.pte: runs the first method that takes inputs on 0, 1, 2, ... and prints what comes
// out.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <iostream>
#include <numeric>
#include <vector>

#include <pteryx/pteryx.h>

int main(int argc, char** argv) {
  if (argc != 2) return std::cerr << "usage: hello MODEL.pte\n", 2;
  auto session = pteryx::Session::load(argv[1]);
  if (!session.ok()) return std::cerr << session.status().message() << "\n", 1;

  const auto methods = session->methods();
  const auto method =
      std::find_if(methods.begin(), methods.end(), [](const auto& m) { return !m.inputs.empty(); });
  if (method == methods.end()) return std::cerr << "no method takes inputs\n", 1;

  std::vector<std::vector<float>> ramps;  // the inputs point at these
  std::vector<std::vector<int64_t>> zeros;
  std::vector<pteryx::Value> inputs;
  for (const pteryx::ValueInfo& in : method->inputs) {
    const auto n = static_cast<size_t>(pteryx::numel(in.dims));
    if (in.kind != "tensor") {
      inputs.push_back(in.fixed);
    } else if (pteryx::is_float(in.dtype)) {
      std::vector<float>& ramp = ramps.emplace_back(n);
      std::iota(ramp.begin(), ramp.end(), 0.0F);
      inputs.push_back(pteryx::tensor<float>(in.dims, ramp));
    } else {
      inputs.push_back(pteryx::TensorView{.dtype = in.dtype,
                                          .dims = in.dims,
                                          .data = zeros.emplace_back(n).data(),
                                          .size_bytes = n * size_bytes(in.dtype)});
    }
  }

  const auto outputs = session->run(method->name, inputs);
  if (!outputs.ok()) return std::cerr << outputs.status().message() << "\n", 1;
  for (const pteryx::Value& out : *outputs) {
    if (out.tensor() == nullptr) continue;
    std::cout << pteryx::name(out.tensor()->dtype) << " " << to_string(out.tensor()->dims) << ":";
    const auto values = out.tensor()->as<float>();  // empty if it holds something else
    for (size_t i = 0; i < std::min<size_t>(values.size(), 8); ++i) std::cout << " " << values[i];
    std::cout << (values.size() > 8 ? " ...\n" : "\n");
  }
}
