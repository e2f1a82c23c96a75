#pragma once

#include "profiler/trace/trace.h"

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
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

}  // namespace profiler
