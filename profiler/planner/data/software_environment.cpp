#include "profiler/planner/data/software_environment.h"

#include "models/config/names.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>

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

/// The same environment with another torch.
struct OtherVersion {
    std::string torch;  // "2.15.0"
    std::string cuda;   // "13.2"
    ComputeCapability min_compute_capability;
};

OtherVersion read_other_version(FieldReader& reader) {
    return {.torch = reader.text("torch"),
            .cuda = reader.text("cuda"),
            .min_compute_capability = reader.capability("min_compute_capability")};
}

struct EnvironmentRow : SoftwareEnvironment {
    std::vector<OtherVersion> others;
};

/// "2.15" of "2.15.0" and of "2.15"
std::string minor_version(std::string_view torch) {
    const std::size_t after_major = torch.find('.');
    if (after_major == std::string_view::npos) return std::string(torch);
    return std::string(torch.substr(0, torch.find('.', after_major + 1)));
}

/// "PyTorch 2.15, CUDA 13.2, Python, eager" for "PyTorch 2.11, CUDA 13.0, Python, eager"
std::string renamed(std::string name, std::string_view before, std::string_view after) {
    const std::size_t at = name.find(before);
    return at == std::string::npos ? name : name.replace(at, before.size(), after);
}

SoftwareEnvironment with_version(const EnvironmentRow& row, const OtherVersion& other) {
    SoftwareEnvironment environment = row;
    const std::string before = minor_version(row.torch), after = minor_version(other.torch);
    environment.id = renamed(row.id, before, after);
    environment.name = renamed(renamed(row.name, before, after), row.cuda, other.cuda);
    environment.torch = other.torch;
    environment.cuda = other.cuda;
    environment.min_compute_capability = other.min_compute_capability;
    return environment;
}

EnvironmentRow read_environment(FieldReader& reader) {
    EnvironmentRow environment{{.id = reader.text("id"), .name = reader.text("name")}, {}};
    reader.add_rows("other_versions", environment.others, read_other_version);
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

std::string SoftwareEnvironment::torch_to_run() const {
    std::array<int, 2> version{};
    const char* const end = torch.data() + torch.size();
    const auto major = std::from_chars(torch.data(), end, version[0]);
    if (major.ptr != end) std::from_chars(major.ptr + 1, end, version[1]);
    return version < kOldestTorch ? std::string() : minor_version(torch);
}

models::Result<std::vector<SoftwareEnvironment>> parse_environments(std::string_view text,
                                                                    const std::string& file) {
    const auto rows =
        parse_rows<EnvironmentRow>(text, file, "setups", "software environment", read_environment);
    if (!rows) return tl::unexpected(rows.error());
    std::vector<SoftwareEnvironment> environments;
    for (const EnvironmentRow& row : *rows) {
        environments.push_back(row);
        for (const OtherVersion& other : row.others) {
            environments.push_back(with_version(row, other));
        }
    }
    return environments;
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
