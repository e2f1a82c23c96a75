#include "models/layers/parameters.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/normal.h>

namespace models {

ParameterStore::ParameterStore(int64_t seed, at::TensorOptions options, Values values)
    : generator_(at::make_generator<at::CPUGeneratorImpl>(static_cast<uint64_t>(seed))),
      options_(options),
      values_(values) {}

at::Tensor ParameterStore::add_normal(std::string name, at::IntArrayRef shape, int64_t num_parts) {
    if (values_ == Values::kNone) return add(std::move(name), at::empty(shape, options_));
    std::vector<int64_t> sizes = shape.vec();
    sizes[0] /= num_parts;
    std::vector<at::Tensor> parts;
    for (int64_t part = 0; part < num_parts; ++part) {
        // Drawn in fp32, so that all precisions start from the same weights.
        parts.push_back(at::normal(0.0, 0.02, sizes, generator_, at::kFloat, at::kStrided,
                                   at::Device(at::kCPU), false));
    }
    return add(std::move(name), (num_parts == 1 ? parts[0] : at::cat(parts)).to(options_));
}

at::Tensor ParameterStore::add_constant(std::string name, at::IntArrayRef shape, double value) {
    return add(std::move(name), at::full(shape, value, options_));
}

at::Tensor ParameterStore::add(std::string name, at::Tensor value) {
    value.set_requires_grad(true);
    parameters_.push_back({std::move(name), value});
    return value;
}

}  // namespace models
