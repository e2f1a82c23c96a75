#include "models/ops/replayed_masks.h"

#include <torch/library.h>

#include <atomic>

namespace models::ops {
namespace {

std::atomic<bool> g_allowed = false;

/// Returns what was allowed before.
bool allow_replayed_masks(bool allowed) { return g_allowed.exchange(allowed); }

}  // namespace

bool replayed_masks_allowed() { return g_allowed; }

TORCH_LIBRARY_FRAGMENT(tempo, m) {
    m.def("allow_replayed_masks(bool allowed) -> bool", allow_replayed_masks);
}

}  // namespace models::ops
