// oneDNN's primitives for the bench's kernels: prepared once a set of arrays, then executed.
//
// open_kernel(name, sizes, count, packed, winograd) chooses; add_set(arrays) prepares a set, inputs in the kernel's order, then the
// output; run_set(set) computes it. Activations keep the kernel's plain layout; `packed` lets the library choose that
// of weights, which are reordered when a set is added (relu_ffn, which has none, takes its other way); `winograd` asks for
// that algorithm of a convolution. Errors: a message from last_error().

#include <oneapi/dnnl/dnnl.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <unordered_map>
#include <vector>

using namespace dnnl;
using dims = memory::dims;
using dim_t = memory::dim;
using arguments = std::unordered_map<int, memory>;

namespace {

struct Step {
  primitive what;
  arguments with;
};

engine cpu(engine::kind::cpu, 0);
stream queue(cpu);
std::string kernel, failure;
dims size;
bool packed, winograd;
std::vector<std::vector<Step>> sets;

dims row_major(const dims& shape) {
  dims strides(shape.size(), 1);
  for (int i = static_cast<int>(shape.size()) - 2; i >= 0; --i) strides[i] = strides[i + 1] * shape[i + 1];
  return strides;
}

memory::desc plain(const dims& shape) { return {shape, memory::data_type::f32, row_major(shape)}; }
memory::desc chosen(const dims& shape) {
  return packed ? memory::desc(shape, memory::data_type::f32, memory::format_tag::any) : plain(shape);
}
memory at(const memory::desc& desc, void* data) { return memory(desc, cpu, data); }

memory in_layout(memory given, const memory::desc& wanted) {
  if (given.get_desc() == wanted) return given;
  memory made(wanted, cpu);
  reorder(given, made).execute(queue, given, made);
  queue.wait();
  return made;
}

template <typename Primitive, typename Descriptor>
Step step(const Descriptor& descriptor, arguments with) {
  return {Primitive(descriptor), std::move(with)};
}

Step eltwise(algorithm how, const dims& shape, void* x, void* y, float alpha = 0) {
  auto md = plain(shape);
  eltwise_forward::primitive_desc pd(cpu, prop_kind::forward_inference, how, md, md, alpha, 0.f);
  return step<eltwise_forward>(pd, {{DNNL_ARG_SRC, at(md, x)}, {DNNL_ARG_DST, at(md, y)}});
}

Step normalised(const dims& shape, int axis, algorithm how, void* x, void* y) {
  auto md = plain(shape);
  softmax_forward::primitive_desc pd(cpu, prop_kind::forward_inference, how, md, md, axis);
  return step<softmax_forward>(pd, {{DNNL_ARG_SRC, at(md, x)}, {DNNL_ARG_DST, at(md, y)}});
}

Step reduced(algorithm how, const dims& from, const dims& to, void* x, void* y) {
  reduction::primitive_desc pd(cpu, how, plain(from), plain(to), 0.f, 0.f);
  return step<reduction>(pd, {{DNNL_ARG_SRC, at(plain(from), x)}, {DNNL_ARG_DST, at(plain(to), y)}});
}

Step product(const memory::desc& a, const memory::desc& b, const memory::desc& c, void* x, memory w, memory y,
             const primitive_attr& attributes = {}, memory other = {}) {
  matmul::primitive_desc pd(cpu, a, b, c, attributes);
  arguments with{{DNNL_ARG_SRC, at(a, x)}, {DNNL_ARG_WEIGHTS, in_layout(w, pd.weights_desc())}, {DNNL_ARG_DST, y}};
  if (other) with[DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1] = other;
  return step<matmul>(pd, with);
}

Step convolution(const dims& x, const dims& w, const dims& y, void** a, dim_t stride = 1, dim_t padding = 0) {
  const dims strides{stride, stride}, around{padding, padding};
  const auto how = winograd ? algorithm::convolution_winograd : algorithm::convolution_auto;
  convolution_forward::primitive_desc pd(cpu, prop_kind::forward_inference, how, plain(x), chosen(w), plain(y), strides,
                                         around, around);
  return step<convolution_forward>(pd, {{DNNL_ARG_SRC, at(plain(x), a[0])},
                                        {DNNL_ARG_WEIGHTS, in_layout(at(plain(w), a[1]), pd.weights_desc())},
                                        {DNNL_ARG_DST, at(plain(y), a[2])}});
}

Step batch_norm(const dims& shape, void** a, bool training, normalization_flags flags, float eps) {
  auto md = plain(shape);
  const auto channel = plain({shape[1]});
  auto kind = training ? prop_kind::forward_training : prop_kind::forward_inference;
  flags |= normalization_flags::use_scale | normalization_flags::use_shift;
  batch_normalization_forward::primitive_desc pd(cpu, kind, md, md, eps, flags);
  memory mean(channel, cpu), variance(channel, cpu);
  for (dim_t c = 0; c < shape[1]; ++c) {
    static_cast<float*>(mean.get_data_handle())[c] = 0;
    static_cast<float*>(variance.get_data_handle())[c] = 1;
  }
  return step<batch_normalization_forward>(
      pd, {{DNNL_ARG_SRC, at(md, a[0])}, {DNNL_ARG_SCALE, at(channel, a[1])}, {DNNL_ARG_SHIFT, at(channel, a[2])},
           {DNNL_ARG_MEAN, mean}, {DNNL_ARG_VARIANCE, variance}, {DNNL_ARG_DST, at(md, a[3])}});
}

Step layer_norm(const dims& shape, void** a) {
  auto md = plain(shape);
  const auto row = plain({shape[1]});
  layer_normalization_forward::primitive_desc pd(cpu, prop_kind::forward_inference, md, md, 1e-5f,
                                                 normalization_flags::use_scale | normalization_flags::use_shift);
  return step<layer_normalization_forward>(pd, {{DNNL_ARG_SRC, at(md, a[0])}, {DNNL_ARG_SCALE, at(row, a[1])},
                                                {DNNL_ARG_SHIFT, at(row, a[2])}, {DNNL_ARG_DST, at(md, a[3])}});
}

Step pool(algorithm how, void** a) {
  const dim_t k = size[4], s = size[5], rows = (size[2] - k) / s + 1, columns = (size[3] - k) / s + 1;
  const auto x = plain({size[0], size[1], size[2], size[3]}), y = plain({size[0], size[1], rows, columns});
  pooling_forward::primitive_desc pd(cpu, prop_kind::forward_inference, how, x, y, dims{s, s}, dims{k, k},
                                     dims{0, 0}, dims{0, 0}, dims{0, 0});
  return step<pooling_forward>(pd, {{DNNL_ARG_SRC, at(x, a[0])}, {DNNL_ARG_DST, at(y, a[1])}});
}

// The other way to relu_ffn: a product with post-operations.
Step scaled_shifted_relu(void** a) {
  const auto md = plain(size), channel = plain({1, size[1], 1, 1});
  post_ops shift;
  shift.append_binary(algorithm::binary_add, channel);
  shift.append_eltwise(algorithm::eltwise_relu, 0.f, 0.f);
  primitive_attr attributes;
  attributes.set_post_ops(shift);
  binary::primitive_desc pd(cpu, algorithm::binary_mul, md, channel, md, attributes);
  return step<binary>(pd, {{DNNL_ARG_SRC_0, at(md, a[0])}, {DNNL_ARG_SRC_1, at(channel, a[1])},
                           {DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, at(channel, a[2])},
                           {DNNL_ARG_DST, at(md, a[3])}});
}

std::vector<Step> swiglu(void** a) {
  const dim_t m = size[1], k = size[2], n = size[3];
  memory gate(plain({m, n}), cpu);
  post_ops swish, times;
  swish.append_eltwise(algorithm::eltwise_swish, 1.f, 0.f);
  times.append_binary(algorithm::binary_mul, plain({m, n}));
  primitive_attr first, second;
  first.set_post_ops(swish);
  second.set_post_ops(times);
  return {product(plain({m, k}), chosen({k, n}), plain({m, n}), a[0], at(plain({k, n}), a[1]), gate, first),
          product(plain({m, k}), chosen({k, n}), plain({m, n}), a[0], at(plain({k, n}), a[2]),
                  at(plain({m, n}), a[3]), second, gate)};
}

std::vector<Step> attention(void** a) {
  const dim_t h = size[0], m = size[1], n = size[2], d = size[3];
  memory scores(plain({h, m, n}), cpu);
  const memory::desc turned({h, d, n}, memory::data_type::f32, dims{n * d, 1, d});
  post_ops scale;
  scale.append_eltwise(algorithm::eltwise_linear, 1.f / std::sqrt(static_cast<float>(d)), 0.f);
  primitive_attr scaled;
  scaled.set_post_ops(scale);
  void* s = scores.get_data_handle();
  Step last = product(plain({h, m, n}), plain({h, n, d}), plain({h, m, d}), s, at(plain({h, n, d}), a[2]),
                      at(plain({h, m, d}), a[3]));
  last.with[DNNL_ARG_SRC] = scores;  // which keeps the scores alive
  return {product(plain({h, m, d}), turned, plain({h, m, n}), a[0], at(turned, a[1]), scores, scaled),
          normalised({h, m, n}, 2, algorithm::softmax_accurate, s, s), last};
}

std::vector<Step> prepare(void** a) {
  const dims& s = size;
  if (kernel == "add" || kernel == "mul") {
    auto md = plain(s);
    binary::primitive_desc pd(cpu, kernel == "add" ? algorithm::binary_add : algorithm::binary_mul, md, md, md);
    return {step<binary>(pd, {{DNNL_ARG_SRC_0, at(md, a[0])}, {DNNL_ARG_SRC_1, at(md, a[1])},
                              {DNNL_ARG_DST, at(md, a[2])}})};
  }
  if (kernel == "relu") return {eltwise(algorithm::eltwise_relu, s, a[0], a[1])};
  if (kernel == "gelu") return {eltwise(algorithm::eltwise_gelu_erf, s, a[0], a[1])};
  if (kernel == "silu") return {eltwise(algorithm::eltwise_swish, s, a[0], a[1], 1.f)};
  if (kernel == "relu_ffn" && packed) return {scaled_shifted_relu(a)};
  if (kernel == "relu_ffn")
    return {batch_norm(s, a, false, normalization_flags::use_global_stats | normalization_flags::fuse_norm_relu, 0)};
  if (kernel == "batchnorm") return {batch_norm(s, a, true, normalization_flags::none, 1e-5f)};
  if (kernel == "layernorm") return {layer_norm(s, a)};
  if (kernel == "reducemean") return {reduced(algorithm::reduction_mean, s, {s[0], 1}, a[0], a[1])};
  if (kernel == "sum") return {reduced(algorithm::reduction_sum, s, {1}, a[0], a[1])};
  if (kernel == "softmax") return {normalised(s, 1, algorithm::softmax_accurate, a[0], a[1])};
  if (kernel == "log_softmax") return {normalised(s, 1, algorithm::softmax_log, a[0], a[1])};
  if (kernel == "matmul")
    return {product(plain({s[0], s[1]}), plain({s[1], s[2]}), plain({s[0], s[2]}), a[0],
                    at(plain({s[1], s[2]}), a[1]), at(plain({s[0], s[2]}), a[2]))};
  if (kernel == "gemv")
    return {product(plain({s[0], s[1]}), plain({s[1], 1}), plain({s[0], 1}), a[0], at(plain({s[1], 1}), a[1]),
                    at(plain({s[0], 1}), a[2]))};
  if (kernel == "bmm")
    return {product(plain({s[0], s[1], s[2]}), plain({s[0], s[2], s[3]}), plain({s[0], s[1], s[3]}), a[0],
                    at(plain({s[0], s[2], s[3]}), a[1]), at(plain({s[0], s[1], s[3]}), a[2]))};
  if (kernel == "conv") {
    const dim_t k = s[5];
    return {convolution({s[0], s[2], s[3], s[4]}, {s[1], s[2], k, k}, {s[0], s[1], s[3] - k + 1, s[4] - k + 1}, a)};
  }
  if (kernel == "conv2d") {
    const dim_t k = s[5], stride = s[6], padding = s[7];
    const auto along = [&](dim_t n) { return (n + 2 * padding - k) / stride + 1; };
    return {convolution({s[0], s[2], s[3], s[4]}, {s[1], s[2], k, k}, {s[0], s[1], along(s[3]), along(s[4])}, a, stride,
                        padding)};
  }
  if (kernel == "dwconv") {
    const dim_t k = s[4];
    return {convolution({s[0], s[1], s[2], s[3]}, {s[1], 1, 1, k, k}, {s[0], s[1], s[2] - k + 1, s[3] - k + 1}, a)};
  }
  if (kernel == "maxpool") return {pool(algorithm::pooling_max, a)};
  if (kernel == "avgpool") return {pool(algorithm::pooling_avg_exclude_padding, a)};
  if (kernel == "swiglu") return swiglu(a);
  if (kernel == "attention") return attention(a);
  return {};
}

}  // namespace

extern "C" {

void open_kernel(const char* name, const std::int64_t* sizes, int count, int with_packed, int by_winograd) {
  kernel = name;
  size.assign(sizes, sizes + count);
  packed = with_packed, winograd = by_winograd;
  sets.clear();
}

// 0 prepared, 1 no counterpart, 2 failed: see last_error().
int add_set(void** arrays) {
  try {
    sets.push_back(prepare(arrays));
    return sets.back().empty() ? 1 : 0;
  } catch (const std::exception& error) {
    failure = error.what();
    return 2;
  }
}

void run_set(int set) {
  for (Step& each : sets[set]) each.what.execute(queue, each.with);
  queue.wait();
}

const char* last_error() { return failure.c_str(); }

void library_version(int* parts) {
  const auto* told = dnnl_version();
  parts[0] = told->major, parts[1] = told->minor, parts[2] = told->patch;
}
}
