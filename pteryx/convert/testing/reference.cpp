// What a decoder computes, one position after another. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>

#include "pteryx/convert/testing/tiny_model.h"

namespace pteryx::convert::testing {
namespace {

using Vector = std::vector<double>;

Vector product(const std::vector<float>& w, const Vector& x, const std::vector<float>* bias) {
  Vector y(w.size() / x.size());
  for (size_t r = 0; r < y.size(); ++r) {
    double sum = bias == nullptr ? 0 : static_cast<double>((*bias)[r]);
    for (size_t c = 0; c < x.size(); ++c) sum += static_cast<double>(w[r * x.size() + c]) * x[c];
    y[r] = sum;
  }
  return y;
}

void normalise(double* x, const std::vector<float>& w, double eps) {
  double sum = 0;
  for (size_t i = 0; i < w.size(); ++i) sum += x[i] * x[i];
  const double by = 1 / std::sqrt(sum / static_cast<double>(w.size()) + eps);
  for (size_t i = 0; i < w.size(); ++i) x[i] *= by * static_cast<double>(w[i]);
}
Vector normalised(Vector x, const std::vector<float>& w, double eps) {
  normalise(x.data(), w, eps);
  return x;
}

void turn(double* head, const ModelShape& s, int64_t position) {
  const auto half = static_cast<size_t>(s.head_size / 2);
  for (size_t i = 0; i < half; ++i) {
    const double angle =
        static_cast<double>(position) *
        std::pow(s.rope_theta, -2.0 * static_cast<double>(i) / static_cast<double>(s.head_size));
    double& a = s.rope == RopeLayout::kPairs ? head[2 * i] : head[i];
    double& b = s.rope == RopeLayout::kPairs ? head[2 * i + 1] : head[i + half];
    const double x = a;
    a = x * std::cos(angle) - b * std::sin(angle);
    b = x * std::sin(angle) + b * std::cos(angle);
  }
}

class Reference {
 public:
  explicit Reference(const TinyModel& m)
      : m_(m), s_(m.shape), keys_(static_cast<size_t>(s_.layers)), values_(keys_) {}

  Vector step(int64_t token, int64_t position) {
    const std::vector<float>& table = m_.at(Part::kEmbedding, 0);
    const auto start = table.begin() + static_cast<ptrdiff_t>(token * s_.hidden);
    Vector h(start, start + static_cast<ptrdiff_t>(s_.hidden));
    for (int64_t i = 0; i < s_.layers; ++i) {
      attend(i, position, h);
      feed_forward(i, h);
    }
    h = normalised(h, m_.at(Part::kNorm, 0), s_.norm_eps);
    return product(s_.tied ? table : m_.at(Part::kOutput, 0), h, nullptr);
  }

 private:
  void attend(int64_t i, int64_t position, Vector& h) {
    const Vector n = normalised(h, m_.at(Part::kAttentionNorm, i), s_.norm_eps);
    Vector q = product(m_.at(Part::kQ, i), n, m_.bias(Part::kQ, i));
    Vector k = product(m_.at(Part::kK, i), n, m_.bias(Part::kK, i));
    const Vector v = product(m_.at(Part::kV, i), n, m_.bias(Part::kV, i));
    const auto d = static_cast<size_t>(s_.head_size);
    for (size_t at = 0; at < q.size(); at += d) {
      if (s_.qk_norm) normalise(&q[at], m_.at(Part::kQNorm, i), s_.norm_eps);
      turn(&q[at], s_, position);
    }
    for (size_t at = 0; at < k.size(); at += d) {
      if (s_.qk_norm) normalise(&k[at], m_.at(Part::kKNorm, i), s_.norm_eps);
      turn(&k[at], s_, position);
    }
    auto& keys = keys_[static_cast<size_t>(i)];
    auto& values = values_[static_cast<size_t>(i)];
    keys.push_back(k);
    values.push_back(v);
    Vector y(q.size(), 0.0);
    const auto group = static_cast<size_t>(s_.heads / s_.kv_heads);
    for (size_t head = 0; head * d < q.size(); ++head) {
      mix(&q[head * d], keys, values, head / group * d, &y[head * d]);
    }
    add(h, product(m_.at(Part::kO, i), y, nullptr));
  }

  // Softmax of q times the keys, over the values.
  void mix(const double* q, const std::vector<Vector>& keys, const std::vector<Vector>& values,
           size_t at, double* y) const {
    const auto d = static_cast<size_t>(s_.head_size);
    Vector p;
    for (const Vector& k : keys) {
      double dot = 0;
      for (size_t j = 0; j < d; ++j) dot += q[j] * k[at + j];
      p.push_back(dot / std::sqrt(static_cast<double>(d)));
    }
    const double most = *std::max_element(p.begin(), p.end());
    double sum = 0;
    for (double& x : p) sum += x = std::exp(x - most);
    for (size_t t = 0; t < p.size(); ++t) {
      for (size_t j = 0; j < d; ++j) y[j] += p[t] / sum * values[t][at + j];
    }
  }

  void feed_forward(int64_t i, Vector& h) {
    const Vector n = normalised(h, m_.at(Part::kFfnNorm, i), s_.norm_eps);
    Vector gate = product(m_.at(Part::kGate, i), n, nullptr);
    const Vector up = product(m_.at(Part::kUp, i), n, nullptr);
    for (size_t j = 0; j < gate.size(); ++j) gate[j] *= up[j] / (1 + std::exp(-gate[j]));
    add(h, product(m_.at(Part::kDown, i), gate, nullptr));
  }

  static void add(Vector& h, const Vector& x) {
    for (size_t j = 0; j < h.size(); ++j) h[j] += x[j];
  }

  const TinyModel& m_;
  const ModelShape& s_;
  std::vector<std::vector<Vector>> keys_, values_;  // of each layer, a row for each position
};

}  // namespace

std::vector<double> reference_logits(const TinyModel& m, const std::vector<int64_t>& tokens) {
  Reference r(m);
  std::vector<double> out;
  for (size_t t = 0; t < tokens.size(); ++t) {
    const Vector row = r.step(tokens[t], static_cast<int64_t>(t));
    out.insert(out.end(), row.begin(), row.end());
  }
  return out;
}

}  // namespace pteryx::convert::testing
