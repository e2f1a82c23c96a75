#include "profiler/analysis/advice/rule_blocks.h"
#include "profiler/analysis/advice/rules.h"
#include "profiler/analysis/step/attention_calls.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

namespace profiler {
namespace {

// Torch chooses the first backend that can run a call. On CUDA (torch 2.11, sdp_utils.cpp):
//
//     flash        16-bit types, no mask, heads of at most 256 elements
//     efficient    no grouped queries; heads of 16 bytes or a multiple of it
//     math         everything: keeps the scores of all heads, [B, A, S, S], in float32
constexpr int64_t kLongestFlashHead = 256;
constexpr int64_t kAlignmentBytes = 16;

/// What the calls in a call of the math backend tell about its arguments.
struct MathCall {
    bool has_mask = false;    // adds it to the scores; not one that is_causal made
    bool is_grouped = false;  // repeats keys and values for each head
    bool is_16_bit = false;   // widens query, key and value
    int64_t head_dim = 0;     // 0: not known
};

/// 64 of "[1, 8, 2048, 64]"; 0: not known.
int64_t last_size(std::string_view shape) {
    int64_t size = 0;
    const std::string_view last = shape.substr(shape.find_last_of(" [") + 1);
    std::from_chars(last.data(), last.data() + last.size(), size);
    return size;
}

MathCall look_into(const Evidence& evidence, Id<Op> math) {
    const Trace& trace = evidence.trace;
    MathCall call;
    bool is_causal = false;
    bool has_product = false;
    for_each_call_in(trace, math, [&](Id<Op> op) {
        const std::string_view name = evidence.name_of_op(op);
        const bool is_direct = trace.ops.get<&Op::parent>(op) == math;
        if (name == "aten::tril") is_causal = true;
        if (name == "aten::repeat_interleave") call.is_grouped = true;
        if (is_direct && (name == "aten::add_" || name == "aten::add")) call.has_mask = true;
        if (is_direct && name == "aten::matmul") has_product = true;
        if (name == "aten::_to_copy" && !has_product) call.is_16_bit = true;
        const auto edges = evidence.tensors_of(op);
        if (call.head_dim == 0 && is_direct && name == "aten::mul" && !edges.empty()) {
            const auto query = trace.op_tensors.get<&OpTensor::tensor>(edges.front());
            call.head_dim = last_size(trace.text(trace.tensors.get<&Tensor::shape>(query)));
        }
    });
    call.has_mask = call.has_mask && !is_causal;
    return call;
}

/// Why neither flash nor efficient attention took the call. `own_words` are torch's.
std::string reason_of(const MathCall& call, std::string_view own_words) {
    const bool is_long = call.head_dim > kLongestFlashHead;
    const bool is_old_gpu = own_words.find("only supports gpu architectures") != own_words.npos;
    if (call.is_grouped) {
        const std::string not_flash =
            is_old_gpu        ? "run on a GPU that is too old for flash attention"
            : call.has_mask   ? "come with a mask, which flash attention does not take"
            : !call.is_16_bit ? "are float32, and flash attention takes 16-bit types only"
            : is_long
                ? fmt::format("have heads of {} elements, and flash attention takes {} at most",
                              call.head_dim, kLongestFlashHead)
                : "";
        if (!not_flash.empty()) {
            return fmt::format("grouped queries {}; the memory-efficient kernel takes no groups",
                               not_flash);
        }
    }
    const int64_t head_bytes = call.head_dim * (call.is_16_bit ? 2 : 4);
    const bool is_for_flash = call.is_16_bit && !call.has_mask && !is_long;
    if (head_bytes % kAlignmentBytes != 0 && !is_for_flash) {
        return fmt::format(
            "heads of {} elements are no multiple of {} bytes, which the "
            "memory-efficient kernel wants",
            call.head_dim, kAlignmentBytes);
    }
    if (is_long) {
        return fmt::format("heads have {} elements, and flash attention takes {} at most",
                           call.head_dim, kLongestFlashHead);
    }
    return "the program, or a setting of torch, excludes the other backends";
}

/// On the CPU other conditions hold, and the step is not for this device.
std::vector<Finding> find_math_attention(const Evidence& evidence) {
    if (is_host(evidence.trace, evidence.device)) return {};
    Blocks blocks = live_where(
        evidence, [&](Id<Allocation> id) { return is_made_in(evidence, id, is_math_attention); });
    if (blocks.empty()) return {};
    const Id<Allocation> largest = blocks.front();
    const Id<Op> maker = op_that_made(evidence, largest);
    Id<Op> math = find_call(evidence, maker, is_math_attention);
    if (!math.valid()) {
        math = find_call(evidence, evidence.trace.ops.get<&Op::forward>(maker), is_math_attention);
    }
    std::string_view own_words = flash_refusal_of(evidence.trace, math);
    if (own_words.ends_with('.')) own_words.remove_suffix(1);
    std::string sentence = fmt::format(
        "Attention runs in torch's math backend {} and keeps the scores of all heads, {}: {}",
        place_of_block(evidence, largest), format_bytes(bytes_of(evidence, blocks)),
        reason_of(look_into(evidence, math), own_words));
    if (!own_words.empty()) sentence += fmt::format(". Torch says: {}", own_words);
    return {finding_of(evidence, std::move(blocks), std::move(sentence))};
}

constexpr std::array kAttentionRules{Rule{"math_attention", find_math_attention}};

}  // namespace

std::span<const Rule> rules_of_attention() { return kAttentionRules; }

}  // namespace profiler
