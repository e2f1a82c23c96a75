#pragma once

#include "profiler/trace/trace.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace profiler {

/// Shapes and strides as text: "[8, 512, 1024]". A step has few, and each is written once.
class ListTexts {
public:
    StringId of(at::IntArrayRef values, StringTable& strings);

private:
    struct Hash {
        using is_transparent = void;
        std::size_t operator()(at::IntArrayRef values) const;
    };
    struct Equal {
        using is_transparent = void;
        bool operator()(at::IntArrayRef a, at::IntArrayRef b) const { return a == b; }
    };
    std::unordered_map<std::vector<int64_t>, StringId, Hash, Equal> texts_;
};

DType dtype_of(at::ScalarType type);

/// False: a nested tensor, whose parts have shapes of their own, or a tensor with symbolic sizes.
bool has_shape(const at::Tensor& tensor);

/// All defined tensors among the values, also those in lists.
std::vector<at::Tensor> tensors_of(std::span<const c10::IValue> values);

}  // namespace profiler
