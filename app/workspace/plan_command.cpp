#include "app/workspace/planner_query.h"

#include <fmt/format.h>

// The command line of planner_query.h: the one place of the window that names options.
namespace app {
namespace {

using models::ModelConfig;

std::string model_options(const ModelConfig& model) {
    const ModelConfig& preset = preset_of(model);
    std::string text = fmt::format(" --model {}", preset.name);
    const auto add = [&](const char* option, auto value, auto usual) {
        if (value != usual) text += fmt::format(" {} {}", option, value);
    };
    add("--layers", model.num_layers, preset.num_layers);
    add("--hidden", model.hidden_size, preset.hidden_size);
    add("--heads", model.num_heads, preset.num_heads);
    add("--intermediate", model.intermediate_size, preset.intermediate_size);
    add("--vocab", model.vocab_size, preset.vocab_size);
    add("--dropout", model.hidden_dropout_p, preset.hidden_dropout_p);
    // --dropout sets both, unless the second is given.
    const double usual = model.hidden_dropout_p == preset.hidden_dropout_p
                             ? preset.attention_dropout_p
                             : model.hidden_dropout_p;
    add("--attention-dropout", model.attention_dropout_p, usual);
    return text;
}

/// In a list, switches belong to the name before them, so each recipe begins with a name.
std::string in_list(const std::string& recipe) {
    const bool has_name = recipe.substr(0, recipe.find(',')).find('=') == std::string::npos;
    return has_name ? recipe : "original," + recipe;
}

}  // namespace

std::string plan_command(const PlannerQuery& query, const std::string& gpu) {
    const models::Workload& workload = query.workload;
    std::vector<std::string> recipes;
    for (const std::string& recipe : recipe_texts(query)) recipes.push_back(in_list(recipe));
    std::string text = "temposcope plan" + model_options(workload.model);
    text += fmt::format(" --head {} --precision {} --seq {}", models::name_of(workload.head),
                        models::name_of(workload.precision), workload.seq_len);
    if (workload.padding != models::Padding::kNone) text += " --padding random";
    return text + fmt::format(" --recipe {} --gpu {} --batch {}", fmt::join(recipes, ","), gpu,
                              workload.batch_size);
}

}  // namespace app
