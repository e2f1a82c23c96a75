#include "profiler/capture/torch_adapter/torch_hooks.h"

#include "profiler/capture/recorder.h"
#include "profiler/capture/tracking_allocator.h"

#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sigmoid.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>
#include <torch/csrc/autograd/variable.h>

#include <gmock/gmock.h>

#include <memory>
#include <optional>

/// The hooks beside those of others: what Python does with its engine is done here with one of the
/// test's.
namespace profiler {
namespace {

using torch::autograd::Engine;
using torch::autograd::SavedVariableHooks;

/// Packs as a checkpoint does: the tensor is the hook's own matter.
struct OwnHooks final : SavedVariableHooks {
    void call_pack_hook(const at::Tensor& tensor) override { packed = tensor.tensor_data(); }
    at::Tensor call_unpack_hook() override { return packed; }
    at::Tensor packed;
};

/// Has hooks of its own while `has_hooks`, as PythonEngine has inside of a checkpoint.
class OtherEngine final : public Engine {
public:
    static Engine& instance() {
        static auto* const engine = new OtherEngine;
        return *engine;
    }
    std::unique_ptr<SavedVariableHooks> get_default_saved_variable_hooks() override {
        if (!has_hooks) return nullptr;
        ++asked;
        return std::make_unique<OwnHooks>();
    }
    torch::autograd::variable_list execute(const torch::autograd::edge_list& roots,
                                           const torch::autograd::variable_list& inputs,
                                           bool keep_graph, bool create_graph, bool accumulate_grad,
                                           const torch::autograd::edge_list& outputs) override {
        ++executed;
        return Engine::execute(roots, inputs, keep_graph, create_graph, accumulate_grad, outputs);
    }
    inline static bool has_hooks = false;
    inline static int asked = 0;
    inline static int executed = 0;
};

/// Before anything installs ours: each test runs in the process of this program.
[[maybe_unused]] const bool engine_is_set = [] {
    torch::autograd::set_default_engine_stub(&OtherEngine::instance);
    install_hook_engine();
    return true;
}();

class TorchHooks : public testing::Test {
protected:
    TorchHooks() {
        TrackingAllocator::instance();
        recorder_.emplace(trace_, RecorderOptions{});
        recorder_->start();
    }
    ~TorchHooks() override {
        recorder_->stop();
        OtherEngine::has_hooks = false;
    }

    static at::Tensor weight() { return at::ones({4, 4}).set_requires_grad(true); }

    Trace trace_;
    std::optional<Recorder> recorder_;
};

TEST_F(TorchHooks, HooksOfTheEngineThatWasThereComeFirst) {
    OtherEngine::has_hooks = true;
    const int asked = OtherEngine::asked;
    const at::Tensor loss = at::mm(weight(), weight()).sum();
    EXPECT_GT(OtherEngine::asked, asked);
    EXPECT_EQ(trace_.saves.size(), 0U);  // what they keep is not ours to report
}

TEST_F(TorchHooks, OursAreAskedWhereThereAreNoOthers) {
    const at::Tensor loss = at::mm(weight(), weight()).sum();
    EXPECT_EQ(trace_.saves.size(), 2U);
}

TEST_F(TorchHooks, BackwardStaysTheWorkOfTheEngineThatWasThere) {
    const int executed = OtherEngine::executed;
    const at::Tensor w = weight();
    at::mm(w, w).sum().backward();
    EXPECT_EQ(OtherEngine::executed, executed + 1);
    EXPECT_TRUE(w.grad().defined());
}

TEST_F(TorchHooks, AChangeInPlaceOfASavedTensorIsAnError) {
    const at::Tensor hidden = at::sigmoid(weight());
    hidden.add_(1);
    try {
        hidden.sum().backward();
        FAIL() << "the gradient would be wrong";
    } catch (const c10::Error& error) {
        EXPECT_THAT(error.what_without_backtrace(),
                    testing::HasSubstr("modified by an inplace operation"));
    }
}

TEST_F(TorchHooks, ATensorThatIsNotSavedMayBeChanged) {
    const at::Tensor w = weight();
    at::Tensor hidden = at::sigmoid(w);
    const at::Tensor sum = hidden.sum();
    sum.backward();
    hidden.detach().add_(1);  // after backward, nobody needs it
    EXPECT_TRUE(w.grad().defined());
}

}  // namespace
}  // namespace profiler
