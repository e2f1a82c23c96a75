#include "profiler/capture/torch_adapter/flash_refusal.h"

#include "profiler/capture/torch_adapter/op_call.h"

#include <ATen/native/transformers/cuda/sdp_utils.h>
#include <c10/util/Exception.h>

#include <optional>
#include <string_view>

namespace profiler {
namespace {

/// Gathers what torch would print. Each sentence counts once.
class Sentences final : public c10::WarningHandler {
public:
    void process(const c10::Warning& warning) override {
        const std::string_view sentence = warning.msg();
        if (sentence.empty() || text_.find(sentence) != std::string::npos) return;
        if (!text_.empty()) text_ += ' ';
        text_ += sentence;
    }
    const std::string& text() const { return text_; }

private:
    std::string text_;
};

std::optional<sdp::sdp_params> params_of(c10::ArrayRef<const c10::IValue> arguments) {
    enum Argument : std::size_t {
        kQuery,
        kKey,
        kValue,
        kMask,
        kDropout,
        kIsCausal,
        kScale,
        kGroups
    };
    if (arguments.size() <= kGroups) return std::nullopt;
    for (const Argument tensor : {kQuery, kKey, kValue}) {
        if (!arguments[tensor].isTensor()) return std::nullopt;
        const at::Tensor& given = arguments[tensor].toTensor();
        if (!given.defined() || !given.is_cuda() || !has_shape(given)) return std::nullopt;
    }
    const bool is_known = arguments[kDropout].isDouble() && arguments[kIsCausal].isBool() &&
                          arguments[kGroups].isBool();
    if (!is_known) return std::nullopt;
    std::optional<at::Tensor> mask;
    if (arguments[kMask].isTensor() && arguments[kMask].toTensor().defined()) {
        mask = arguments[kMask].toTensor();
    }
    return sdp::sdp_params{arguments[kQuery].toTensor(),   arguments[kKey].toTensor(),
                           arguments[kValue].toTensor(),   mask,
                           arguments[kDropout].toDouble(), arguments[kIsCausal].toBool(),
                           arguments[kGroups].toBool()};
}

}  // namespace

std::string flash_refusal(c10::ArrayRef<const c10::IValue> arguments) {
    const auto params = params_of(arguments);
    if (!params) return {};
    Sentences sentences;
    const c10::WarningUtils::WarningHandlerGuard guard(&sentences);
    try {
        if (sdp::can_use_flash_attention(*params, /*debug=*/true)) return {};
        sdp::can_use_mem_efficient_attention(*params, /*debug=*/true);
    } catch (const c10::Error&) {  // of a wrapper class that refuses the question
        return {};
    }
    return sentences.text();
}

}  // namespace profiler
