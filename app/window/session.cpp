#include "app/window/session.h"

#include "app/user/fields.h"
#include "app/window/shell.h"
#include "models/config/switches.h"
#include "models/config/validity.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace app {
namespace {

namespace fs = std::filesystem;

fs::path file_of(const DocumentPtr& document) {
    return document && document->stamp ? document->file : fs::path();
}

/// Its workload is written as JSON beside them.
void visit_fields(PlannerForm& form, const auto& visit) {
    visit("recipes", form.recipes);
    visit("optimizer", form.optimizer, models::kOptimizerSwitch.names());
}

Fields to_fields(PlannerForm form) {
    if (!form.is_chosen) return {};
    Fields fields{{"workload", models::to_json(form.workload).dump()}};
    visit_fields(form, FieldWriter(fields));
    return fields;
}

/// nullopt: the fields are missing, or of another version.
std::optional<PlannerForm> planner_form_of(const Fields& fields) {
    if (!fields.contains("workload") || !fields.contains("recipes")) return std::nullopt;
    const auto json = nlohmann::json::parse(fields.at("workload"), nullptr, false);
    const auto workload = models::workload_from_json(json);
    if (!workload || !models::validate(*workload)) return std::nullopt;
    PlannerForm form{.workload = *workload, .recipes = {}, .is_chosen = true};
    visit_fields(form, FieldReader(fields));
    std::erase_if(form.recipes, [](const auto& one) { return !models::parse_recipe(one); });
    return form;
}

}  // namespace

Session session_of(const Workspace& workspace) {
    Session session{.a = file_of(workspace.selection().a),
                    .b = file_of(workspace.selection().b),
                    .gpu = workspace.queries().plan.is_chosen ? workspace.queries().plan.gpu : "",
                    .planner = to_fields(workspace.queries().planner)};
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
    if (is_known) events.queries.plan = GpuForm{session.gpu, /*is_chosen=*/true};
    events.queries.planner = planner_form_of(session.planner);
    workspace.apply(events);
}

models::Result<void> run_window(const WindowOptions& options) {
    const auto open_files = [&](Ui& ui) {
        if (options.files.empty()) {
            reopen_traces(ui.workspace, ui.settings.session);
        } else {
            ui.workspace.open(options.files);
        }
    };
    const auto shell =
        Shell::open({.settings_folder = settings_folder(), .before_window = open_files});
    if (!shell) return tl::unexpected(shell.error());
    (*shell)->run();
    return {};
}

}  // namespace app
