// Files of every format, traces as bytes between two programs, and random rows under every
// analysis.
#include "profiler/allocator/replay.h"
#include "profiler/allocator/request_stream.h"
#include "profiler/allocator/simulation.h"
#include "profiler/analysis/blocks/allocator_counts.h"
#include "profiler/analysis/compare/comparison.h"
#include "profiler/analysis/ops/calls.h"
#include "profiler/analysis/step/diagnostics.h"
#include "profiler/analysis/step/memory_curve.h"
#include "profiler/formats/chrome/chrome_writer.h"
#include "profiler/formats/join/joined_trace.h"
#include "profiler/formats/parts/chosen_device.h"
#include "profiler/formats/snapshot/memory_timeline_writer.h"
#include "profiler/formats/snapshot/recorded_trace.h"
#include "profiler/formats/snapshot/snapshot_writer.h"
#include "profiler/formats/trace_formats.h"
#include "profiler/trace/file/trace_bytes.h"
#include "profiler/trace/file/trace_file.h"
#include "profiler/view/kernels/kernels_view.h"
#include "profiler/view/kernels/movement_view.h"
#include "profiler/view/memory/timeline_view.h"
#include "profiler/view/peak/flame_view.h"
#include "profiler/view/peak/ledger_view.h"
#include "profiler/view/programs/compare_view.h"
#include "profiler/view/programs/page_view.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/profiler/allocator/recorder.h"
#include "tests/profiler/formats/snapshot_bytes.h"
#include "tests/profiler/trace/random_trace.h"
#include "tests/profiler/trace/temporary_folder.h"
#include "tests/support/synthetic_trace.h"

#include <array>
#include <fstream>
#include <memory>
#include <sstream>

namespace tests {
namespace {

using namespace profiler;

std::string read_bytes(const std::filesystem::path& file) {
    std::ostringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    return text.str();
}

const TemporaryFolder& folder() {
    static const TemporaryFolder folder;
    return folder;
}

/// Everything that commands and the window make of a trace.
void analyse(const std::shared_ptr<const Trace>& trace) {
    const auto index = std::make_shared<const StepIndex>(*trace);
    const std::shared_ptr<const StepReport> report(index, &index->report());
    (void)report_diagnostics(*trace, *report);
    (void)count_allocator_rows(*trace);
    TimelineRequest timeline{.steps = {index.get()}, .names = {"A"}, .width_px = 300};
    const TimeRange range = fit_timeline(timeline);
    timeline.start_ns = range.start_ns;
    timeline.end_ns = range.end_ns;
    (void)build_timeline_view(timeline);
    const Steps alone{index.get()}, twice{index.get(), index.get()};
    (void)build_page_view({.steps = alone});
    (void)build_page_view(
        {.steps = alone, .limits = {.max_moments = 8, .max_blocks = 8, .max_live_blocks = 4}});
    const auto kernels = build_kernels_view(
        {.steps = alone, .start_ns = range.start_ns, .end_ns = range.end_ns, .width_px = 300});
    for (const auto& of_trace : kernels.traces) {
        for (const auto& lane : of_trace.lanes) {
            if (lane.rows.empty() || lane.rows[0].blocks.empty()) continue;
            const CallBlock& block = lane.rows[0].blocks[0];
            (void)short_name(name_of(*trace, block.id));
            (void)read_kernels(*index, block.id);
        }
    }
    for (const bool combine : {false, true}) {
        const FlameView view = build_flame_view({.steps = twice,
                                                 .moment_ns = range.end_ns,
                                                 .mode = FlameMode::kDifference,
                                                 .combine_layers = combine,
                                                 .search = "a"});
        (void)lay_out_flame(view, 0, 300);
        (void)flame_as_csv(view, 0);
    }
    const LedgerView rows =
        build_ledger_view({.steps = alone, .grouping = LedgerGrouping::kLayers});
    (void)mark_rows(rows, {trace.get(), false, report->peak.op, {}});
    const PeaksOfTrace card{{.name = "card", .flop_per_s = 1e14, .bytes_per_s = 1e12}, true, {}};
    (void)build_movement_view(
        {.steps = twice, .peaks = {card, card}, .scope = MovementScope::kAll});
    (void)movement_flow(*trace);
    if (const auto stream = stream_to_failure(*trace, profiled_device(*trace))) {
        (void)simulate(*stream, {});
    }
    (void)align(*trace, *trace, TimeAlignment::kPhases);
    const auto comparison = compare({{"a.tscope", trace, report}, {"b.tscope", trace, report}});
    if (comparison) (void)build_compare_view(*comparison);
}

/// The bytes of a file that is written by a function of ours.
template <typename Write>
std::string bytes_of(const Write& write, const Trace& trace, const char* name = "seed.tscope") {
    const auto file = folder() / name;
    const auto written = write(trace, file);
    if (!written) throw std::runtime_error(written.error().message);
    return read_bytes(file);
}

Trace small_trace(int64_t num_allocations) {
    return make_synthetic_trace({.num_allocations = num_allocations, .num_layers = 1});
}

std::vector<std::string> trace_file_seeds() {
    return {bytes_of(write_trace, small_trace(60)), bytes_of(write_trace, RandomTrace(1).make(3))};
}

std::vector<std::string> snapshot_seeds() {
    Recorder recorder({});
    run_random(recorder, {.num_steps = 60});
    Recorder expandable({.settings = {.expandable_segments = true}});
    run_random(expandable, {.num_steps = 60, .num_streams = 2, .share_streams = true});
    return {snapshot_bytes(recorder.recording(10), 4), snapshot_bytes(expandable.recording(), 2)};
}

std::vector<std::string> profiler_seeds() {
    return {R"({"schemaVersion": 1, "distributedInfo": {"rank": 0}, "traceEvents": [
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":9,"tid":9,"ts":100.5,"dur":900},
{"ph":"X","cat":"python_function","name":"nn.Module: BertLayer_3","pid":9,"tid":9,"ts":101,
 "dur":90},
{"ph":"X","cat":"cpu_op","name":"aten::addmm","pid":9,"tid":9,"ts":110,"dur":50,
 "args":{"External id":1,"Sequence number":7,"Fwd thread id":0,
 "Call stack":"a.py(1): f;b.py(2): g"}},
{"ph":"i","s":"t","name":"[memory]","pid":9,"tid":9,"ts":125,"args":{"Total Reserved":4096,
 "Total Allocated":1536,"Bytes":512,"Addr":64,"Device Id":0,"Device Type":1}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":9,"ts":130,"dur":2.25,
 "args":{"External id":2,"correlation":31}},
{"ph":"s","id":31,"pid":9,"tid":9,"ts":130,"cat":"ac2g","name":"ac2g"},
{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":140.125,"dur":5,
 "args":{"device":0,"stream":7,"correlation":31,"grid":[2,3,4],"block":[32,1,1]}},
{"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD","pid":0,"tid":"stream 7","ts":150,"dur":1,
 "args":{"bytes":40,"External id":1}},
{"ph":"X","cat":"cpu_op","name":"autograd::engine::evaluate_function: AddmmBackward0","pid":9,
 "tid":12,"ts":200,"dur":50,"args":{"Sequence number":7,"Fwd thread id":1}},
{"ph":"i","s":"t","name":"[memory]","pid":9,"tid":12,"ts":249,"args":{"Bytes":-512,"Addr":64,
 "Device Id":0,"Device Type":1}},
{"ph":"i","s":"t","name":"[OutOfMemory]","pid":9,"tid":12,"ts":250,"args":{"Bytes":99,
 "Device Type":1}},
{"ph":"X","cat":"user_annotation","name":"Optimizer.step#SGD.step","pid":9,"tid":9,"ts":300,
 "dur":50}
], "deviceProperties": [{"id": 0, "name": "T4", "totalGlobalMem": 16}], "baseTimeNanoseconds": 5})",
            R"([{"ph":"X","cat":"Operator","name":"a","pid":1,"tid":"2","ts":"1","dur":9},
{"ph":"i","name":"[memory]","pid":1,"tid":2,"ts":2,"args":{"Device Type":0,"Bytes":64}},)"};
}

/// Through the door, as every command and the window do.
void read_file(const std::string& bytes) {
    const auto file = folder() / "mutated";
    std::ofstream(file, std::ios::binary) << bytes;
    if (auto trace = open_trace(file)) {
        if (!trace->devices.empty()) {  // the last one, by its name
            const Id<Device> last(trace->devices.size() - 1);
            const std::string name(trace->text(trace->devices.get<&Device::name>(last)));
            (void)choose_device(*trace, name);
        }
        analyse(std::make_shared<const Trace>(std::move(*trace)));
    }
    const auto recordings = open_recordings(file);
    if (recordings && !recordings->empty()) (void)replay(*main_recording(*recordings), {});
}

std::vector<std::string> byte_seeds() {
    return {to_bytes(small_trace(60)), to_bytes(RandomTrace(1).make(3))};
}

void read_bytes_of_trace(const std::string& bytes) { (void)trace_from_bytes(bytes); }

/// The bytes seed the rows, so each mutation is another trace.
void analyse_rows(const std::string& bytes) {
    const auto seed = static_cast<unsigned>(std::hash<std::string>()(bytes));
    analyse(std::make_shared<const Trace>(RandomTrace(seed).make(seed % 60)));
}

std::vector<std::string> packed_seeds() {
    return {bytes_of(write_chrome_trace, small_trace(20), "seed.json.gz"),
            bytes_of(write_memory_timeline, small_trace(20), "seed.json.gz")};
}

/// The bytes are the profiler's trace of a run whose memory snapshot is sound.
void read_joined(const std::string& bytes) {
    const auto file = folder() / "mutated";
    std::ofstream(file, std::ios::binary) << bytes;
    const auto profile = open_trace(file);
    if (!profile) return;
    static const Trace memory = small_trace(60);
    const auto joined = join_traces({memory, "memory"}, {*profile, "profile"});
    if (joined) analyse(std::make_shared<const Trace>(*joined));
}

std::vector<std::string> joined_seeds() {
    std::vector<std::string> seeds = profiler_seeds();
    seeds.push_back(bytes_of(write_chrome_trace, small_trace(20), "seed.json"));
    return seeds;
}

/// Every format that is written, of rows that the bytes seed. What was written is read again; with
/// times that no run has, a reader may refuse it.
void write_rows(const std::string& bytes) {
    const auto seed = static_cast<unsigned>(std::hash<std::string>()(bytes));
    const Trace trace = RandomTrace(seed).make(seed % 20);
    const auto open_again = [](const auto& written, const std::filesystem::path& file) {
        if (written) (void)open_trace(file);
    };
    const auto snapshot = folder() / "rows.pickle", chrome = folder() / "rows.json";
    const auto packed = folder() / "rows.json.gz", timeline = folder() / "rows.raw.json.gz";
    open_again(write_snapshot(trace, snapshot), snapshot);
    open_again(write_chrome_trace(trace, chrome), chrome);
    open_again(write_chrome_trace(trace, packed), packed);
    (void)write_memory_timeline(trace, timeline);  // for HolisticTraceAnalysis alone
    const Trace other = RandomTrace(seed + 1).make(seed % 20);
    (void)join_traces({trace, "memory"}, {other, "profile"});
}

const std::array kTargets{
    FuzzTarget{"trace_file", trace_file_seeds, read_file},
    FuzzTarget{"snapshot", snapshot_seeds, read_file},
    FuzzTarget{"profiler_trace", profiler_seeds, read_file},
    FuzzTarget{"packed_trace", packed_seeds, read_file},
    FuzzTarget{"joined_trace", joined_seeds, read_joined},
    FuzzTarget{"writers", [] { return std::vector<std::string>{"0123456789abcdef"}; }, write_rows},
    FuzzTarget{"trace_bytes", byte_seeds, read_bytes_of_trace},
    FuzzTarget{"trace_rows", [] { return std::vector<std::string>{"0123456789abcdef"}; },
               analyse_rows},
};

}  // namespace

std::span<const FuzzTarget> trace_targets() { return kTargets; }

}  // namespace tests
