#pragma once

#include "profiler/analysis/ops/movement.h"

#include <string>
#include <vector>

/// The ops of a layer as the papers count them: bias, scale, dropout and residual are passes of
/// their own, whatever kernels run them, and nothing is recomputed. They follow from the workload's
/// sizes alone; the recipe does not matter.
namespace profiler {

/// A tensor that an op reads or writes. Weights are read too; vectors (biases, statistics) are so
/// small that they count as nothing.
struct LogicalTensor {
    std::string name;  // "query", "w_qkv"
    int64_t words = 0;
};

struct LogicalOp {
    std::string name;    // "QKV product"
    std::string module;  // "attention", "mlp"
    PhaseKind phase = PhaseKind::kForward;
    OpClass op_class = OpClass::kOther;
    int64_t flop = 0;
    std::vector<LogicalTensor> reads;
    std::vector<LogicalTensor> writes;
    bool in_attention = false;  // the paper's multi-head attention: from the QKV product to the
                                // bias of its output, forward

    int64_t words_read() const;
    int64_t words_written() const;
};

/// Forward, then backward, of one layer; empty if they are not known.
///
/// Source: Ivanov et al., arXiv 2007.00072, with the counts of Substation: a product is 2 M N K,
/// the rest is in profiler/trace/flop_counts.h. The scale of backward is part of a product.
/// Gradients of biases are reductions, which the paper counts as normalizations: only so its 99.80
/// / 0.17 / 0.03 % by class come out.
std::vector<LogicalOp> logical_ops(const models::Workload& workload);

/// The same as rows for all layers of the workload.
MovementReport logical_movement(const models::Workload& workload);

/// One micro-batch of one layer, forward and backward.
MovementWork work_of_layer(const models::Workload& workload);

/// Multi-head attention of one layer, forward: 43.17 Gflop and 153.6 flop a word for BERT-large at
/// batch 8 and sequence length 512.
MovementWork attention_of(const std::vector<LogicalOp>& ops, models::Precision precision);

}  // namespace profiler
