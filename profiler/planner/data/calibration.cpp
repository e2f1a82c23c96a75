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

std::optional<MatmulType> optional_type(FieldReader& reader) {
    if (!reader.has("type")) return std::nullopt;
    return reader.name<MatmulType>("type", kMatmulTypeNames);
}

std::optional<Tier> optional_tier(FieldReader& reader) {
    if (!reader.has("tier")) return std::nullopt;
    return reader.name<Tier>("tier", kTierNames);
}

double optional_number(FieldReader& reader, const char* key, double unit = 1) {
    return reader.has(key) ? unit * reader.number(key) : 0;
}

MatmulRule read_matmul_rule(FieldReader& reader) {
    return {.tier = optional_tier(reader),
            .type = optional_type(reader),
            .min_compute_capability = reader.optional_capability("min_compute_capability"),
            .ratio = reader.row_figure("ratio", 1, kRatioLimits)};
}

BandwidthRow read_bandwidth(FieldReader& reader) {
    return {.gpus = reader.optional_texts("gpus"),
            .bytes_per_s = reader.row_figure("gb_per_s", kGiga)};
}

BandwidthRule read_bandwidth_rule(FieldReader& reader) {
    return {.tier = optional_tier(reader),
            .max_bus_bits = optional_number(reader, "max_memory_bus_bits"),
            .ratio = reader.row_figure("ratio", 1, kRatioLimits)};
}

L2Row read_l2(FieldReader& reader) {
    return {.gpus = reader.optional_texts("gpus"),
            .bytes_per_s = reader.row_figure("gb_per_s", kGiga)};
}

PowerRow read_power(FieldReader& reader) {
    constexpr double kPico = 1e-12;
    constexpr Limits kPicoseconds{1e-4, 1e3};
    return {.gpus = reader.optional_texts("gpus"),
            .type = reader.name<MatmulType>("type", kMatmulTypeNames),
            .s_per_flop = kPico * reader.number("ps_per_flop", kPicoseconds),
            .s_per_byte = kPico * reader.number("ps_per_byte", kPicoseconds),
            .source = reader.source()};
}

LaunchRow read_launch(FieldReader& reader) {
    return {.gpus = reader.optional_texts("gpus"), .ns = reader.row_figure("ns", 1, kCountLimits)};
}

TileRow read_tile(FieldReader& reader) {
    return {.m = static_cast<int64_t>(reader.number("m", kCountLimits)),
            .n = static_cast<int64_t>(reader.number("n", kCountLimits)),
            .type = optional_type(reader),
            .min_compute_capability = reader.optional_capability("min_compute_capability"),
            .batched_of = static_cast<int64_t>(optional_number(reader, "batched_of")),
            .source = reader.source()};
}

TileCostRow read_tile_cost(FieldReader& reader) {
    constexpr Limits kElements{0, 1e4};
    return {.gpus = reader.optional_texts("gpus"),
            .type = optional_type(reader),
            .min_compute_capability = reader.optional_capability("min_compute_capability"),
            .load = reader.number("load", kElements),
            .fill_k = reader.number("fill_k", kElements),
            .source = reader.source()};
}

EfficiencyRow read_efficiency(FieldReader& reader) {
    EfficiencyRow row{.kernel = reader.name<KernelKind>("kernel", kKernelKindNames),
                      .kernel_set = reader.optional_text("kernel_set").value_or(""),
                      .gpus = reader.optional_texts("gpus"),
                      .type = optional_type(reader)};
    row.min_bytes = static_cast<int64_t>(optional_number(reader, "min_bytes"));
    if (reader.has("max_bytes")) row.max_bytes = static_cast<int64_t>(reader.number("max_bytes"));
    row.min_columns = static_cast<int64_t>(optional_number(reader, "min_columns"));
    row.min_l2_bytes = optional_number(reader, "min_l2_mib", kMiBBytes);
    row.efficiency = reader.row_figure("efficiency", 1, kRatioLimits);
    return row;
}

AccuracyRow read_accuracy(FieldReader& reader) {
    constexpr Limits kErrors{0.01, 0.9};
    return {.gpus = reader.optional_texts("gpus"),
            .accuracy = {.basis = reader.name<RateBasis>("basis", kRateBasisNames),
                         .error = reader.number("error", kErrors)},
            .source = reader.source()};
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

HostLinkRow read_host_link(FieldReader& reader) {
    return {.name = reader.text("name"),
            .gpus = reader.optional_texts("gpus"),
            .bytes_per_s = reader.row_figure("gb_per_s", kGiga)};
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
    document.add_rows("bandwidth_rules", calibration.bandwidth_rules, read_bandwidth_rule);
    document.add_rows("l2", calibration.l2, read_l2);
    document.add_rows("power", calibration.power, read_power);
    document.add_rows("launch", calibration.launch, read_launch);
    document.add_rows("tiles", calibration.tiles, read_tile);
    document.add_rows("tile_costs", calibration.tile_costs, read_tile_cost);
    document.add_rows("efficiencies", calibration.efficiencies, read_efficiency);
    document.add_rows("accuracy", calibration.accuracy, read_accuracy);
    document.add_rows("optimizers", calibration.optimizers, read_optimizer);
    document.add_rows("links", calibration.links, read_link);
    document.add_rows("host_links", calibration.host_links, read_host_link);
    document.add_rows("networks", calibration.networks, read_network);
    document.add_rows("protocols", calibration.protocols, read_protocol);
}

Calibration read_calibration(const DataFile& data, const std::string& file) {
    FieldReader document(data.document, file, data.sources);
    Calibration calibration;
    read_lists(document, calibration);
    calibration.l2_bytes_per_clock = document.figure("l2_bytes_per_clock", 1, kCountLimits);
    calibration.l2_share = document.figure("l2_share", 1, kRatioLimits);
    calibration.clipping_bytes_per_parameter = document.figure("clipping_bytes_per_parameter");
    document.group("split_k", [&](FieldReader& group) {
        calibration.split_k = {.min_k = group.figure("min_k", 1, kCountLimits),
                               .ns = group.figure("ns", 1, kCountLimits),
                               .last_major = group.figure("last_major", 1, kCountLimits)};
    });
    document.group("all_reduce", [&](FieldReader& group) {
        calibration.all_reduce_overlap = group.figure("overlap");
        calibration.all_reduce_exposed_share = group.figure("exposed_share");
    });
    calibration.gpus_per_node = document.figure("gpus_per_node", 1, kCountLimits);
    document.finish();
    if (calibration.protocols.empty()) document.fail("'protocols' is empty or missing");
    const auto begins_for_all = [](const auto& rows) {
        return !rows.empty() && rows.front().gpus.empty();
    };
    if (calibration.tiles.empty()) document.fail("'tiles' is empty or missing");
    if (!begins_for_all(calibration.tile_costs)) {
        document.fail("'tile_costs' must begin with a row for every GPU");
    }
    if (!begins_for_all(calibration.accuracy)) {
        document.fail("'accuracy' must begin with a row for every GPU");
    }
    if (!begins_for_all(calibration.host_links)) {
        document.fail("'host_links' must begin with a row for every GPU");
    }
    if (!begins_for_all(calibration.launch)) {
        document.fail("'launch' must begin with a row for every GPU");
    }
    return calibration;
}

}  // namespace

std::string TimeAccuracy::text() const {
    constexpr std::array<std::string_view, 3> kTexts{"rates measured on this GPU",
                                                     "rates that others measured on this GPU",
                                                     "rates from the specification"};
    return fmt::format("±{:.0f} %: {}", 100 * error, kTexts[static_cast<std::size_t>(basis)]);
}

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
