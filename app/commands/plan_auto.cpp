#include "app/commands/console/report.h"
#include "app/commands/console/terminal.h"
#include "app/commands/console/trace_files.h"
#include "app/commands/plan_request.h"
#include "app/commands/reports/plan_report.h"
#include "app/user/settings.h"
#include "profiler/planner/search/auto_plan.h"
#include "profiler/view/plan/plan_view.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// `plan --auto`: the fastest recipe that fits, and the recipes that no other one beats.
namespace app {
namespace {

using namespace profiler;
using Json = nlohmann::json;

/// Letters for the recipes that are no preset, in the order in which they are first named.
class RecipeLetters {
public:
    /// "A"; a preset's own name.
    std::string letter_of(const std::string& recipe) {
        if (recipe.find_first_of("=@") == std::string::npos) return recipe;
        const auto known = std::ranges::find(recipes_, recipe);
        const auto index = static_cast<std::size_t>(known - recipes_.begin());
        if (known == recipes_.end()) recipes_.push_back(recipe);
        return letter_at(index);
    }
    /// "recipe A"; a preset's own name.
    std::string name_of(const std::string& recipe) {
        const std::string letter = letter_of(recipe);
        return letter == recipe ? recipe : "recipe " + letter;
    }
    void print(Output& output) const {
        if (!recipes_.empty()) output.heading("Recipes");
        for (std::size_t i = 0; i < recipes_.size(); ++i) {
            output.line(fmt::format("  {}  {}", letter_at(i), recipes_[i]));
        }
    }

private:
    /// A to Z, then A1 to Z1, ...
    static std::string letter_at(std::size_t index) {
        const char letter = static_cast<char>('A' + index % 26);
        return index < 26 ? fmt::format("{}", letter) : fmt::format("{}{}", letter, index / 26);
    }

    std::vector<std::string> recipes_;
};

/// Indented lines of at most 100 columns, as far as words allow.
void print_wrapped(Output& output, std::string_view text) {
    constexpr std::size_t kMost = 98;
    while (!text.empty()) {
        std::size_t end = text.size() > kMost ? text.rfind(' ', kMost) : text.size();
        if (end == text.npos) end = std::min(text.find(' '), text.size());
        output.line(fmt::format("  {}", text.substr(0, end)));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
}

void print_answers(Output& output, const AutoPlan& plan, RecipeLetters& letters) {
    bool is_first = true;
    for (const AutoRow& row : plan.rows) {
        if (row.sentence.empty()) continue;
        if (!std::exchange(is_first, false)) output.line();
        const PlanRow& chosen = row.row;
        const std::string title =
            fmt::format("{}, {}, {}, sequence length {}: {}", chosen.gpu.id,
                        chosen.workload.model.name, models::name_of(chosen.workload.precision),
                        chosen.workload.seq_len, letters.name_of(chosen.workload.recipe_name));
        output.line(output.styled(title, Style::kBold));
        print_wrapped(output, row.sentence);
        print_wrapped(output, row.why);
    }
}

void print_frontier(Output& output, const AutoRow& row, RecipeLetters& letters) {
    TextTable table = frontier_table(row.frontier);
    for (auto& cells : table.rows) cells.back() = letters.letter_of(cells.back());
    const bool is_whole = table.rows.size() == row.frontier.size();
    output.heading(fmt::format("{}: recipes that no other recipe beats{}", row.row.gpu.id,
                               is_whole ? ""
                                        : fmt::format(" ({} of {}; --json has all)",
                                                      table.rows.size(), row.frontier.size())));
    output.table(table);
}

/// The rows with short names for their recipes.
PlanView build_short_view(AutoPlan plan, const PlanRequest& request, RecipeLetters& letters) {
    for (AutoRow& row : plan.rows) {
        std::string& name = row.row.workload.recipe_name;
        name = letters.name_of(name);
    }
    return build_plan_view(plan, request);
}

void print_auto_plan(Output& output, const AutoPlan& plan, const PlanRequest& request) {
    RecipeLetters letters;
    const PlanView view = build_short_view(plan, request, letters);
    print_answers(output, plan, letters);
    for (const AutoRow& row : plan.rows) {
        if (!row.sentence.empty()) print_frontier(output, row, letters);
    }
    letters.print(output);
    output.line();
    print_plan(output, view);
}

Json auto_plan_json(const AutoPlan& plan, const PlanView& view) {
    Json json = plan_json(view);
    for (std::size_t i = 0; i < plan.rows.size(); ++i) {
        const AutoRow& row = plan.rows[i];
        json["rows"][i]["sentence"] = row.sentence;
        json["rows"][i]["why"] = row.why;
        json["rows"][i]["candidates"] = row.num_candidates;
        json["rows"][i]["frontier"] = json_rows(data_table(frontier_columns(), row.frontier));
    }
    return json;
}

/// One line for each point of a frontier; a row without a frontier has one line with its status and
/// reason.
std::string auto_plan_csv(const AutoPlan& plan, const PlanView& view) {
    constexpr std::array kRowColumns{"model",     "head",    "gpu",    "setup",
                                     "precision", "seq_len", "status", "reason"};
    DataTable table{.columns = {kRowColumns.begin(), kRowColumns.end()}};
    for (const auto& column : frontier_columns()) table.columns.push_back(column.id);
    for (std::size_t i = 0; i < plan.rows.size(); ++i) {
        std::vector<Cell> cells;
        for (const char* id : kRowColumns) cells.push_back(view.cell(i, id));
        DataTable frontier = data_table(frontier_columns(), plan.rows[i].frontier);
        if (frontier.rows.empty()) {  // the recipe alone
            frontier.rows.emplace_back(frontier.columns.size());
            frontier.rows.front().front() = view.cell(i, "recipe");
        }
        for (const std::vector<Cell>& point : frontier.rows) {
            std::vector<Cell>& row = table.rows.emplace_back(cells);
            row.insert(row.end(), point.begin(), point.end());
        }
    }
    return to_csv(table, Decimals::kAsJson);
}

Outcome run_auto_plan(PlanOptions options, Output& output) {
    const auto data = load_planner_data(settings_folder());
    if (!data) return failed(data.error());
    auto candidates = auto_candidates(options);
    if (!candidates) return wrong_usage(candidates.error());
    // The result is compared with the first recipe.
    RecipeList compared;
    if (options.names_recipes) compared.names = {planned_recipes(options).front()};
    options.workload.recipes = compared;
    auto grid = make_plan_request(options, *data);
    if (!grid) return wrong_usage(grid.error());
    if (const auto ok = check_result_file(options.output); !ok) return tl::unexpected(ok.error());
    const AutoRequest request{.plan = std::move(*grid), .candidates = std::move(*candidates)};
    TraceWorkers workers(traced_gpus(request.plan), TraceDetail::kForPlan,
                         torch_for(*request.plan.environment));
    auto plan = make_with_progress(workers, [&](const PlanProgress& progress) {
        return make_auto_plan(request, *data, workers.source(), progress);
    });
    if (!plan) return failed(plan.error());
    for (AutoRow& row : plan->rows) add_option_names(row.row, !request.plan.traces_each_gpu);
    const PlanView view = build_plan_view(*plan, request.plan);
    const Report report{.json = [&] { return auto_plan_json(*plan, view); },
                        .text = [&](Output& text) { print_auto_plan(text, *plan, request.plan); },
                        .csv = [&] { return auto_plan_csv(*plan, view); }};
    const auto done = emit(output, report, options.output);
    const PlanRow& row = plan->rows.front().row;
    if (!done || plan->has_ok_row()) return done;
    return fail_with(no_row_code(row), "{}", row.reason);
}

}  // namespace

Mode auto_plan_mode(PlanOptions& options, const Command& command) {
    const auto refuse = [](const std::string& option) -> std::string {
        if (option == "--ops") {
            return "--ops lists the ops of recipes that are named: leave out --auto.";
        }
        return "--auto has to trace recipes that it chooses itself, so it cannot use a folder of "
               "traces: leave out --traces.";
    };
    const auto run_auto = [&](Output& output) {
        options.names_recipes = command.is_given("--recipe") && !options.workload.recipes.is_all;
        return run_auto_plan(options, output);
    };
    return {.bit = kPlanAuto, .chosen_by = "--auto", .refuse = refuse, .run = run_auto};
}

}  // namespace app
