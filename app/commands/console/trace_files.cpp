#include "app/commands/console/trace_files.h"

#include "app/commands/console/json_values.h"
#include "app/commands/console/progress.h"
#include "app/commands/console/terminal.h"
#include "models/config/recipe.h"
#include "profiler/analysis/step/describe_run.h"
#include "profiler/formats/parts/chosen_device.h"
#include "profiler/formats/trace_formats.h"
#include "profiler/trace/file/write_file.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>

namespace app {
namespace {

namespace fs = std::filesystem;
using models::Result;
using namespace profiler;

/// Files that are named after presets, as `capture` names them, in the order of --help; then the
/// others, in the order given.
void order_by_preset(std::vector<fs::path>& files) {
    std::ranges::stable_sort(
        files, {}, [](const fs::path& file) { return models::preset_place(file.stem().string()); });
}

}  // namespace

Result<std::vector<std::string>> expand_paths(const std::vector<std::string>& paths) {
    std::vector<std::string> files;
    for (const std::string& path : paths) {
        std::error_code error;
        if (!fs::is_directory(path, error)) {
            files.push_back(path);
            continue;
        }
        auto inside = traces_in(path);
        if (!inside) return tl::unexpected(inside.error());
        if (inside->empty()) {
            return models::fail(
                "The folder {} holds no trace ({}): name a file, or capture one with \"temposcope "
                "capture\".",
                path, fmt::join(trace_extensions(), ", "));
        }
        order_by_preset(*inside);
        for (const fs::path& file : *inside) files.push_back(file.string());
    }
    return files;
}

Result<NamedTrace> open_trace(const std::string& path, const std::string& device) {
    Progress progress(std::chrono::milliseconds(500));
    ReadOptions options;
    options.progress = [&](double fraction) {
        progress.update(fraction, "reading " + path);
        return true;
    };
    auto trace = profiler::open_trace(path, options);
    if (!trace) return tl::unexpected(trace.error());
    if (!device.empty()) {
        const auto chosen = choose_device(*trace, device);
        if (!chosen) return models::fail("{} {} (--device).", path, chosen.error().message);
    }
    return NamedTrace{path, std::make_shared<const Trace>(std::move(*trace))};
}

Result<std::vector<NamedTrace>> open_traces(const std::vector<std::string>& paths,
                                            const std::string& device) {
    const auto files = expand_paths(paths);
    if (!files) return tl::unexpected(files.error());
    std::vector<NamedTrace> traces;
    for (const std::string& file : *files) {
        auto trace = open_trace(file, device);
        if (!trace) return tl::unexpected(trace.error());
        traces.push_back(std::move(*trace));
    }
    return traces;
}

Result<FolderTraces> open_folder(const std::string& folder, const std::string& device) {
    const auto files = expand_paths({folder});
    if (!files) return tl::unexpected(files.error());
    FolderTraces in_folder;
    std::vector<models::Error> errors;
    for (const std::string& file : *files) {
        auto trace = open_trace(file, device);
        if (trace) {
            in_folder.traces.push_back(std::move(*trace));
        } else {
            in_folder.left_out.push_back(file);
            errors.push_back(trace.error());
        }
    }
    if (in_folder.traces.empty()) return tl::unexpected(errors.front());
    for (const models::Error& error : errors) print_error("Left out: " + error.message);
    return in_folder;
}

bool is_one_of(const std::string& output, const std::vector<std::string>& files) {
    return std::ranges::any_of(files, [&](const std::string& file) {
        std::error_code error;
        return fs::equivalent(file, output, error) && !error;
    });
}

bool would_replace_a_trace(const std::string& output, const std::vector<std::string>& files) {
    const auto target = target_of(output);
    if (!target) return false;  // nothing can be written there
    if (belongs_to_trace(output) || belongs_to_trace(*target)) return true;
    return holds_any_trace(*target) || is_one_of(output, files);
}

bool would_replace_another_kind(const std::string& output,
                                const std::vector<std::string>& extensions) {
    const auto target = target_of(output);
    std::error_code error;
    if (!target || !fs::is_regular_file(*target, error)) return false;
    fs::path name = *target;
    if (name.extension() == ".gz") name.replace_extension();
    return std::ranges::find(extensions, name.extension().string()) == extensions.end();
}

std::string replaced_file(const std::string& output) {
    const auto target = target_of(output);
    if (!target || *target == output) return output;
    return fmt::format("{}, to which {} leads,", target->string(), output);
}

tl::expected<void, Failure> check_result_file(const std::string& output,
                                              const std::vector<std::string>& inputs) {
    if (output.empty()) return {};
    if (would_replace_a_trace(output, inputs)) {
        return fail_with(ExitCode::kUsage,
                         "{} names a trace or a part of one, which would be replaced; choose "
                         "another name.",
                         output);
    }
    const std::vector<std::string> endings{".csv", ".json", ".svg", ".pdf",
                                           ".png", ".html", ".htm"};
    if (would_replace_another_kind(output, endings)) {
        return fail_with(ExitCode::kUsage,
                         "{} is there already and is no table, chart or page; choose another "
                         "name.",
                         replaced_file(output));
    }
    if (const auto ok = check_can_write(output); !ok) return failed(ok.error());
    return {};
}

nlohmann::json describe_trace(const NamedTrace& named) {
    const Trace& trace = *named.trace;
    const Run run = trace.run();
    return {{"file", named.file},
            {"model", trace.text(run.model)},
            {"head", trace.text(run.head)},
            {"recipe", trace.text(run.recipe)},
            {"precision", trace.text(run.precision)},
            {"batch_size", known_size(run.batch_size)},
            {"seq_len", known_size(run.seq_len)},
            {"gradient_accumulation_steps", or_null(micro_batches_of(trace))},
            {"num_layers", known_size(run.num_layers)},
            {"source", name_of(run.source)},
            {"device", trace.text(run.device_name)},
            {"state", name_of(run.state)},
            {"steps", trace.steps.size()}};
}

}  // namespace app
