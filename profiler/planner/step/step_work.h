#pragma once

#include "models/config/result.h"
#include "profiler/allocator/request_stream.h"
#include "profiler/planner/step/kernel_model.h"
#include "profiler/planner/step/op_work.h"
#include "profiler/trace/trace.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

/// A training step as the planner needs it: its requests to the allocator in order, and the work of
/// its kernels. It is read from a trace once and can then be moved to another batch size cheaply.
namespace profiler {

struct StepAllocation {
    int64_t size_bytes = 0;
    int64_t stream = 0;
    int64_t pool = 0;
    Category category = Category::kUnknown;
    std::optional<PhaseKind> phase;  // in which it is allocated; kOptimizer: the parameter update
    bool in_last_step = false;
    uint64_t op = 0;  // that allocates it: the same number at every batch size; 0: not known
    uint64_t freeing_op = 0;  // likewise
};

struct StepRequest {
    AllocatorRequestKind kind = AllocatorRequestKind::kAlloc;
    uint32_t allocation = 0;
};

struct StepOp {
    PhaseKind phase = PhaseKind::kForward;
    OpClass op_class = OpClass::kOther;
    KernelWork work;
    int64_t count = 1;  // of equal ops that were merged
};

struct Parameters {
    int64_t num_elements = 0;
    int64_t num_tensors = 0;
    int64_t size_bytes = 0;
    int64_t largest_tensor_bytes = 0;
    int64_t largest_layer_bytes = 0;
};

/// What a process asks of the allocator, up to the end of a step.
struct StepRequests {
    int64_t batch_size = 0;
    std::vector<StepRequest> requests;
    std::size_t first_request = 0;  // of the last step; the requests before belong to the warm-up
    bool is_first_step = false;     // it makes what stays: optimizer state, workspaces
    std::vector<StepAllocation> allocations;  // by the requests' numbers
    /// What autograd keeps from forward to backward: the ledger's total; empty: not recorded.
    std::optional<int64_t> saved_bytes;
};

struct StepWork : StepRequests {
    Source source = Source::kPredicted;  // of the trace
    std::vector<StepOp> ops;             // of the last step, as `ops_of_step` lists them
    Parameters parameters;
    int64_t model_flop = 0;     // of one step: 3 x the contractions of forward
    int64_t micro_batches = 1;  // whose gradients add up
    bool has_shapes = true;     // false: the shape of some GEMM is not known
};

/// If `rows` is given, it gets the row of the trace for each allocation of the step.
/// Errors: a trace without a recorded step, without a workload or program, or a damaged trace.
models::Result<StepWork> step_work_of(const Trace& trace,
                                      std::vector<Id<Allocation>>* rows = nullptr);

/// The place in `ops` of the first op that the two steps do not have in common; none: they run the
/// same ops. It may be the end of one of them.
std::optional<std::size_t> first_different_op(const StepWork& small, const StepWork& large);

/// The work of a step's ops at every batch size, from steps at two batch sizes: it is affine in the
/// batch. That is all that times need. Equal ops are merged.
class AffineOps {
public:
    /// Errors: the two steps run different ops.
    static models::Result<AffineOps> fit(const StepWork& small, const StepWork& large);

    /// A step without requests.
    StepWork at(int64_t batch_size) const;

private:
    AffineOps(StepWork small, StepWork large)
        : small_(std::move(small)), large_(std::move(large)) {}

    StepWork small_;  // both without requests
    StepWork large_;
};

/// The requests of a step at each batch size between two traced ones. They follow the sequence of
/// the larger batch, because kernels take scratch from some batch on. Sizes are affine: weights are
/// constant, activations (the S² terms of attention too) are linear. An allocation that the smaller
/// batch does not make is proportional to the batch.
///
/// An allocation is the same at two batches if the same ops allocate and free it.
class AffineRequests {
public:
    /// Errors: the larger batch has an allocation that no op makes, and the smaller one has not.
    static models::Result<AffineRequests> fit(const StepRequests& small, const StepRequests& large);

    /// The allocation of the larger batch that is furthest above a share of the batch, as S² of a
    /// table of all pairs is; none: each is affine, as far as two batches tell.
    std::optional<std::size_t> not_affine() const;

    /// Exact at the larger batch. At others a size may be off by a byte (bit masks round up), and
    /// scratch by its size.
    StepRequests at(int64_t batch_size) const;

private:
    explicit AffineRequests(StepRequests large) : large_(std::move(large)) {}

    int64_t small_batch_ = 0;
    std::vector<int64_t> small_bytes_;  // by allocation of the larger batch
    std::optional<int64_t> small_saved_bytes_;
    StepRequests large_;
};

/// Appends the second step of a process to its first one. The second step does what the first one
/// did, except that what stays (optimizer state, workspaces) is there already. Does nothing if the
/// last step is not the first one.
void repeat_first_step(StepRequests& step);

/// Turns the requests of a program that frees its gradients into the requests of a program that
/// zeroes them:
///
///     first step    gradients stay    (a trace without this step: they are allocated before it)
///     later steps   each new gradient is added to the old one and freed before the next request
///
/// Source: torch/csrc/autograd/functions/accumulate_grad.h.
void zero_gradients(StepRequests& step);

/// Merges ops that do the same work in the same phase and adds up their counts.
void merge_equal_ops(StepWork& step);

}  // namespace profiler
