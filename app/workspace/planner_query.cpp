#include "app/workspace/planner_query.h"

#include "models/config/switches.h"
#include "profiler/analysis/run_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace app {
namespace {

using models::Family;
using models::Head;
using models::ModelConfig;

/// The text of a recipe with the query's optimizer.
std::string with_optimizer(const std::string& recipe, models::Optimizer optimizer) {
    if (optimizer == models::Recipe{}.optimizer) return recipe;
    return fmt::format("{},optimizer={}", recipe, models::name_of(optimizer));
}

std::vector<std::string> recipe_texts(const PlannerQuery& query) {
    std::vector<std::string> texts;
    for (const std::string& recipe : query.recipes) {
        texts.push_back(with_optimizer(recipe, query.optimizer));
    }
    return texts;
}

Head head_for(Family family, Head head) {
    if (head == Head::kLayers || family == Family::kSubstation) return Head::kLayers;
    if (family == Family::kGpt2) return Head::kLm;
    return head == Head::kLm ? Head::kMlm : head;
}

/// The preset whose sizes options change: the model's own, or one of its family.
const ModelConfig& preset_of(const ModelConfig& model) {
    const auto& presets = models::model_presets();
    const auto named = std::find_if(presets.begin(), presets.end(),
                                    [&](const auto& one) { return one.name == model.name; });
    if (named != presets.end()) return *named;
    const auto related = std::find_if(presets.begin(), presets.end(),
                                      [&](const auto& one) { return one.family == model.family; });
    return related != presets.end() ? *related : presets.front();
}

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

models::Workload first_workload() {
    models::Workload workload{.head = Head::kMlm};
    if (const auto model = models::find_model("bert-large")) workload.model = *model;
    return workload;
}

PlannerQuery shown_query(const PlannerQuery& query, const Selection& selection) {
    if (query.is_chosen || !selection.a) return query;
    const auto workload = profiler::workload_of(*selection.a->trace);
    if (!workload) return query;
    PlannerQuery shown = query;
    shown.workload = *workload;
    shown.optimizer = workload->recipe.optimizer;
    return shown;
}

void set_model(PlannerQuery& query, const ModelConfig& model) {
    models::Workload& workload = query.workload;
    workload.model = model;
    workload.head = head_for(model.family, workload.head);
    if (workload.seq_len > model.max_position_embeddings) {
        workload.seq_len = model.max_position_embeddings;
    }
}

PlanQuestion planner_question(const PlannerQuery& query, const std::string& gpu) {
    PlanQuestion question{.workload = query.workload,
                          .recipes = recipe_texts(query),
                          .gpus = {gpu},
                          .wants_memory_curve = true};
    question.workload.batch_size = 1;
    return question;
}

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

CaptureForm capture_form_of(const PlannerQuery& query, CaptureForm form) {
    const models::Workload& workload = query.workload;
    const ModelConfig& preset = preset_of(workload.model);
    form.model = preset.name;
    form.num_layers =
        workload.model.num_layers == preset.num_layers ? 0 : workload.model.num_layers;
    form.head = models::name_of(workload.head);
    form.precision = models::name_of(workload.precision);
    form.batch_size = workload.batch_size;
    form.seq_len = workload.seq_len;
    form.recipes = recipe_texts(query);
    return form;
}

PlannerResult build_planner(Predictor& predictor, const PlanQuestion& question) {
    const auto plan = predictor.plan(question);
    if (!plan) return {question, {}, plan.error().message};
    return {question, profiler::build_planner_view(*plan), {}};
}

}  // namespace app
