#include "profiler/planner/data/software_environment.h"

#include "profiler/trace/units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace profiler {
namespace {

ContextRow read_context(FieldReader& reader) {
    return {.gpus = reader.optional_texts("gpus"),
            .bytes = reader.row_figure("mib", kMiBBytes, {.most = 1e9})};
}

void read_software(FieldReader& reader, SoftwareEnvironment& setup) {
    setup.torch = reader.text("torch");
    setup.cuda = reader.text("cuda");
    setup.min_compute_capability = reader.capability("min_compute_capability");
    setup.older_gpus = reader.optional_text("older_cards").value_or("");
    setup.kernel_set = reader.text("kernel_set");
    setup.gradients = reader.name<Gradients>("gradients", kGradientsNames);
    setup.optimizer = reader.text("optimizer");
    setup.optimizer_master = reader.optional_text("optimizer_master").value_or("");
    setup.optimizer_half = reader.optional_text("optimizer_half").value_or("");
    setup.clips_gradients = reader.boolean("clips_gradients");
}

SoftwareEnvironment read_setup(FieldReader& reader) {
    SoftwareEnvironment setup{.id = reader.text("id"), .name = reader.text("name")};
    read_software(reader, setup);
    reader.add_rows("context", setup.context, read_context);
    if (setup.context.empty() || !setup.context.front().gpus.empty()) {
        reader.fail("the first row of 'context' must hold for any GPU");
    }
    setup.ddp_buckets = reader.name<DdpBuckets>("ddp_buckets", kDdpBucketsNames);
    setup.num_gpus = static_cast<int64_t>(reader.number("gpus", kCountLimits));
    setup.nccl_bytes = reader.figure("nccl_mib", kMiBBytes, {.most = 1e9});
    setup.host_forward_ns = reader.figure("host_forward_ns", 1, {.most = 1e9});
    setup.host_backward_ns = reader.figure("host_backward_ns", 1, {.most = 1e9});
    setup.matmul_scale = reader.figure("matmul_scale", 1, kRatioLimits);
    return setup;
}

}  // namespace

const Figure& SoftwareEnvironment::context_bytes(std::string_view gpu) const {
    return last_row_about(context, gpu)->bytes;
}

models::Result<std::vector<SoftwareEnvironment>> parse_setups(std::string_view text,
                                                              const std::string& file) {
    return parse_rows<SoftwareEnvironment>(text, file, "setups", "setup", read_setup);
}

models::Result<const SoftwareEnvironment*> find_setup(
    const std::vector<SoftwareEnvironment>& setups, std::string_view id) {
    std::vector<std::string_view> ids;
    for (const SoftwareEnvironment& setup : setups) {
        if (setup.id == id) return &setup;
        ids.push_back(setup.id);
    }
    return models::fail("'{}' is not a setup: choose one of {}.", id, fmt::join(ids, ", "));
}

models::Result<const SoftwareEnvironment*> setup_for(const std::vector<SoftwareEnvironment>& setups,
                                                     const SoftwareEnvironment& setup,
                                                     const Gpu& gpu) {
    // A GPU that is not CUDA runs another build of torch, which the setup stands for.
    if (!gpu.compute_capability) return &setup;
    if (*gpu.compute_capability >= setup.min_compute_capability) return &setup;
    if (!setup.older_gpus.empty()) {
        const auto older = find_setup(setups, setup.older_gpus);
        if (!older) return older;
        if (*gpu.compute_capability >= (*older)->min_compute_capability) return older;
    }
    return models::fail(
        "PyTorch {} with CUDA {} needs compute capability {}, and {} has {}: choose an older "
        "--setup.",
        setup.torch, setup.cuda, to_text(setup.min_compute_capability), gpu.id,
        to_text(*gpu.compute_capability));
}

}  // namespace profiler
