#include "profiler/planner/data/calibration.h"

#include "models/config/switches.h"
#include "profiler/trace/units.h"

namespace profiler {
namespace {

MatmulRow read_matmul(FieldReader& reader) {
    return {.gpus = reader.optional_texts("gpus"),
            .type = reader.name<MatmulType>("type", kMatmulTypeNames),
            .flop_per_s = reader.row_figure("tflops", kTera)};
}

MatmulRule read_matmul_rule(FieldReader& reader) {
    MatmulRule rule{.tier = reader.name<Tier>("tier", kTierNames)};
    rule.min_compute_capability = reader.optional_capability("min_compute_capability");
    rule.ratio = reader.row_figure("ratio", 1, kRatioLimits);
    return rule;
}

BandwidthRow read_bandwidth(FieldReader& reader) {
    return {.gpus = reader.optional_texts("gpus"),
            .bytes_per_s = reader.row_figure("gb_per_s", kGiga)};
}

LaunchRow read_launch(FieldReader& reader) {
    return {.gpus = reader.optional_texts("gpus"), .ns = reader.row_figure("ns", 1, kCountLimits)};
}

GemmScaleRow read_gemm_scale(FieldReader& reader) {
    return {.gpus = reader.optional_texts("gpus"),
            .ratio = reader.row_figure("ratio", 1, kRatioLimits)};
}

TileRow read_tile(FieldReader& reader) {
    const auto m = static_cast<int64_t>(reader.number("m", kCountLimits));
    const auto n = static_cast<int64_t>(reader.number("n", kCountLimits));
    return {m, n, reader.row_figure("efficiency", 1, kRatioLimits)};
}

EfficiencyRow read_efficiency(FieldReader& reader) {
    EfficiencyRow row{.kernel = reader.name<KernelKind>("kernel", kKernelKindNames),
                      .kernel_set = reader.optional_text("kernel_set").value_or(""),
                      .gpus = reader.optional_texts("gpus")};
    if (reader.has("type")) row.type = reader.name<MatmulType>("type", kMatmulTypeNames);
    if (reader.has("min_bytes")) row.min_bytes = static_cast<int64_t>(reader.number("min_bytes"));
    if (reader.has("max_bytes")) row.max_bytes = static_cast<int64_t>(reader.number("max_bytes"));
    row.efficiency = reader.row_figure("efficiency", 1, kRatioLimits);
    return row;
}

OptimizerRow read_optimizer(FieldReader& reader) {
    OptimizerRow row{.implementation = reader.text("implementation"),
                     .state = reader.name<OptimizerState>("state", kOptimizerStateNames)};
    // An optimizer of ours allocates as itself.
    const char* const ours = reader.has("allocates_as") ? "allocates_as" : "implementation";
    row.allocates_as = reader.name<models::Optimizer>(ours, models::kOptimizerSwitch.names());
    row.bytes_per_parameter = reader.number("bytes_per_parameter", kCountLimits);
    row.launches_per_tensor = reader.number("launches_per_tensor", {.most = kCountLimits.most});
    row.source = reader.source();
    return row;
}

LinkRow read_link(FieldReader& reader) {
    return {.name = reader.text("name"),
            .gpus = reader.optional_texts("gpus"),
            .bus_bytes_per_s = reader.row_figure("bus_gb_per_s", kGiga)};
}

NetworkRow read_network(FieldReader& reader) {
    return {.name = reader.text("name"),
            .gpus = reader.optional_texts("gpus"),
            .bytes_per_s = reader.row_figure("gb_per_s", kGiga)};
}

ProtocolRow read_protocol(FieldReader& reader) {
    return {.name = reader.text("name"),
            .base_ns = reader.number("base_ns", kCountLimits),
            .step_ns = reader.number("step_ns", kCountLimits),
            .network_step_ns = reader.number("network_step_ns", kCountLimits),
            .bandwidth_share = reader.number("bandwidth_share", kRatioLimits),
            .source = reader.source()};
}

void read_lists(FieldReader& document, Calibration& calibration) {
    document.add_rows("matmul", calibration.matmul, read_matmul);
    document.add_rows("matmul_rules", calibration.matmul_rules, read_matmul_rule);
    document.add_rows("bandwidth", calibration.bandwidth, read_bandwidth);
    document.add_rows("launch", calibration.launch, read_launch);
    document.add_rows("gemm_scale", calibration.gemm_scale, read_gemm_scale);
    document.add_rows("tiles", calibration.gemm.tiles, read_tile);
    document.add_rows("efficiencies", calibration.efficiencies, read_efficiency);
    document.add_rows("optimizers", calibration.optimizers, read_optimizer);
    document.add_rows("links", calibration.links, read_link);
    document.add_rows("networks", calibration.networks, read_network);
    document.add_rows("protocols", calibration.protocols, read_protocol);
}

void read_gemm(FieldReader& group, GemmModel& gemm) {
    gemm.scale = group.figure("scale", 1, kRatioLimits);
    gemm.half_k = group.figure("half_k");
    gemm.wave_exponent = group.figure("wave_exponent");
    gemm.batched = group.figure("batched", 1, kRatioLimits);
    gemm.bandwidth_share = group.figure("bandwidth_share", 1, kRatioLimits);
    gemm.split_k = group.figure("split_k", 1, kRatioLimits);
    gemm.min_split_k = group.figure("min_split_k");
}

Calibration read_calibration(const DataFile& data, const std::string& file) {
    FieldReader document(data.document, file, data.sources);
    Calibration calibration;
    read_lists(document, calibration);
    calibration.bandwidth_ratio = document.figure("bandwidth_ratio", 1, kRatioLimits);
    calibration.clipping_bytes_per_parameter = document.figure("clipping_bytes_per_parameter");
    document.group("gemm", [&](FieldReader& group) { read_gemm(group, calibration.gemm); });
    document.group("all_reduce", [&](FieldReader& group) {
        calibration.all_reduce_overlap = group.figure("overlap");
        calibration.all_reduce_exposed_share = group.figure("exposed_share");
    });
    calibration.gpus_per_node = document.figure("gpus_per_node", 1, kCountLimits);
    document.finish();
    if (calibration.protocols.empty()) document.fail("'protocols' is empty or missing");
    if (calibration.gemm.tiles.empty()) document.fail("'tiles' is empty or missing");
    if (calibration.launch.empty() || !calibration.launch.front().gpus.empty()) {
        document.fail("'launch' must begin with a row for every GPU");
    }
    return calibration;
}

}  // namespace

OptimizerState optimizer_state_of(models::Precision precision) {
    if (models::has_master_weights(precision)) return OptimizerState::kMaster;
    return models::weight_bytes(precision) == 2 ? OptimizerState::kHalf : OptimizerState::kFp32;
}

models::Result<Calibration> parse_calibration(std::string_view text, const std::string& file) {
    try {
        return read_calibration(parse_data_file(text, file), file);
    } catch (const FieldError& error) {
        return models::fail("{}", error.message);
    }
}

models::Result<Calibration> extend_calibration(Calibration base, std::string_view text,
                                               const std::string& file) {
    try {
        const DataFile data = parse_data_file(text, file);
        FieldReader document(data.document, file, data.sources);
        read_lists(document, base);
        document.finish();
        return base;
    } catch (const FieldError& error) {
        return models::fail("{}", error.message);
    }
}

}  // namespace profiler
