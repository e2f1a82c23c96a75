#include "app/user/workload_jobs.h"

#include "models/config/model_file.h"
#include "models/config/names.h"
#include "models/config/validity.h"
#include "profiler/trace/file/write_file.h"
#include "profiler/trace/units.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

namespace app {
namespace {

using models::fail;
using models::fail_fields;
using models::Result;
using models::Workload;

Result<models::ModelConfig> make_model(const StepForm& form) {
    auto model = models::model_from(form.model);
    if (!model) return model;
    model->num_layers = form.layers.value_or(model->num_layers);
    model->num_heads = form.heads.value_or(model->num_heads);
    model->vocab_size = form.vocab.value_or(model->vocab_size);
    if (form.positions) {
        const int64_t most = int64_t{1} << 32;  // validate() refuses it; sums stay below 2^63
        model->max_position_embeddings = std::min(*form.positions, most) + model->first_position;
    }
    if (form.hidden) {
        model->hidden_size = *form.hidden;
        // Sizes that are too large are refused later; avoid an overflow before that.
        model->intermediate_size = 4 * std::min(*form.hidden, int64_t{1} << 32);
    }
    model->intermediate_size = form.intermediate.value_or(model->intermediate_size);
    model->hidden_dropout_p = form.dropout_p.value_or(model->hidden_dropout_p);
    model->attention_dropout_p =
        form.attention_dropout_p.value_or(form.dropout_p.value_or(model->attention_dropout_p));
    if (!form.hidden_dropout) model->hidden_dropout_p = 0;
    if (!form.attention_dropout) model->attention_dropout_p = 0;
    return model;
}

/// The GPU of "predict:GPU"; empty for a measurement.
Result<std::string> predicted_gpu(const StepForm& form) {
    const std::string& device = form.device;
    if (device == "auto" || device == "cpu" || device == "cuda") return std::string();
    if (!device.starts_with(kPredict)) {
        return fail("'{}' is not a device: choose auto, cpu, cuda or predict:GPU.", device);
    }
    if (!form.memory_limit.empty()) {
        return fail_fields({"memory_limit_bytes"},
                           "A memory limit is for measurements, and a predicted GPU has its own "
                           "memory: leave the limit out.");
    }
    if (device.size() == kPredict.size()) {
        return fail_fields({"device"},
                           "The device 'predict:' names no GPU: write one after the colon, such as "
                           "predict:t4.");
    }
    return device.substr(kPredict.size());
}

Result<void> check_counts(const StepForm& form) {
    if (form.steps < 1) {
        return fail_fields({"steps"}, "The number of steps is {}: record at least 1 step.",
                           form.steps);
    }
    if (form.warmup_steps < 0) {
        return fail_fields({"warmup_steps"},
                           "The number of warm-up steps is {}: it must not be negative.",
                           form.warmup_steps);
    }
    return {};
}

/// The name of a recipe is a valid file name.
std::string path_of(const StepForm& form, const std::string& recipe) {
    if (form.output.ends_with(".tscope")) return form.output;
    return (std::filesystem::path(form.output) / (recipe + ".tscope")).string();
}

/// A capture takes long, so nothing that an earlier one has written is lost unasked.
Result<void> check_overwriting(const StepForm& form, const JobList& list) {
    if (form.overwrites) return {};
    for (const Job& job : list.jobs) {
        std::error_code error;
        for (const std::string& path : {job.path, job.path + ".partial"}) {
            if (!std::filesystem::exists(path, error)) continue;
            return fail_fields({"overwrites"},
                               "{} exists already: choose another place for the traces, or say "
                               "that it may be replaced.",
                               path);
        }
    }
    return {};
}

Result<void> check_output(const StepForm& form, std::size_t recipe_count) {
    std::error_code error;
    if (form.output.empty()) {
        return fail_fields({"output_path"},
                           "There is no name for the traces: name a folder, or a file that ends in "
                           ".tscope.");
    }
    if (!form.output.ends_with(".tscope")) return {};
    if (recipe_count > 1) {
        return fail_fields({"output_path", "recipe"},
                           "{} recipes cannot be written into the one file {}: name a folder, or "
                           "one recipe.",
                           recipe_count, form.output);
    }
    if (std::filesystem::is_directory(form.output, error)) {
        return fail(
            "{} is a folder, but its name ends in .tscope like a file: choose another name.",
            form.output);
    }
    return {};
}

/// Whether the device that was asked for can run the workload, as far as this side knows: only the
/// worker knows the generation of its GPU.
Result<void> check_device(const Workload& workload, const JobList& list) {
    if (!list.gpu.empty()) return models::validate(workload);
    if (list.device == "cpu") return models::validate_for_cpu(workload);
    constexpr models::ComputeCapability kNewerThanAny{1000, 0};
    auto on_gpu = models::validate_for_cuda(workload, kNewerThanAny);
    if (list.device == "cuda" || on_gpu || !models::validate_for_cpu(workload)) return on_gpu;
    return {};  // "auto" may become the CPU
}

/// Adds a job for each recipe, possible or not.
Result<void> add_jobs(const StepForm& form, JobList& list) {
    const auto base = make_workload(form);
    if (!base) return tl::unexpected(base.error());
    if (auto ok = check_output(form, form.recipes.names.size()); !ok) return ok;
    for (const std::string& name : form.recipes.names) {
        auto workload = models::with_recipe(*base, name);
        if (!workload) return tl::unexpected(workload.error());
        Job job{std::move(*workload), path_of(form, name)};
        const bool repeats = std::ranges::any_of(
            list.jobs, [&](const Job& other) { return other.path == job.path; });
        if (repeats) return fail("The recipe '{}' is named twice: name each once.", name);
        list.jobs.push_back(std::move(job));
    }
    return {};
}

}  // namespace

Result<Workload> make_workload(const StepForm& form) {
    Workload workload;
    auto model = make_model(form);
    if (!model) return tl::unexpected(model.error());
    workload.model = std::move(*model);
    const auto head = models::parse_head(form.head);
    if (!head) return tl::unexpected(head.error());
    workload.head = *head;
    const auto precision = models::parse_precision(form.precision);
    if (!precision) return tl::unexpected(precision.error());
    workload.precision = *precision;
    const auto padding =
        models::parse_name<models::Padding>(models::kPaddingNames, form.padding, "padding");
    if (!padding) return tl::unexpected(padding.error());
    workload.padding = *padding;
    workload.batch_size = form.batch_size;
    workload.seq_len = form.seq_len;
    workload.gradient_accumulation_steps = form.gradient_accumulation_steps;
    workload.seed = form.seed;
    return workload;
}

std::vector<std::string> split_recipes(std::string_view text) {
    std::vector<std::string> recipes;
    while (true) {
        const std::size_t comma = text.find(',');
        const std::string item(text.substr(0, comma));
        // "original+gelu=in_place@3" begins a recipe; "masks=bit+gelu=in_place@3" continues one.
        const std::size_t equals = item.find('=');
        const bool is_switch = equals != std::string::npos && equals < item.find('+');
        const bool continues = is_switch && !recipes.empty();
        if (continues) {
            recipes.back() += "," + item;
        } else {
            recipes.push_back(item);
        }
        if (comma == std::string_view::npos) return recipes;
        text.remove_prefix(comma + 1);
    }
}

RecipeList recipes_of(std::string_view text) {
    if (text != "all") return {split_recipes(text)};
    RecipeList all{.names = {}, .is_all = true};
    for (const models::RecipePreset& preset : models::recipe_presets()) {
        all.names.emplace_back(preset.name);
    }
    return all;
}

std::string measured_device(const std::string& device) {
    if (device != "auto") return device;
    std::error_code error;
    const bool has_driver = std::filesystem::exists("/dev/nvidiactl", error) ||
                            std::filesystem::exists("/dev/dxg", error);
    return has_driver ? "auto" : "cpu";
}

Result<void> leave_out(JobList& list, const std::function<Result<void>(const Job&)>& check) {
    std::vector<Job> possible;
    for (Job& job : list.jobs) {
        const auto ok = check(job);
        if (!ok && !list.is_all) return ok;
        if (ok) {
            possible.push_back(std::move(job));
        } else {
            list.left_out.push_back({job.workload.recipe_name, ok.error()});
        }
    }
    list.jobs = std::move(possible);
    if (list.jobs.empty()) return tl::unexpected(list.left_out.front().why);
    return {};
}

Result<JobList> make_jobs(const StepForm& form) {
    if (form.recipes.names.empty()) return fail("There is no recipe to run: choose at least one.");
    const auto gpu = predicted_gpu(form);
    if (!gpu) return tl::unexpected(gpu.error());
    if (auto ok = check_counts(form); !ok) return tl::unexpected(ok.error());
    JobList list{
        .is_all = form.recipes.is_all, .gpu = *gpu, .device = measured_device(form.device)};
    if (auto ok = add_jobs(form, list); !ok) return tl::unexpected(ok.error());
    const auto ok =
        leave_out(list, [&](const Job& job) { return check_device(job.workload, list); });
    if (!ok) return tl::unexpected(ok.error());
    if (!form.memory_limit.empty()) {
        const auto limit = profiler::parse_bytes(form.memory_limit);
        if (!limit) return tl::unexpected(limit.error());
        if (*limit == 0) {
            return fail_fields({"memory_limit_bytes"},
                               "The memory limit is 0: give the memory to use, such as 16GiB.");
        }
        list.memory_limit_bytes = *limit;
    }
    list.folder =
        form.output.ends_with(".tscope") ? profiler::folder_of(form.output).string() : form.output;
    if (const auto free = check_overwriting(form, list); !free) {
        return tl::unexpected(free.error());
    }
    return list;
}

}  // namespace app
