#pragma once

#include "profiler/capture/torch_adapter/torch_version.h"

#include <torch/csrc/autograd/engine.h>

#include <exception>
#include <memory>
#include <utility>
#include <vector>

namespace profiler {

/// A node of autograd's graph: counted by std::shared_ptr, and by itself since torch 2.13.
using NodePtr = decltype(torch::autograd::Edge::function);

/// An autograd engine that leaves everything to the previous engine: in Python that engine knows
/// Python's hooks and owns the threads of the devices. A subclass overrides what it wants to see.
///
/// It passes on each public virtual function of torch's Engine. If a newer torch adds one, this
/// compiles without it, and a feature of the user's program is silently lost: tidy.torch_version
/// compares the names with torch's header.
class PassingEngine : public torch::autograd::Engine {
public:
    explicit PassingEngine(torch::autograd::Engine& previous) : previous_(&previous) {}

    torch::autograd::variable_list execute(const torch::autograd::edge_list& roots,
                                           const torch::autograd::variable_list& inputs,
                                           bool keep_graph, bool create_graph, bool accumulate_grad,
                                           const torch::autograd::edge_list& outputs) override {
        return previous_->execute(roots, inputs, keep_graph, create_graph, accumulate_grad,
                                  outputs);
    }
    c10::intrusive_ptr<at::ivalue::Future> execute_with_graph_task(
        const std::shared_ptr<torch::autograd::GraphTask>& graph_task, NodePtr graph_root,
        torch::autograd::InputBuffer&& input_buffer) override {
        return previous_->execute_with_graph_task(graph_task, std::move(graph_root),
                                                  std::move(input_buffer));
    }
    std::unique_ptr<torch::autograd::AnomalyMetadata> make_anomaly_metadata() override {
        return previous_->make_anomaly_metadata();
    }
    std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks()
        override {
        return previous_->get_default_saved_variable_hooks();
    }
#if TEMPOSCOPE_TORCH >= 214
    std::vector<std::unique_ptr<torch::autograd::NodeCreationHook>> get_node_creation_hooks()
        override {
        return previous_->get_node_creation_hooks();
    }
#endif
    void thread_on_exception(const std::shared_ptr<torch::autograd::GraphTask>& graph_task,
                             const NodePtr& node, std::exception& error) override {
        previous_->thread_on_exception(graph_task, node, error);
    }
    void thread_init(int device, const std::shared_ptr<torch::autograd::ReadyQueue>& queue,
                     bool should_increment) override {
        previous_->thread_init(device, queue, should_increment);
    }

private:
    torch::autograd::Engine* previous_;
};

}  // namespace profiler
