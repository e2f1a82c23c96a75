#include "models/config/compute_capability.h"

#include <charconv>

namespace models {

std::string to_text(ComputeCapability capability) {
    return fmt::format("{}.{}", capability.major, capability.minor);
}

Result<ComputeCapability> parse_compute_capability(std::string_view text) {
    ComputeCapability capability;
    const char* const end = text.data() + text.size();
    const auto major = std::from_chars(text.data(), end, capability.major);
    if (major.ec == std::errc() && major.ptr != end && *major.ptr == '.') {
        const auto minor = std::from_chars(major.ptr + 1, end, capability.minor);
        const bool is_whole = minor.ec == std::errc() && minor.ptr == end;
        if (is_whole && capability.major > 0 && capability.minor >= 0) return capability;
    }
    return fail("'{}' is not a compute capability: write it as 8.6.", text);
}

}  // namespace models
