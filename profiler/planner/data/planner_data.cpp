#include "profiler/planner/data/planner_data.h"

#include "embedded/temposcope_planner_data.h"
#include "models/config/names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <system_error>

namespace profiler {
namespace {

template <typename T>
T value_of(models::Result<T> result) {
    if (!result) throw std::logic_error(result.error().message);
    return std::move(*result);
}

/// The text of a file; empty if there is no such file. A dangling link, a folder or a pipe is an
/// error.
models::Result<std::optional<std::string>> read_if_there(const std::filesystem::path& path) {
    std::error_code error;
    if (!std::filesystem::exists(std::filesystem::symlink_status(path, error))) return std::nullopt;
    if (!std::filesystem::is_regular_file(path, error)) {
        return models::fail("{} is not a regular file: replace it by one, or remove it.",
                            path.string());
    }
    std::ifstream stream(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(stream), {}};
    if (!stream) return models::fail("{} cannot be read: check its permissions.", path.string());
    return text;
}

/// Adds `more` to `rows`. A row with a known id replaces the old row.
template <typename Row>
void merge(std::vector<Row>& rows, std::vector<Row> more) {
    for (Row& row : more) {
        const auto same = std::ranges::find(rows, row.id, &Row::id);
        if (same == rows.end()) {
            rows.push_back(std::move(row));
        } else {
            *same = std::move(row);
        }
    }
}

/// If the file exists, reads it with `parse(text, file)` and passes the result to `add`.
template <typename Parse, typename Add>
models::Result<void> add_file(const std::filesystem::path& path, const Parse& parse,
                              const Add& add) {
    const auto text = read_if_there(path);
    if (!text) return tl::unexpected(text.error());
    if (!*text) return {};
    auto parsed = parse(**text, path.string());
    if (!parsed) return tl::unexpected(parsed.error());
    add(std::move(*parsed));
    return {};
}

/// Checks that names in one data file are defined in another.
class NameCheck {
public:
    explicit NameCheck(const PlannerData& data) : data_(data) {
        for (const Gpu& gpu : data.gpus) gpus_.push_back(gpu.id);
        for (const SoftwareEnvironment& environment : data.environments)
            environments_.push_back(environment.id);
        optimizers_.push_back("recipe");
        for (const OptimizerRow& row : data.calibration.optimizers) {
            optimizers_.push_back(row.implementation);
        }
        kernel_sets_.push_back("torch");
        for (const EfficiencyRow& row : data.calibration.efficiencies) {
            if (!row.kernel_set.empty()) kernel_sets_.push_back(row.kernel_set);
        }
    }

    /// The first unknown name as a sentence; empty if all are known.
    std::optional<std::string> problem() {
        for (const SoftwareEnvironment& environment : data_.environments) {
            const std::string place = "setups.json, " + environment.id;
            for (const std::string& name : {environment.optimizer, environment.optimizer_master,
                                            environment.optimizer_half}) {
                check(place, "an optimizer of the calibration", name, optimizers_);
            }
            check(place, "a kernel set of the calibration", environment.kernel_set, kernel_sets_);
            check(place, "a software environment", environment.older_gpus, environments_);
            check_gpus(place, environment.context);
        }
        const Calibration& calibration = data_.calibration;
        check_gpus("calibration.json, matmul", calibration.matmul);
        check_gpus("calibration.json, bandwidth", calibration.bandwidth);
        check_gpus("calibration.json, l2", calibration.l2);
        check_gpus("calibration.json, power", calibration.power);
        check_gpus("calibration.json, tile_costs", calibration.tile_costs);
        check_gpus("calibration.json, accuracy", calibration.accuracy);
        check_gpus("calibration.json, launch", calibration.launch);
        check_gpus("calibration.json, efficiencies", calibration.efficiencies);
        check_gpus("calibration.json, host_links", calibration.host_links);
        check_gpus("calibration.json, links", calibration.links);
        check_gpus("calibration.json, networks", calibration.networks);
        return problem_;
    }

private:
    void check(std::string_view place, std::string_view what, std::string_view name,
               const std::vector<std::string_view>& known) {
        if (problem_ || name.empty() || std::ranges::find(known, name) != known.end()) return;
        problem_ = fmt::format("{}: '{}' is not {}: did you mean {}?", place, name, what,
                               fmt::join(models::nearest_names(name, known), ", "));
    }

    template <typename Row>
    void check_gpus(std::string_view place, const std::vector<Row>& rows) {
        for (const Row& row : rows) {
            for (const std::string& gpu : row.gpus) check(place, "a known GPU", gpu, gpus_);
        }
    }

    const PlannerData& data_;
    std::vector<std::string_view> gpus_, environments_, optimizers_, kernel_sets_;
    std::optional<std::string> problem_;
};

}  // namespace

const PlannerData& built_in_planner_data() {
    static const PlannerData data{
        value_of(parse_gpus(embedded::gpus(), "gpus.json")),
        value_of(parse_environments(embedded::setups(), "setups.json")),
        value_of(parse_calibration(embedded::calibration(), "calibration.json"))};
    return data;
}

models::Result<PlannerData> load_planner_data(const std::filesystem::path& folder) {
    PlannerData data = built_in_planner_data();
    if (folder.empty()) return data;
    auto ok = add_file(folder / "gpus.json", parse_gpus,
                       [&](std::vector<Gpu> gpus) { merge(data.gpus, std::move(gpus)); });
    if (!ok) return tl::unexpected(ok.error());
    ok = add_file(folder / "setups.json", parse_environments,
                  [&](std::vector<SoftwareEnvironment> environments) {
                      merge(data.environments, std::move(environments));
                  });
    if (!ok) return tl::unexpected(ok.error());
    ok = add_file(
        folder / "calibration.json",
        [&](std::string_view text, const std::string& file) {
            return extend_calibration(data.calibration, text, file);
        },
        [&](Calibration calibration) { data.calibration = std::move(calibration); });
    if (!ok) return tl::unexpected(ok.error());
    if (const auto problem = NameCheck(data).problem()) {
        return models::fail("{} Correct or remove that row in {}.", *problem, folder.string());
    }
    return data;
}

}  // namespace profiler
