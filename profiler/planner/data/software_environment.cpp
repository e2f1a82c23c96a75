#include "profiler/planner/data/software_environment.h"

#include "models/config/names.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace profiler {
namespace {

ContextRow read_context(FieldReader& reader) {
    return {.gpus = reader.optional_texts("gpus"),
            .bytes = reader.row_figure("mib", kMiBBytes, {.most = 1e9})};
}

void read_software(FieldReader& reader, SoftwareEnvironment& environment) {
    environment.torch = reader.text("torch");
    environment.cuda = reader.text("cuda");
    environment.min_compute_capability = reader.capability("min_compute_capability");
    environment.older_gpus = reader.optional_text("older_cards").value_or("");
    environment.kernel_set = reader.text("kernel_set");
    environment.gradients = reader.name<Gradients>("gradients", kGradientsNames);
    environment.optimizer = reader.text("optimizer");
    environment.optimizer_master = reader.optional_text("optimizer_master").value_or("");
    environment.optimizer_half = reader.optional_text("optimizer_half").value_or("");
    environment.clips_gradients = reader.boolean("clips_gradients");
}

SoftwareEnvironment read_environment(FieldReader& reader) {
    SoftwareEnvironment environment{.id = reader.text("id"), .name = reader.text("name")};
    read_software(reader, environment);
    reader.add_rows("context", environment.context, read_context);
    if (environment.context.empty() || !environment.context.front().gpus.empty()) {
        reader.fail("the first row of 'context' must hold for any GPU");
    }
    environment.ddp_buckets = reader.name<DdpBuckets>("ddp_buckets", kDdpBucketsNames);
    environment.num_gpus = static_cast<int64_t>(reader.number("gpus", kCountLimits));
    environment.nccl_bytes = reader.figure("nccl_mib", kMiBBytes, {.most = 1e9});
    environment.host_forward_ns = reader.figure("host_forward_ns", 1, {.most = 1e9});
    environment.host_backward_ns = reader.figure("host_backward_ns", 1, {.most = 1e9});
    environment.matmul_scale = reader.figure("matmul_scale", 1, kRatioLimits);
    return environment;
}

}  // namespace

const Figure& SoftwareEnvironment::context_bytes(std::string_view gpu) const {
    return last_row_about(context, gpu)->bytes;
}

models::Result<std::vector<SoftwareEnvironment>> parse_environments(std::string_view text,
                                                                    const std::string& file) {
    return parse_rows<SoftwareEnvironment>(text, file, "setups", "software environment",
                                           read_environment);
}

models::Result<const SoftwareEnvironment*> find_environment(
    const std::vector<SoftwareEnvironment>& environments, std::string_view id) {
    std::vector<std::string_view> ids;
    for (const SoftwareEnvironment& environment : environments) {
        if (models::is_same_name(id, environment.id)) return &environment;
        ids.push_back(environment.id);
    }
    return models::fail_fields({"setup"}, "'{}' is not a software environment: choose one of {}.",
                               id, fmt::join(ids, ", "));
}

models::Result<const SoftwareEnvironment*> environment_for(
    const std::vector<SoftwareEnvironment>& environments, const SoftwareEnvironment& environment,
    const Gpu& gpu) {
    // GPUs without CUDA run another build of PyTorch: the same environment is assumed for them.
    if (!gpu.compute_capability) return &environment;
    if (*gpu.compute_capability >= environment.min_compute_capability) return &environment;
    if (!environment.older_gpus.empty()) {
        const auto older = find_environment(environments, environment.older_gpus);
        if (!older) return older;
        if (*gpu.compute_capability >= (*older)->min_compute_capability) return older;
    }
    return models::fail_fields(
        {"setup"},
        "PyTorch {} with CUDA {} needs compute capability {}, and {} has {}: choose an older "
        "software environment.",
        environment.torch, environment.cuda, to_text(environment.min_compute_capability), gpu.id,
        to_text(*gpu.compute_capability));
}

}  // namespace profiler
