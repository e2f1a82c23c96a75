#include "profiler/planner/step_memory.h"

#include <algorithm>

namespace profiler {
namespace {

/// Builds the stream and remembers whose each of its allocations is.
class StreamBuilder {
public:
    StreamBuilder(const StepWork& step, const MemoryOptions& options)
        : step_(step), options_(options), number_(step.allocations.size()) {}

    RequestStream build() {
        stream_.requests.reserve(step_.requests.size() + step_.requests.size() / 8);
        for (const int64_t bytes : options_.persistent_bytes) stream_.allocate(bytes);
        roles_.assign(stream_.num_allocations, Role::kUnknown);
        if (zeroed()) add_gradients();
        for (const StepRequest& request : step_.requests) add(request);
        free_added_gradient();
        return std::move(stream_);
    }

    const std::vector<Role>& roles() const { return roles_; }

private:
    bool zeroed() const { return options_.gradients == Gradients::kZeroed; }

    int64_t size_of(const StepAllocation& allocation) const {
        if (options_.cublas_workspace_bytes > 0 &&
            is_cublas_workspace(allocation.role, allocation.size_bytes)) {
            return options_.cublas_workspace_bytes;
        }
        return options_.parallel.size_on_one(allocation);
    }

    uint32_t allocate(const StepAllocation& allocation) {
        roles_.push_back(allocation.role);
        return stream_.allocate(size_of(allocation), allocation.stream, allocation.pool);
    }

    /// Gradients that are zeroed and not freed live before and after each step.
    void add_gradients() {
        for (const StepAllocation& allocation : step_.allocations) {
            if (allocation.role == Role::kGradient && allocation.in_last_step) {
                allocate(allocation);
            }
        }
    }

    void add(const StepRequest& request) {
        const StepAllocation& allocation = step_.allocations[request.allocation];
        const bool is_gradient = zeroed() && allocation.role == Role::kGradient;
        if (request.kind == AllocatorRequestKind::kAlloc) {
            free_added_gradient();
            number_[request.allocation] = allocate(allocation);
            // It is added to the gradient that is there, and freed.
            if (is_gradient) added_gradient_ = number_[request.allocation];
        } else if (!is_gradient) {
            stream_.requests.push_back({request.kind, number_[request.allocation]});
        }
    }

    void free_added_gradient() {
        if (added_gradient_) stream_.free(*added_gradient_);
        added_gradient_.reset();
    }

    const StepWork& step_;
    const MemoryOptions& options_;
    RequestStream stream_;
    std::vector<uint32_t> number_;  // in the stream, by the step's allocation
    std::vector<Role> roles_;       // by the stream's allocation
    std::optional<uint32_t> added_gradient_;
};

}  // namespace

bool operator==(const MemoryOptions& a, const MemoryOptions& b) {
    return a.settings == b.settings && a.gradients == b.gradients &&
           a.parallel.num_gpus == b.parallel.num_gpus &&
           a.parallel.zero_stage == b.parallel.zero_stage &&
           a.cublas_workspace_bytes == b.cublas_workspace_bytes &&
           a.persistent_bytes == b.persistent_bytes;
}

RequestStream requests_of(const StepWork& step, const MemoryOptions& options) {
    return StreamBuilder(step, options).build();
}

StepMemory simulate_step(const StepWork& step, const MemoryOptions& options,
                         std::optional<int64_t> limit_bytes) {
    const Simulation simulation =
        simulate(requests_of(step, options),
                 {.settings = options.settings, .memory_limit_bytes = limit_bytes});
    return {simulation.peak.allocated_bytes, simulation.peak.reserved_bytes,
            simulation.out_of_memory};
}

PeakContents peak_contents(const StepWork& step, const MemoryOptions& options,
                           std::optional<int64_t> limit_bytes) {
    StreamBuilder builder(step, options);
    const RequestStream stream = builder.build();
    const Simulation simulation =
        simulate(stream, {.settings = options.settings, .memory_limit_bytes = limit_bytes});
    PeakContents contents;
    contents.peaks = {simulation.peak.allocated_bytes, simulation.peak.reserved_bytes,
                      simulation.out_of_memory};
    std::vector<int64_t> sizes(stream.num_allocations);
    const std::size_t end = std::min(simulation.peak_request + 1, stream.requests.size());
    int64_t sum = 0;
    for (std::size_t i = 0; i < end; ++i) {
        const AllocatorRequest& request = stream.requests[i];
        const bool is_alloc = request.kind == AllocatorRequestKind::kAlloc;
        if (request.kind == AllocatorRequestKind::kFreeCompleted) continue;
        if (is_alloc) sizes[request.allocation] = request.size_bytes;
        const int64_t change = is_alloc ? request.size_bytes : -sizes[request.allocation];
        sum += change;
        const bool is_persistent = request.allocation < options.persistent_bytes.size();
        int64_t& part =
            is_persistent
                ? contents.persistent_bytes
                : contents.by_role[static_cast<std::size_t>(builder.roles()[request.allocation])];
        part += change;
    }
    contents.rounding_bytes = simulation.at_peak.allocated_bytes - sum;
    contents.cached_bytes = simulation.at_peak.reserved_bytes - simulation.at_peak.allocated_bytes;
    return contents;
}

bool is_cublas_workspace(Role role, int64_t size_bytes) {
    return role == Role::kWorkspace && models::is_cublas_workspace_bytes(size_bytes);
}

}  // namespace profiler
