#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace models {

/// A trainable tensor under its Hugging Face name, "encoder.layer.0.output.dense.weight".
struct Parameter {
    std::string name;
    at::Tensor value;
};

/// Whether random values are drawn for parameters and data. Where no kernel runs, on a virtual GPU,
/// drawing them would take most of the time and nobody would look at them.
enum class Values : uint8_t { kDrawn, kNone };

/// Creates parameters in a fixed order from one generator, so that a seed gives the same weights
/// with every recipe.
class ParameterStore {
public:
    ParameterStore(int64_t seed, at::TensorOptions options, Values values = Values::kDrawn);

    /// Normal with standard deviation 0.02, as BERT and GPT-2. A parameter of several parts below
    /// each other has the values that the parts would have one after another.
    at::Tensor add_normal(std::string name, at::IntArrayRef shape, int64_t num_parts = 1);
    at::Tensor add_constant(std::string name, at::IntArrayRef shape, double value);

    const std::vector<Parameter>& parameters() const { return parameters_; }

private:
    at::Tensor add(std::string name, at::Tensor value);

    at::Generator generator_;
    at::TensorOptions options_;
    Values values_;
    std::vector<Parameter> parameters_;
};

}  // namespace models
