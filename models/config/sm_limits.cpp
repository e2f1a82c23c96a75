#include "models/config/sm_limits.h"

namespace models {
namespace {

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

SmLimits sm_limits(ComputeCapability capability) {
    SmLimits limits = kRows[0].limits;
    for (const Row& row : kRows) {
        if (row.capability <= capability) limits = row.limits;
    }
    return limits;
}

}  // namespace models
