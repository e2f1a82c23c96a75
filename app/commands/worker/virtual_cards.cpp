#include "app/commands/worker/virtual_cards.h"

#include <algorithm>

namespace app {
namespace {

constexpr int64_t kEndlessBytes = int64_t{1} << 40;

}  // namespace

profiler::VirtualCard virtual_card(const profiler::Gpu& gpu) {
    return {.name = gpu.name,
            .capability = std::max(gpu.compute_capability.value_or(models::kAmpere), kOldestTraced),
            .total_bytes = kEndlessBytes,
            .sm_count = static_cast<int64_t>(gpu.sm_count.value),
            .l2_bytes = static_cast<int64_t>(gpu.l2_bytes.value)};
}

}  // namespace app
