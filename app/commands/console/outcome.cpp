#include "app/commands/console/outcome.h"

#include <algorithm>
#include <array>

namespace app {
namespace {

/// Field and option. A field that is not here has no option.
constexpr std::array<std::pair<std::string_view, std::string_view>, 26> kOptions{{
    {"model", "--model"},
    {"num_layers", "--layers"},
    {"hidden_size", "--hidden"},
    {"num_heads", "--heads"},
    {"intermediate_size", "--intermediate"},
    {"vocab_size", "--vocab"},
    {"hidden_dropout_p", "--dropout"},
    {"dropout_p", "--dropout"},
    {"attention_dropout_p", "--attention-dropout"},
    {"head", "--head"},
    {"recipe", "--recipe"},
    {"batch_size", "--batch"},
    {"seq_len", "--seq"},
    {"gradient_accumulation_steps", "--accumulate"},
    {"precision", "--precision"},
    {"padding", "--padding"},
    {"seed", "--seed"},
    {"device", "--device"},
    {"gpu", "--gpu"},
    {"setup", "--setup"},
    {"zero_stage", "--zero"},
    {"warmup_steps", "--warmup"},
    {"steps", "--steps"},
    {"memory_limit_bytes", "--memory-limit"},
    {"output_path", "-o"},
    {"overwrites", "--overwrite"},
}};

}  // namespace

std::string with_options(std::string sentence, const std::vector<std::string_view>& fields) {
    std::string options;
    for (const std::string_view field : fields) {
        const auto row =
            std::ranges::find_if(kOptions, [&](const auto& one) { return one.first == field; });
        if (row == kOptions.end()) continue;
        options += options.empty() ? " (" : ", ";
        options += row->second;
    }
    if (options.empty()) return sentence;
    const bool has_stop = sentence.ends_with('.');
    if (has_stop) sentence.pop_back();
    return sentence + options + (has_stop ? ")." : ")");
}

}  // namespace app
