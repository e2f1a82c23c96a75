#include "profiler/planner/setup.h"

#include "models/config/names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace profiler {
namespace {

constexpr double kMiBBytes = 0x1p20;

Figure bytes_of_mib(Figure figure) {
    figure.value *= kMiBBytes;
    return figure;
}

template <typename Enum, std::size_t N>
Enum read_name(FieldReader& reader, const char* key, const std::array<std::string_view, N>& names) {
    const auto value = models::find_name<Enum>(names, reader.text(key));
    if (!value) reader.fail(fmt::format("'{}' must be one of {}", key, fmt::join(names, ", ")));
    return *value;
}

ContextRow read_context(const nlohmann::json& object, const std::string& place,
                        const std::map<std::string, std::string>& sources) {
    FieldReader reader(object, place + ", context", sources);
    ContextRow row{.gpus = reader.optional_texts("gpus")};
    row.bytes.value = reader.number("mib") * kMiBBytes;
    row.bytes.source = reader.source();
    reader.finish();
    return row;
}

void read_software(FieldReader& reader, Setup& setup) {
    setup.torch = reader.text("torch");
    setup.cuda = reader.text("cuda");
    setup.min_compute_capability = reader.capability("min_compute_capability");
    setup.older_cards = reader.optional_text("older_cards").value_or("");
    setup.kernel_set = reader.text("kernel_set");
    setup.gradients = read_name<Gradients>(reader, "gradients", kGradientsNames);
    setup.optimizer = reader.text("optimizer");
    setup.optimizer_16bit = reader.optional_text("optimizer_16bit").value_or("");
    setup.clips_gradients = reader.boolean("clips_gradients");
}

Setup read_setup(const nlohmann::json& object, const std::string& file,
                 const std::map<std::string, std::string>& sources) {
    const bool has_id = object.is_object() && object.contains("id") && object["id"].is_string();
    const std::string place =
        has_id ? fmt::format("{}, {}", file, object["id"].get<std::string>()) : file;
    FieldReader reader(object, place, sources);
    Setup setup{.id = reader.text("id"), .name = reader.text("name")};
    read_software(reader, setup);
    for (const nlohmann::json& row : reader.array("context")) {
        setup.context.push_back(read_context(row, place, sources));
    }
    if (setup.context.empty() || !setup.context.front().gpus.empty()) {
        reader.fail("the first row of 'context' must hold for any card");
    }
    setup.ddp_buckets = read_name<DdpBuckets>(reader, "ddp_buckets", kDdpBucketsNames);
    setup.num_gpus = static_cast<int64_t>(reader.number("gpus"));
    if (setup.num_gpus < 1) reader.fail("'gpus' must be at least 1");
    setup.nccl_bytes = bytes_of_mib(reader.figure("nccl_mib"));
    setup.host_forward_ns = reader.figure("host_forward_ns");
    setup.host_backward_ns = reader.figure("host_backward_ns");
    setup.matmul_scale = reader.figure("matmul_scale");
    reader.finish();
    return setup;
}

}  // namespace

const Figure& Setup::context_bytes(std::string_view gpu) const {
    const auto holds = [&](const ContextRow& row) {
        return row.gpus.empty() ||
               std::find(row.gpus.begin(), row.gpus.end(), gpu) != row.gpus.end();
    };
    return std::find_if(context.rbegin(), context.rend(), holds)->bytes;
}

models::Result<std::vector<Setup>> parse_setups(std::string_view text, const std::string& file) {
    try {
        const DataFile data = parse_data_file(text, file);
        FieldReader document(data.document, file, data.sources);
        std::vector<Setup> setups;
        for (const nlohmann::json& object : document.array("setups")) {
            Setup setup = read_setup(object, file, data.sources);
            if (find_setup(setups, setup.id)) {
                throw FieldError{fmt::format("{}: the setup '{}' is there twice.", file, setup.id)};
            }
            setups.push_back(std::move(setup));
        }
        document.finish();
        return setups;
    } catch (const FieldError& error) {
        return models::fail("{}", error.message);
    }
}

models::Result<const Setup*> find_setup(const std::vector<Setup>& setups, std::string_view id) {
    std::vector<std::string_view> ids;
    for (const Setup& setup : setups) {
        if (setup.id == id) return &setup;
        ids.push_back(setup.id);
    }
    return models::fail("'{}' is not a setup: choose one of {}.", id, fmt::join(ids, ", "));
}

models::Result<const Setup*> setup_for(const std::vector<Setup>& setups, const Setup& setup,
                                       const Gpu& gpu) {
    // A card that is not CUDA runs another build of torch, which the setup stands for.
    if (!gpu.compute_capability) return &setup;
    if (*gpu.compute_capability >= setup.min_compute_capability) return &setup;
    if (!setup.older_cards.empty()) {
        const auto older = find_setup(setups, setup.older_cards);
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
