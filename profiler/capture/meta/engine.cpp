#include "profiler/capture/meta/engine.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/add_meta_dispatch.h>
#include <ATen/ops/alias.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

namespace profiler {
namespace {

/// The frames of this thread, innermost last: is it the engine's own, around a node?
thread_local std::vector<bool> is_engine_frame;

std::unique_ptr<at::ObserverContext> on_begin(const at::RecordFunction& function) {
    constexpr const char* kEngine = "autograd::engine::evaluate_function";
    is_engine_frame.push_back(std::strncmp(function.name(), kEngine, std::strlen(kEngine)) == 0);
    return nullptr;
}

void on_end(const at::RecordFunction&, at::ObserverContext*) {
    if (!is_engine_frame.empty()) is_engine_frame.pop_back();
}

}  // namespace

EngineFrames::EngineFrames()
    : callback_(at::addGlobalCallback(
          at::RecordFunctionCallback(on_begin, on_end)
              .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}))) {
    is_engine_frame.clear();
}

EngineFrames::~EngineFrames() { at::removeCallback(callback_); }

bool EngineFrames::in_backward() {
    return std::find(is_engine_frame.begin(), is_engine_frame.end(), true) != is_engine_frame.end();
}

/// The innermost frame is aten::add itself; a node's own additions have the node's frame around
/// them.
bool EngineFrames::sums_gradients() {
    return is_engine_frame.size() >= 2 && is_engine_frame[is_engine_frame.size() - 2];
}

/// The conditions are InputBuffer's (`can_accumulate_inplace`), for dense tensors.
at::Tensor add_as_on_cuda(const at::Tensor& a, const at::Tensor& b, const at::Scalar& alpha) {
    const bool in_place = EngineFrames::sums_gradients() && !at::GradMode::is_enabled() &&
                          a.use_count() == 1 && a.storage().use_count() == 1 &&
                          a.is_non_overlapping_and_dense() && a.sizes().equals(b.sizes()) &&
                          a.scalar_type() == b.scalar_type();
    return in_place ? at::alias(a) : at::meta::add(a, b, alpha);
}

}  // namespace profiler
