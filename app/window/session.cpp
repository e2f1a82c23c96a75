#include "app/window/session.h"

#include "app/workspace/workspace.h"
#include "models/config/switches.h"
#include "models/config/validity.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <sstream>

namespace app {
namespace {

namespace fs = std::filesystem;

fs::path file_of(const DocumentPtr& document) {
    return document && document->stamp ? document->file : fs::path();
}

std::map<std::string, std::string> to_fields(const PlannerQuery& query) {
    if (!query.is_chosen) return {};
    return {{"workload", models::to_json(query.workload).dump()},
            {"recipes", fmt::format("{}", fmt::join(query.recipes, " "))},
            {"optimizer", std::string(models::name_of(query.optimizer))}};
}

/// nullopt: the fields are missing, or of another version.
std::optional<PlannerQuery> planner_query_of(const std::map<std::string, std::string>& fields) {
    if (!fields.contains("workload") || !fields.contains("recipes")) return std::nullopt;
    const auto json = nlohmann::json::parse(fields.at("workload"), nullptr, false);
    const auto workload = models::workload_from_json(json);
    if (!workload || !models::validate(*workload)) return std::nullopt;
    PlannerQuery query{.workload = *workload, .recipes = {}, .is_chosen = true};
    std::istringstream words(fields.at("recipes"));
    for (std::string recipe; words >> recipe;) {
        if (models::parse_recipe(recipe)) query.recipes.push_back(recipe);
    }
    if (const auto optimizer = fields.find("optimizer"); optimizer != fields.end()) {
        const auto recipe = models::parse_recipe("original,optimizer=" + optimizer->second);
        if (recipe) query.optimizer = recipe->optimizer;
    }
    return query;
}

}  // namespace

Session session_of(const Workspace& workspace) {
    Session session{.a = file_of(workspace.selection().a),
                    .b = file_of(workspace.selection().b),
                    .gpu = workspace.plan_choice().is_chosen ? workspace.plan_choice().gpu : "",
                    .planner = to_fields(workspace.planner_query())};
    for (const DocumentPtr& document : workspace.documents()) {
        if (fs::path file = file_of(document); !file.empty()) {
            session.files.push_back(std::move(file));
        }
    }
    return session;
}

void reopen_traces(Workspace& workspace, const Session& session) {
    workspace.choose_when_read(session.a, session.b);
    workspace.open(session.files);
}

void restore_choices(Workspace& workspace, const Session& session) {
    PanelEvents events;
    const auto& gpus = workspace.gpus();
    const bool is_known = std::any_of(
        gpus.begin(), gpus.end(), [&](const profiler::Gpu& gpu) { return gpu.id == session.gpu; });
    if (is_known) events.plan_choice = PlanChoice{session.gpu, /*is_chosen=*/true};
    events.planner_query = planner_query_of(session.planner);
    workspace.apply(events);
}

}  // namespace app
