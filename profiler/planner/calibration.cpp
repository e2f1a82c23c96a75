#include "profiler/planner/calibration.h"

#include "models/config/names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace profiler {
namespace {

constexpr double kGiga = 1e9;
constexpr double kTera = 1e12;

using Sources = std::map<std::string, std::string>;

template <typename Enum, std::size_t N>
Enum read_name(FieldReader& reader, const char* key, const std::array<std::string_view, N>& names) {
    const auto value = models::find_name<Enum>(names, reader.text(key));
    if (!value) reader.fail(fmt::format("'{}' must be one of {}", key, fmt::join(names, ", ")));
    return *value;
}

double positive(FieldReader& reader, const char* key) {
    const double value = reader.number(key);
    if (value <= 0) reader.fail(fmt::format("'{}' must be above 0", key));
    return value;
}

Figure row_figure(FieldReader& reader, const char* key, double unit = 1) {
    const double value = positive(reader, key) * unit;
    return {value, reader.source()};
}

MatmulRow read_matmul(FieldReader& reader) {
    return {.gpus = reader.optional_texts("gpus"),
            .type = read_name<MatmulType>(reader, "type", kMatmulTypeNames),
            .flop_per_s = row_figure(reader, "tflops", kTera)};
}

MatmulRule read_matmul_rule(FieldReader& reader) {
    MatmulRule rule{.tier = read_name<Tier>(reader, "tier", kTierNames)};
    rule.min_compute_capability = reader.optional_capability("min_compute_capability");
    rule.ratio = row_figure(reader, "ratio");
    return rule;
}

BandwidthRow read_bandwidth(FieldReader& reader) {
    return {.gpus = reader.optional_texts("gpus"),
            .bytes_per_s = row_figure(reader, "gb_per_s", kGiga)};
}

GemmScaleRow read_gemm_scale(FieldReader& reader) {
    return {.gpus = reader.optional_texts("gpus"), .ratio = row_figure(reader, "ratio")};
}

TileRow read_tile(FieldReader& reader) {
    const auto m = static_cast<int64_t>(positive(reader, "m"));
    const auto n = static_cast<int64_t>(positive(reader, "n"));
    if (m < 1 || n < 1) reader.fail("'m' and 'n' must be at least 1");
    return {m, n, row_figure(reader, "efficiency")};
}

EfficiencyRow read_efficiency(FieldReader& reader) {
    EfficiencyRow row{.kernel = read_name<KernelKind>(reader, "kernel", kKernelKindNames),
                      .kernel_set = reader.optional_text("kernel_set").value_or(""),
                      .gpus = reader.optional_texts("gpus")};
    if (reader.has("type")) row.type = read_name<MatmulType>(reader, "type", kMatmulTypeNames);
    if (reader.has("min_bytes")) row.min_bytes = static_cast<int64_t>(reader.number("min_bytes"));
    if (reader.has("max_bytes")) row.max_bytes = static_cast<int64_t>(reader.number("max_bytes"));
    row.efficiency = row_figure(reader, "efficiency");
    return row;
}

OptimizerRow read_optimizer(FieldReader& reader) {
    OptimizerRow row{.implementation = reader.text("implementation"),
                     .state = read_name<OptimizerState>(reader, "state", kOptimizerStateNames)};
    row.bytes_per_parameter = positive(reader, "bytes_per_parameter");
    row.launches_per_tensor = reader.number("launches_per_tensor");
    row.source = reader.source();
    return row;
}

LinkRow read_link(FieldReader& reader) {
    return {.name = reader.text("name"),
            .gpus = reader.optional_texts("gpus"),
            .bus_bytes_per_s = row_figure(reader, "bus_gb_per_s", kGiga)};
}

/// Appends the rows of the list `key`, where there is one.
template <typename Row>
void read_rows(FieldReader& document, const char* key, const Sources& sources,
               std::vector<Row>& rows, Row (*read)(FieldReader&)) {
    if (!document.has(key)) return;
    std::size_t number = 0;
    for (const nlohmann::json& object : document.array(key)) {
        FieldReader reader(object, fmt::format("{}, {} {}", document.place(), key, ++number),
                           sources);
        rows.push_back(read(reader));
        reader.finish();
    }
}

void read_lists(FieldReader& document, const Sources& sources, Calibration& calibration) {
    read_rows(document, "matmul", sources, calibration.matmul, read_matmul);
    read_rows(document, "matmul_rules", sources, calibration.matmul_rules, read_matmul_rule);
    read_rows(document, "bandwidth", sources, calibration.bandwidth, read_bandwidth);
    read_rows(document, "gemm_scale", sources, calibration.gemm_scale, read_gemm_scale);
    read_rows(document, "tiles", sources, calibration.gemm.tiles, read_tile);
    read_rows(document, "efficiencies", sources, calibration.efficiencies, read_efficiency);
    read_rows(document, "optimizers", sources, calibration.optimizers, read_optimizer);
    read_rows(document, "links", sources, calibration.links, read_link);
}

/// A {...} of figures inside the document.
template <typename Read>
void read_group(FieldReader& document, const nlohmann::json& json, const char* key,
                const Sources& sources, const Read& read) {
    if (!document.has(key)) document.fail(fmt::format("the field '{}' is missing", key));
    FieldReader group(json.at(key), fmt::format("{}, {}", document.place(), key), sources);
    read(group);
    group.finish();
}

void read_gemm(FieldReader& group, GemmModel& gemm) {
    gemm.scale = group.figure("scale");
    gemm.half_k = group.figure("half_k");
    gemm.wave_exponent = group.figure("wave_exponent");
    gemm.batched = group.figure("batched");
    gemm.bandwidth_share = group.figure("bandwidth_share");
    gemm.split_k = group.figure("split_k");
    gemm.min_split_k = group.figure("min_split_k");
}

Calibration read_calibration(const DataFile& data, const std::string& file) {
    // The groups are read by readers of their own.
    nlohmann::json flat = data.document;
    flat.erase("gemm");
    flat.erase("all_reduce");
    FieldReader groups(data.document, file, data.sources);
    FieldReader document(flat, file, data.sources);
    Calibration calibration;
    read_lists(document, data.sources, calibration);
    calibration.bandwidth_ratio = document.figure("bandwidth_ratio");
    calibration.launch_ns = document.figure("launch_ns");
    calibration.clipping_bytes_per_parameter = document.figure("clipping_bytes_per_parameter");
    read_group(groups, data.document, "gemm", data.sources,
               [&](FieldReader& group) { read_gemm(group, calibration.gemm); });
    read_group(groups, data.document, "all_reduce", data.sources, [&](FieldReader& group) {
        calibration.all_reduce_overlap = group.figure("overlap");
        calibration.all_reduce_exposed_share = group.figure("exposed_share");
    });
    document.finish();
    if (calibration.gemm.tiles.empty()) document.fail("'tiles' is empty or missing");
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
        read_lists(document, data.sources, base);
        document.finish();
        return base;
    } catch (const FieldError& error) {
        return models::fail("{}", error.message);
    }
}

}  // namespace profiler
