#pragma once

#include <cudnn.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

/// The descriptors of cuDNN's backend interface: they keep what they are given.
namespace profiler::virtual_gpu {

struct Descriptor {
    using Parts = std::vector<std::shared_ptr<const Descriptor>>;

    cudnnBackendDescriptorType_t type;
    std::map<cudnnBackendAttributeName_t, std::vector<std::byte>> attributes;
    std::map<cudnnBackendAttributeName_t, Parts> parts;  // copies: the caller may destroy its own
    int64_t workspace_bytes = 0;                         // of an engine's configuration

    /// The values of an attribute; none if it was not set. `T` must be the type that was given.
    template <typename T>
    std::span<const T> values(cudnnBackendAttributeName_t name) const {
        const auto found = attributes.find(name);
        if (found == attributes.end()) return {};
        return {reinterpret_cast<const T*>(found->second.data()), found->second.size() / sizeof(T)};
    }
    void keep_parts(cudnnBackendAttributeName_t name, std::span<Descriptor* const> named) {
        Parts& kept = parts[name];
        kept.clear();
        for (const Descriptor* const part : named) {
            if (part != nullptr) kept.push_back(std::make_shared<Descriptor>(*part));
        }
    }
    const Parts& parts_of(cudnnBackendAttributeName_t name) const {
        static const Parts none;
        const auto found = parts.find(name);
        return found == parts.end() ? none : found->second;
    }
    /// The first part; null if there is none.
    const Descriptor* part(cudnnBackendAttributeName_t name) const {
        const Parts& all = parts_of(name);
        return all.empty() ? nullptr : all.front().get();
    }
};

/// Bytes of an element.
int64_t size_of(cudnnDataType_t type);

/// The workspace of a plan for this graph of operations. Recorded on an H200 with cuDNN 9.19
/// (docs/dev/virtual_gpu.md).
int64_t workspace_of(const Descriptor& graph);

}  // namespace profiler::virtual_gpu
