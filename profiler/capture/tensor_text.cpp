#include "profiler/capture/tensor_text.h"

#include <fmt/ranges.h>

namespace profiler {

std::size_t ListTexts::Hash::operator()(at::IntArrayRef values) const {
    std::size_t hash = values.size();
    for (const int64_t value : values) hash = hash * 1000003 + static_cast<std::size_t>(value);
    return hash;
}

StringId ListTexts::of(at::IntArrayRef values, StringTable& strings) {
    if (const auto known = texts_.find(values); known != texts_.end()) return known->second;
    const StringId text =
        strings.intern(fmt::format("[{}]", fmt::join(values.begin(), values.end(), ", ")));
    texts_.emplace(values.vec(), text);
    return text;
}

DType dtype_of(at::ScalarType type) {
    switch (type) {
        case at::kFloat:
            return DType::kFloat32;
        case at::kHalf:
            return DType::kFloat16;
        case at::kBFloat16:
            return DType::kBFloat16;
        case at::kDouble:
            return DType::kFloat64;
        case at::kBool:
            return DType::kBool;
        case at::kByte:
            return DType::kUInt8;
        case at::kChar:
            return DType::kInt8;
        case at::kShort:
            return DType::kInt16;
        case at::kInt:
            return DType::kInt32;
        case at::kLong:
            return DType::kInt64;
        default:
            return DType::kOther;
    }
}

bool has_shape(const at::Tensor& tensor) {
    return !tensor.is_nested() && !tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
}

std::vector<at::Tensor> tensors_of(std::span<const c10::IValue> values) {
    std::vector<at::Tensor> tensors;
    tensors.reserve(values.size());
    for (const c10::IValue& value : values) {
        if (value.isTensor()) {
            if (value.toTensor().defined()) tensors.push_back(value.toTensor());
        } else if (value.isTensorList()) {
            for (const at::Tensor& tensor : value.toTensorVector()) tensors.push_back(tensor);
        }
    }
    return tensors;
}

}  // namespace profiler
