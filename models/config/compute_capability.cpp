#include "models/config/compute_capability.h"

#include <charconv>

namespace models {
namespace {

constexpr int64_t kDefaultWorkspaceBytes = (4096 * 2 + 16 * 8) * int64_t{1024};
constexpr int64_t kHopperWorkspaceBytes = int64_t{32} << 20;

constexpr int64_t kKiB = 1024;

struct Row {
    ComputeCapability capability;
    SmLimits limits;
};
/// Rising.
constexpr Row kRows[] = {
    {{6, 0}, {2048, 32, 64 * kKiB, 48 * kKiB}},   {{6, 1}, {2048, 32, 96 * kKiB, 48 * kKiB}},
    {{7, 0}, {2048, 32, 96 * kKiB, 96 * kKiB}},   {{7, 5}, {1024, 16, 64 * kKiB, 64 * kKiB}},
    {{8, 0}, {2048, 32, 164 * kKiB, 163 * kKiB}}, {{8, 6}, {1536, 16, 100 * kKiB, 99 * kKiB}},
    {{8, 7}, {1536, 16, 164 * kKiB, 163 * kKiB}}, {{8, 9}, {1536, 24, 100 * kKiB, 99 * kKiB}},
    {{9, 0}, {2048, 32, 228 * kKiB, 227 * kKiB}}, {{10, 0}, {2048, 32, 228 * kKiB, 227 * kKiB}},
    {{12, 0}, {1536, 24, 100 * kKiB, 99 * kKiB}}};

}  // namespace

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

int64_t cublas_workspace_bytes(ComputeCapability capability) {
    return capability == ComputeCapability{9, 0} ? kHopperWorkspaceBytes : kDefaultWorkspaceBytes;
}

bool is_cublas_workspace_bytes(int64_t bytes) {
    return bytes == kDefaultWorkspaceBytes || bytes == kHopperWorkspaceBytes;
}

SmLimits sm_limits(ComputeCapability capability) {
    SmLimits limits = kRows[0].limits;
    for (const Row& row : kRows) {
        if (row.capability <= capability) limits = row.limits;
    }
    return limits;
}

}  // namespace models
