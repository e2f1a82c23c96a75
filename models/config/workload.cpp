#include "models/config/workload.h"

#include "models/config/names.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>

namespace models {
namespace {

nlohmann::json model_to_json(const ModelConfig& m) {
    nlohmann::json json{{"name", m.name},
                        {"family", name_of(m.family)},
                        {"hidden_dropout_p", m.hidden_dropout_p},
                        {"attention_dropout_p", m.attention_dropout_p},
                        {"layer_norm_eps", m.layer_norm_eps}};
    for (const ModelSize& size : kModelSizes) json[std::string(size.field)] = m.*size.member;
    return json;
}

template <typename Enum, std::size_t N>
Enum enum_from_json(const nlohmann::json& json, const char* key,
                    const std::array<std::string_view, N>& names) {
    const auto& word = json.at(key).get_ref<const std::string&>();
    if (const auto value = find_name<Enum>(names, word)) return *value;
    throw nlohmann::json::other_error::create(500, fmt::format("'{}' is not a {}", word, key),
                                              &json);
}

/// Refuses 1.5 and 1e300, which get<int64_t> would convert.
int64_t integer_from_json(const nlohmann::json& json, const char* key) {
    const nlohmann::json& value = json.at(key);
    constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    if (value.is_number_integer() &&
        !(value.is_number_unsigned() && value.get<uint64_t>() > kMax)) {
        return value.get<int64_t>();
    }
    throw nlohmann::json::other_error::create(500, fmt::format("{} is not a whole number", key),
                                              &json);
}

ModelConfig model_from_json(const nlohmann::json& json) {
    ModelConfig m;
    json.at("name").get_to(m.name);
    m.family = enum_from_json<Family>(json, "family", kFamilyNames);
    for (const ModelSize& size : kModelSizes) {
        const std::string field(size.field);
        if (size.is_optional && !json.contains(field)) continue;
        m.*size.member = integer_from_json(json, field.c_str());
    }
    // Files from before this field: RoBERTa alone had one token type.
    if (!json.contains("first_position") && m.type_vocab_size == 1) m.first_position = 2;
    json.at("hidden_dropout_p").get_to(m.hidden_dropout_p);
    json.at("attention_dropout_p").get_to(m.attention_dropout_p);
    json.at("layer_norm_eps").get_to(m.layer_norm_eps);
    return m;
}

}  // namespace

nlohmann::json to_json(const Workload& w) {
    return {{"model", model_to_json(w.model)},
            {"head", name_of(w.head)},
            {"recipe_name", w.recipe_name},
            {"recipe", to_text(layer_recipes_of(w))},
            {"precision", name_of(w.precision)},
            {"batch_size", w.batch_size},
            {"seq_len", w.seq_len},
            {"gradient_accumulation_steps", w.gradient_accumulation_steps},
            {"input_requires_grad", w.input_requires_grad},
            {"padding", kPaddingNames[static_cast<std::size_t>(w.padding)]},
            {"seed", w.seed},
            {"learning_rate", w.learning_rate}};
}

Result<Workload> workload_from_json(const nlohmann::json& json) {
    try {
        Workload w;
        w.model = model_from_json(json.at("model"));
        w.head = enum_from_json<Head>(json, "head", kHeadNames);
        json.at("recipe_name").get_to(w.recipe_name);
        auto layer_recipes = parse_layer_recipes(json.at("recipe").get_ref<const std::string&>());
        if (!layer_recipes) return tl::unexpected(layer_recipes.error());
        w.recipe = layer_recipes->recipe;
        w.layer_recipes = std::move(layer_recipes->layers);
        w.precision = enum_from_json<Precision>(json, "precision", kPrecisionNames);
        w.batch_size = integer_from_json(json, "batch_size");
        w.seq_len = integer_from_json(json, "seq_len");
        if (json.contains("gradient_accumulation_steps")) {  // not in files of older versions
            w.gradient_accumulation_steps = integer_from_json(json, "gradient_accumulation_steps");
        }
        w.padding = enum_from_json<Padding>(json, "padding", kPaddingNames);
        if (json.contains("input_requires_grad")) {  // likewise
            json.at("input_requires_grad").get_to(w.input_requires_grad);
        }
        w.seed = integer_from_json(json, "seed");
        json.at("learning_rate").get_to(w.learning_rate);
        return w;
    } catch (const nlohmann::json::exception& error) {
        return fail(
            "The description of the workload cannot be read ({}): it was written by another "
            "version.",
            error.what());
    }
}

Result<Workload> with_recipe(Workload workload, std::string_view recipe) {
    auto layer_recipes = parse_layer_recipes(recipe);
    if (!layer_recipes) return tl::unexpected(layer_recipes.error());
    workload = with_recipe(std::move(workload), std::move(*layer_recipes));
    workload.recipe_name = recipe;
    return workload;
}

Workload with_recipe(Workload workload, LayerRecipes layer_recipes) {
    workload.recipe_name = to_text(layer_recipes);
    workload.recipe = layer_recipes.recipe;
    workload.layer_recipes = std::move(layer_recipes.layers);
    return workload;
}

LayerRecipes layer_recipes_of(const Workload& workload) {
    return {workload.recipe, workload.layer_recipes};
}

int64_t sequences_per_step(const Workload& workload) {
    return workload.batch_size * workload.gradient_accumulation_steps;
}

double sequences_per_s(const Workload& workload, int64_t step_time_ns) {
    return static_cast<double>(sequences_per_step(workload)) * 1e9 /
           static_cast<double>(step_time_ns);
}

Workload workload_of_layer(const Workload& workload, int64_t layer) {
    Workload uniform = workload;
    uniform.recipe = recipe_of_layer(layer_recipes_of(workload), layer);
    uniform.layer_recipes.clear();
    return uniform;
}

std::vector<Recipe> recipes_in(const Workload& workload) {
    std::vector<Recipe> recipes{workload.recipe};
    for (const RecipeRange& one : workload.layer_recipes) {
        const Recipe recipe = recipe_of_layer(layer_recipes_of(workload), one.first_layer);
        if (std::find(recipes.begin(), recipes.end(), recipe) == recipes.end()) {
            recipes.push_back(recipe);
        }
    }
    return recipes;
}

bool comparable(const Workload& a, const Workload& b) {
    Workload other = b;
    other.recipe = a.recipe;
    other.layer_recipes = a.layer_recipes;
    other.recipe_name = a.recipe_name;
    return a == other;
}

}  // namespace models
