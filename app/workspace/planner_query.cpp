#include "app/workspace/planner_query.h"

#include "models/config/layer_recipes.h"
#include "models/config/switches.h"

#include <fmt/format.h>

#include <algorithm>

namespace app {
namespace {

using models::Head;
using models::ModelConfig;

/// The head, or the model's usual one if it does not have that.
Head head_for(const ModelConfig& model, Head head) {
    const auto heads = model.traits().heads;
    if (head == Head::kLayers || heads.empty()) return Head::kLayers;
    return std::find(heads.begin(), heads.end(), head) != heads.end() ? head : heads.front();
}

}  // namespace

std::string canonical_recipe(const std::string& recipe) {
    const auto parsed = models::parse_layer_recipes(recipe);
    return parsed ? models::to_text(*parsed) : recipe;
}

std::vector<std::string> recipe_texts(const PlannerQuery& query) {
    std::vector<std::string> texts = query.recipes;
    if (query.optimizer == models::Recipe{}.optimizer) return texts;
    for (std::string& text : texts) {  // a preset keeps its name
        text += fmt::format(",optimizer={}", models::name_of(query.optimizer));
    }
    return texts;
}

size_t index_of_recipe(const PlannerQuery& query, const std::string& text) {
    const std::vector<std::string> texts = recipe_texts(query);
    const auto found = std::find(texts.begin(), texts.end(), text);
    return found != texts.end() ? static_cast<size_t>(found - texts.begin()) : 0;
}

size_t switch_recipe(std::vector<std::string>& recipes, size_t from, const std::string& to) {
    const auto place = [&](auto at) { return static_cast<size_t>(at - recipes.begin()); };
    const auto old = recipes.begin() + static_cast<std::ptrdiff_t>(from);
    const bool is_own = !models::is_preset(*old);
    const auto known = std::find_if(recipes.begin(), recipes.end(), [&](const std::string& one) {
        return canonical_recipe(one) == canonical_recipe(to);
    });
    if (known == recipes.end()) {
        if (!is_own) return place(recipes.insert(old + 1, to));
        *old = to;
        return from;
    }
    const size_t at = place(known);
    if (!is_own || at == from) return at;
    recipes.erase(old);
    return at < from ? at : at - 1;
}

bool is_step_of(const PlannerQuery& query, const Document& document) {
    if (!document.step) return false;
    models::Workload step = *document.step;
    step.batch_size = query.workload.batch_size;
    step.gradient_accumulation_steps = query.workload.gradient_accumulation_steps;
    return models::comparable(step, query.workload);
}

const ModelConfig& preset_of(const ModelConfig& model) {
    const auto& presets = models::model_presets();
    const auto named = std::find_if(presets.begin(), presets.end(),
                                    [&](const auto& one) { return one.name == model.name; });
    if (named != presets.end()) return *named;
    const auto related = std::find_if(presets.begin(), presets.end(),
                                      [&](const auto& one) { return one.family == model.family; });
    return related != presets.end() ? *related : presets.front();
}

models::Workload first_workload() {
    models::Workload workload{.head = Head::kMlm};
    if (const auto model = models::find_model("bert-large")) workload.model = *model;
    return workload;
}

PlannerQuery shown_query(const PlannerQuery& query, const Selection& selection) {
    if (query.is_chosen || !selection.a) return query;
    const auto& workload = selection.a->step;
    if (!workload) return query;
    PlannerQuery shown = query;
    shown.workload = *workload;
    shown.workload.gradient_accumulation_steps = 1;  // the panels speak of one batch
    shown.optimizer = workload->recipe.optimizer;
    return shown;
}

void set_model(PlannerQuery& query, const ModelConfig& model) {
    models::Workload& workload = query.workload;
    workload.model = model;
    workload.head = head_for(model, workload.head);
    if (workload.seq_len > model.max_position_embeddings) {
        workload.seq_len = model.max_position_embeddings;
    }
}

std::string step_label(const PlannerQuery& query, const std::string& gpu) {
    const models::Workload& workload = query.workload;
    const ModelConfig& model = workload.model;
    std::string text = fmt::format("{}, {} layers", preset_of(model).name, model.num_layers);
    if (model.hidden_size != preset_of(model).hidden_size) {
        text += fmt::format(", hidden {}", model.hidden_size);
    }
    text += fmt::format(", S {}, {}", workload.seq_len, models::name_of(workload.precision));
    if (query.optimizer != models::Recipe{}.optimizer) {
        text += fmt::format(", {}", models::name_of(query.optimizer));
    }
    return fmt::format("{}, {}", text, gpu);
}

void set_hidden_size(ModelConfig& model, int64_t num_heads) {
    const ModelConfig& preset = preset_of(model);
    const int64_t head_dim = std::max<int64_t>(1, preset.head_dim());
    model.num_heads = std::max<int64_t>(1, num_heads);
    model.hidden_size = head_dim * model.num_heads;
    const bool usual = model.hidden_size == preset.hidden_size;
    model.intermediate_size = usual ? preset.intermediate_size : 4 * model.hidden_size;
}

PlanQuestion planner_question(const PlannerQuery& query, const std::string& gpu) {
    PlanQuestion question{.workload = query.workload,
                          .recipes = recipe_texts(query),
                          .gpu = gpu,
                          .wants_memory_curve = true};
    question.workload.batch_size = 1;
    return question;
}

StepForm capture_form_of(const PlannerQuery& query, StepForm form) {
    const models::Workload& workload = query.workload;
    const ModelConfig& model = workload.model;
    const ModelConfig& preset = preset_of(model);
    const auto other_than = [](int64_t preset_size, int64_t size) {
        return size == preset_size ? std::nullopt : std::optional(size);
    };
    form.device = StepForm().device;
    form.model = preset.name;
    form.layers = other_than(preset.num_layers, model.num_layers);
    form.hidden = other_than(preset.hidden_size, model.hidden_size);
    form.heads = other_than(preset.num_heads, model.num_heads);
    form.intermediate = other_than(preset.intermediate_size, model.intermediate_size);
    form.vocab = other_than(preset.vocab_size, model.vocab_size);
    form.attention_dropout = model.attention_dropout_p > 0;
    form.hidden_dropout = model.hidden_dropout_p > 0;
    set_random_lengths(form, workload.padding == models::Padding::kRandom);
    form.head = models::name_of(workload.head);
    form.precision = models::name_of(workload.precision);
    form.batch_size = workload.batch_size;
    form.seq_len = workload.seq_len;
    form.recipes.names = recipe_texts(query);
    return form;
}

PlannerResult build_planner(Predictor& predictor, const PlanQuestion& question,
                            const Predictor::Report& report) {
    const auto plan = predictor.plan(question, report);
    if (!plan) return {question, {}, plan.error().message};
    return {question, profiler::build_planner_view(*plan), {}};
}

}  // namespace app
