#pragma once

#include "profiler/layouts/gemm_form.h"
#include "profiler/layouts/layout_graph.h"

#include <cstdint>
#include <string>
#include <vector>

/// Substation's encoder layer, op by op, forward and backward: post-LN, ReLU, dropout after the
/// activation, no attention mask, one product for query, key and value. The ops are those of its
/// repository (spcl/substation, config_selection/ops.py). Three differ: the biases of query, key
/// and value are an op each, as are the three parts of the projection's gradient, because each has
/// orders of its own; and the two gradients of a LayerNorm, of its parameters and of its input, are
/// one op, because torch computes them in one.
namespace profiler {

/// How an op is run (measure_layouts.h has the code).
enum class LayoutKernel : uint8_t {
    kGemm,
    kAddBias,       // a part of the projection, with its bias
    kSoftmax,       // and dropout
    kNorm,          // bias, dropout, residual and LayerNorm
    kRelu,          // bias, ReLU and dropout
    kNormGradient,  // of LayerNorm, its parameters, and the dropout before it
    kReluGradient,  // of dropout, ReLU and bias
    kAdd,
    kSoftmaxGradient,  // of dropout and softmax
    kStack             // a part of the gradient of the projection, and the gradient of its bias
};

struct EncoderOp {
    std::string name;
    LayoutKernel kernel = LayoutKernel::kGemm;
    std::vector<std::string> reads, writes;  // names of tensors
    bool is_backward = false;
    int64_t part = 0;  // of the projection: 0 query, 1 key, 2 value
};

/// A tensor that forward saves stands for what is saved beside it, too, in the same order: "probs"
/// for the probabilities before and after dropout and the mask.
struct EncoderLayer {
    std::vector<LayoutTensor> tensors;  // orders and copies are empty
    std::vector<EncoderOp> ops;
};

const EncoderLayer& encoder_layer();
OpClass class_of(LayoutKernel kernel);

struct LayoutSizes {
    int64_t batch_size = 2;
    int64_t seq_len = 64;
    int64_t hidden_size = 1024;
    int64_t num_heads = 16;
    int64_t intermediate_size = 4096;
};
DimensionSizes dimension_sizes(const LayoutSizes& sizes);

/// The graph without times: the configurations in which each op can run, and the orders of each
/// tensor that occur in them.
///
///     GEMM       every combination of orders that is one strided batched GEMM
///     softmax    one order for all its tensors
///     others     every combination of the orders that GEMMs read or write
LayoutGraph make_layout_graph(const LayoutSizes& sizes);

/// What torch's modules make of this layer: row-major tensors, dense query, key and value, and a
/// context that is copied for the product after it. By tensor the orders that it may have.
std::vector<std::vector<std::string>> default_orders();

}  // namespace profiler
