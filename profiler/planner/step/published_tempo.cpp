#include "profiler/planner/step/published_tempo.h"

#include <initializer_list>

namespace profiler {
namespace {

struct Pass {
    KernelKind kernel;
    int64_t bytes_per_word;
};

void append_passes(std::initializer_list<Pass> passes, const OpWork& work, int64_t words,
                   std::vector<OpWork>& ops) {
    for (const Pass& pass : passes) {
        OpWork one = work;
        one.work.kernel = pass.kernel;
        one.work.moved_bytes = pass.bytes_per_word * words;
        one.work.is_own = false;  // its passes were torch's kernels
        ops.push_back(one);
    }
}

}  // namespace

void append_published(std::string_view op_name, const OpWork& work, const PublishedOp& op,
                      std::vector<OpWork>& ops) {
    using enum KernelKind;
    const int64_t e = op.word_bytes;
    const auto passes = [&](std::initializer_list<Pass> list) {
        append_passes(list, work, op.words, ops);
    };
    if (op_name == "tempo::layer_norm_backward") {
        passes({{kElementWise, e + 4}, {kLayerNorm, e + 4}, {kElementWise, 2 * e + 4}});
        passes({{kColumnReduction, e + 4}});
    } else if (op_name == "tempo::softmax_dropout_forward") {
        passes({{kElementWise, 2 * e}});
        if (op.has_mask) passes({{kElementWise, 2 * e}});
        passes({{kSoftmax, 2 * e}, {kElementWise, 2 * e + 1}});
    } else if (op_name == "tempo::softmax_dropout_backward_") {
        passes({{kElementWise, 2 * e + 1}, {kSoftmaxBackward, 3 * e}, {kElementWise, 2 * e}});
    } else {
        ops.push_back(work);
        if (op_name == "tempo::gelu_backward") ops.back().work.kernel = kPublishedGeluBackward;
    }
}

}  // namespace profiler
