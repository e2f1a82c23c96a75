#include "profiler/formats/chrome/chrome_writer.h"

#include "profiler/formats/kineto/kineto_event.h"
#include "profiler/formats/parts/memory_actions.h"
#include "profiler/formats/parts/output_file.h"
#include "profiler/formats/parts/steps_and_phases.h"
#include "profiler/trace/enumerations.h"
#include "profiler/trace/trace_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace profiler {
namespace {

/// What a Chrome trace says about collectives: arguments of the op and of the kernel, under the
/// names of the PyTorch profiler, which HTA and kineto_event.cpp read.
class ChromeCollectives {
public:
    explicit ChromeCollectives(const Trace& trace) : trace_(trace) {
        for (const Id<Collective> row : trace.collectives.ids()) {
            by_op_.emplace(trace.collectives.get<&Collective::op>(row).value, row);
            const Id<Kernel> kernel = trace.collectives.get<&Collective::kernel>(row);
            if (kernel.valid()) by_kernel_.emplace(kernel.value, row);
        }
    }

    /// `, "Collective name": "all_reduce", ...`; empty for others.
    std::string arguments_of(Id<Op> op) const { return find(by_op_, op.value); }
    std::string arguments_of(Id<Kernel> kernel) const { return find(by_kernel_, kernel.value); }

private:
    using Rows = std::unordered_map<int32_t, Id<Collective>>;

    std::string find(const Rows& rows, int32_t row) const {
        const auto found = rows.find(row);
        if (found == rows.end()) return {};
        const Collective collective = trace_.collectives[found->second];
        // A type whose size is not known counts as bytes.
        const bool is_known = element_bytes(collective.dtype) > 0;
        const DType dtype = is_known ? collective.dtype : DType::kUInt8;
        std::string text = fmt::format(
            R"(, "Collective name": "{}", "dtype": "{}", "In msg nelems": {}, )"
            R"("Out msg nelems": {})",
            name_of(collective.kind), kineto::kScalarTypeNames[static_cast<std::size_t>(dtype)],
            collective.in_bytes / element_bytes(dtype),
            collective.out_bytes / element_bytes(dtype));
        if (collective.peer >= 0) {
            const bool is_send = collective.kind == CollectiveKind::kSend;
            text += fmt::format(R"(, "{} Rank": {})", is_send ? "Dst" : "Src", collective.peer);
        }
        if (!collective.communicator.valid()) return text;
        const Communicator group = trace_.communicators[collective.communicator];
        return text + fmt::format(R"(, "Group size": {}, "Process Group Name": {}, )"
                                  R"("Process Group Description": {}, "Process Group Ranks": {})",
                                  group.num_ranks, json_text(trace_.text(group.name)),
                                  json_text(trace_.text(group.description)),
                                  json_text(trace_.text(group.ranks)));
    }

    const Trace& trace_;
    Rows by_op_, by_kernel_;
};

// Kernels have the number of their device as process, so the host's must be another.
constexpr int64_t kHostProcess = 1'000'000;
constexpr int64_t kRangesTrack = 1'000'001;
constexpr int64_t kModulesTrack = 1'000'002;
constexpr int64_t kAnnotationsTrack = 1'000'003;
constexpr int64_t kNoOpTrack = 1'000'004;  // of what no op allocated; a reader looks for ops around
constexpr int64_t kFirstThread = 1'000'010;
constexpr int64_t kMoreAnnotationsTrack = 2'000'000'000;

/// Nanoseconds as microseconds with three decimals.
struct Microseconds {
    int64_t ns = 0;
};

}  // namespace
}  // namespace profiler

template <>
struct fmt::formatter<profiler::Microseconds> : fmt::formatter<int64_t> {
    auto format(const profiler::Microseconds& time, format_context& context) const {
        return fmt::format_to(context.out(), "{}{}.{:03}", time.ns < 0 ? "-" : "",
                              std::abs(time.ns) / 1000, std::abs(time.ns) % 1000);
    }
};

namespace profiler {
namespace {

/// The call stacks of a trace, as the arguments of the events of their allocations:
///
///     "Call stack": "a.py(12): f;b.py(3): g",       the innermost frame first, as in 2021
///     "Call stack id": 7,                           of a frame that was written before
///
/// Viewers show the texts. Where all of them together would be long, or a frame has the ";" that
/// separates them, each frame is written once.
class CallStacks {
public:
    CallStacks(const Trace& trace, JsonList& list) : trace_(trace), list_(list) {
        constexpr std::size_t kMostTextBytes = std::size_t{64} << 20;
        std::vector<std::size_t> frame_bytes, bytes(trace.stacks.size());
        for (const Id<Frame> id : trace.frames.ids()) {
            const std::string text = frame_text(id);
            has_texts_ = has_texts_ && text.find(';') == std::string::npos;
            frame_bytes.push_back(text.size());
        }
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            const Stack stack = trace.stacks[Id<Stack>(i)];
            const bool has_outer = stack.parent.valid() && stack.parent.index() < i;
            bytes[i] = (has_outer ? bytes[stack.parent.index()] : 0) +
                       (stack.frame.valid() ? frame_bytes[stack.frame.index()] : 0);
        }
        std::size_t all = 0;
        for (const Id<Stack> stack : trace.allocations.column<&Allocation::stack>()) {
            if (stack.valid() && all <= kMostTextBytes) all += bytes[stack.index()];
        }
        has_texts_ = has_texts_ && all <= kMostTextBytes;
    }

    /// The argument, made once for each stack.
    const std::string& argument(Id<Stack> stack) {
        std::string& made = made_[stack.value];
        if (made.empty()) made = has_texts_ ? text(stack) : number(stack);
        return made;
    }

private:
    std::string frame_text(Id<Frame> id) const {
        if (!id.valid()) return {};
        const Frame frame = trace_.frames[id];
        return fmt::format("{}({}): {}", trace_.text(frame.file), frame.line,
                           trace_.text(frame.function));
    }

    /// Of a stack and of those around it, the innermost first.
    std::vector<Id<Stack>> chain_of(Id<Stack> id) const {
        std::vector<Id<Stack>> chain;
        for (; id.valid() && chain.size() < kMostStackFrames; id = trace_.stacks[id].parent) {
            chain.push_back(id);
        }
        return chain;
    }

    std::string text(Id<Stack> id) const {
        std::string text;
        for (const Id<Stack> stack : chain_of(id)) {
            const std::string frame = frame_text(trace_.stacks[stack].frame);
            if (!text.empty() && !frame.empty()) text += ';';
            text += frame;
        }
        return fmt::format(R"("Call stack": {}, )", json_text(text));
    }

    std::string number(Id<Stack> id) {
        const auto chain = chain_of(id);
        int64_t parent = -1;
        for (auto stack = chain.rbegin(); stack != chain.rend(); ++stack) {
            if (written_.insert(stack->value).second) {
                list_.add(R"({{"ph": "M", "name": "{}", "pid": {}, "tid": {}, "args": )"
                          R"({{"Call stack id": {}, "Parent stack id": {}, "name": {}}}}})",
                          kineto::kStackFrameName, kHostProcess, kNoOpTrack, stack->value, parent,
                          json_text(frame_text(trace_.stacks[*stack].frame)));
            }
            parent = stack->value;
        }
        return fmt::format(R"("Call stack id": {}, )", id.value);
    }

    const Trace& trace_;
    JsonList& list_;
    bool has_texts_ = true;
    std::unordered_map<int32_t, std::string> made_;  // by row of `stack`
    std::unordered_set<int32_t> written_;
};

class ChromeWriter {
public:
    ChromeWriter(const Trace& trace, OutputFile& file)
        : trace_(trace),
          file_(file),
          list_(file),
          texts_(trace),
          collectives_(trace),
          call_stacks_(trace, list_),
          device_numbers_(device_numbers(trace)) {}

    void write() {
        const Run run = trace_.run();
        file_.write(
            fmt::format("{{\"schemaVersion\": 1, \"displayTimeUnit\": \"ms\",\n"
                        "\"baseTimeNanoseconds\": {},\n"
                        "\"distributedInfo\": {{\"rank\": {}, \"world_size\": {}}},\n",
                        run.start_unix_ns, run.rank, run.world_size));
        write_devices(run);
        file_.write("\"profile_memory\": 1,\n\"traceEvents\": [");
        write_names();
        write_ranges();
        write_modules();
        write_ops();
        write_calls();
        write_kernels();
        write_copies();
        const ActionsByDevice actions(trace_);
        for (const Id<Device> device : devices_with_memory()) {
            write_memory(device, actions.of(device));
        }
        list_.flush();
        file_.write(fmt::format("\n],\n\"traceName\": {}}}\n", json_text("temposcope")));
    }

private:
    std::vector<Id<Device>> devices() const {
        std::vector<Id<Device>> devices;
        for (std::size_t i = 0; i < trace_.devices.size(); ++i) devices.emplace_back(i);
        if (devices.empty()) devices.emplace_back();
        return devices;
    }

    /// The format has one host; of joined ranks it is that of the first.
    std::vector<Id<Device>> devices_with_memory() const {
        std::vector<Id<Device>> with_memory = devices();
        bool has_host = false;
        std::erase_if(with_memory, [&](Id<Device> device) {
            return is_host(trace_, device) && std::exchange(has_host, true);
        });
        return with_memory;
    }

    int64_t process_of(Id<Device> device) const {
        if (!device.valid()) return 0;
        return is_host(trace_, device) ? kHostProcess : device_numbers_[device.index()];
    }

    static int64_t track_of(Id<Thread> thread) { return kFirstThread + thread.value; }

    void write_devices(const Run& run) {
        std::string properties;
        for (const Id<Device> device : devices()) {
            if (!device.valid() || is_host(trace_, device)) continue;
            properties +=
                fmt::format("{}{{\"id\": {}, \"name\": {}, \"totalGlobalMem\": {}}}",
                            properties.empty() ? "" : ", ", process_of(device),
                            json_text(trace_.text(run.device_name)),
                            std::max<int64_t>(trace_.devices.get<&Device::total_bytes>(device), 0));
        }
        file_.write(fmt::format("\"deviceProperties\": [{}],\n", properties));
    }

    void name_track(std::string_view what, int64_t process, int64_t track, std::string_view name) {
        list_.add(R"({{"ph": "M", "name": "{}", "pid": {}, "tid": {}, "args": {{"name": {}}}}})",
                  what, process, track, name);
    }

    void write_names() {
        name_track("process_name", kHostProcess, 0, "\"host\"");
        name_track("thread_name", kHostProcess, kRangesTrack, "\"steps and phases\"");
        name_track("thread_name", kHostProcess, kModulesTrack, "\"modules\"");
        name_track("thread_name", kHostProcess, kAnnotationsTrack, "\"annotations\"");
        name_track("thread_name", kHostProcess, kNoOpTrack, "\"allocations outside of ops\"");
        for (const Id<Thread> id : trace_.threads.ids()) {
            const Thread thread = trace_.threads[id];
            name_track("thread_name", kHostProcess, track_of(id), texts_[thread.name]);
        }
        for (const Id<Device> device : devices()) {
            if (!device.valid() || is_host(trace_, device)) continue;
            name_track("process_name", process_of(device), 0,
                       texts_[trace_.devices.get<&Device::name>(device)]);
        }
        for (const Stream stream : trace_.streams.rows()) {
            if (!stream.device.valid() || is_host(trace_, stream.device)) continue;
            name_track("thread_name", process_of(stream.device), stream.handle,
                       fmt::format("\"stream {} \"", stream.handle));
        }
    }

    void add_range(std::string_view category, std::string_view name, int64_t track,
                   int64_t start_ns, int64_t end_ns) {
        list_.add(
            R"({{"ph": "X", "cat": "{}", "name": {}, "pid": {}, "tid": {}, "ts": {}, "dur": {}}})",
            category, name, kHostProcess, track, Microseconds{start_ns},
            Microseconds{std::max<int64_t>(end_ns - start_ns, 0)});
    }

    void write_ranges() {
        for (const MarkedRange& range : marked_ranges(trace_)) {
            add_range("user_annotation", json_text(range.name),
                      range.is_annotation ? annotations_track(range) : kRangesTrack, range.start_ns,
                      range.end_ns);
        }
    }

    /// Ranges of several threads may overlap without nesting, and viewers cannot draw these on one
    /// track. Returns the first track on which all open ranges contain this range.
    int64_t annotations_track(const MarkedRange& range) {
        constexpr std::size_t kMostTracks = 64;  // what still overlaps stands on the last
        std::size_t track = 0;
        for (; track < open_until_ns_.size() && track + 1 < kMostTracks; ++track) {
            auto& ends_ns = open_until_ns_[track];  // the innermost last
            while (!ends_ns.empty() && ends_ns.back() <= range.start_ns) ends_ns.pop_back();
            if (ends_ns.empty() || range.end_ns <= ends_ns.back()) break;
        }
        const int64_t number =
            track == 0 ? kAnnotationsTrack : kMoreAnnotationsTrack + static_cast<int64_t>(track);
        if (track == open_until_ns_.size()) {
            open_until_ns_.emplace_back();
            if (track > 0) {
                name_track("thread_name", kHostProcess, number,
                           fmt::format("\"annotations {}\"", track + 1));
            }
        }
        open_until_ns_[track].push_back(range.end_ns);
        return number;
    }

    /// Those of joined ranks stand rank after rank.
    std::vector<Id<Op>> ops_by_start() const {
        std::vector<Id<Op>> ops;
        for (std::size_t i = 0; i < trace_.ops.size(); ++i) ops.emplace_back(i);
        const auto start_ns = trace_.ops.column<&Op::start_ns>();
        std::ranges::stable_sort(ops, {}, [&](Id<Op> op) { return start_ns[op.index()]; });
        return ops;
    }

    /// From the first to the last op of a module that run without another module's between them.
    void write_modules() {
        Id<ModulePath> open;
        int64_t start_ns = 0, end_ns = 0;
        const auto close = [&](int64_t limit_ns) {
            if (!open.valid()) return;
            const StringId path = trace_.module_paths.get<&ModulePath::path>(open);
            add_range("python_function", json_text(fmt::format("nn.Module: {}", trace_.text(path))),
                      kModulesTrack, start_ns, std::min(end_ns, limit_ns));
        };
        for (const Id<Op> id : ops_by_start()) {
            const Op op = trace_.ops[id];
            if (op.module_path == open) {
                end_ns = std::max(end_ns, op.end_ns);
            } else if (op.module_path.valid() || op.start_ns >= end_ns) {
                close(op.start_ns);
                open = op.module_path;
                start_ns = op.start_ns;
                end_ns = op.end_ns;
            }
        }
        close(INT64_MAX);
    }

    /// A forward op and its backward ops share a sequence number, as in autograd.
    void write_ops() {
        std::unordered_set<int32_t> has_backward;
        for (const Id<Op> forward : trace_.ops.column<&Op::forward>()) {
            if (forward.valid()) has_backward.insert(forward.value);
        }
        for (std::size_t i = 0; i < trace_.ops.size(); ++i) {
            const Op op = trace_.ops[Id<Op>(i)];
            const auto number = static_cast<int32_t>(i);
            sequence_.clear();
            if (op.forward.valid()) {
                sequence_ = fmt::format(R"(, "Sequence number": {}, "Fwd thread id": 1)",
                                        op.forward.value + 1);
            } else if (has_backward.contains(number)) {
                sequence_ =
                    fmt::format(R"(, "Sequence number": {}, "Fwd thread id": 0)", number + 1);
            }
            sequence_ += collectives_.arguments_of(Id<Op>(i));
            list_.add(
                R"({{"ph": "X", "cat": "cpu_op", "name": {}, "pid": {}, "tid": {}, "ts": {}, )"
                R"("dur": {}, "args": {{"External id": {}{}, "Module Hierarchy": {}}}}})",
                texts_[op.name], kHostProcess, track_of(op.thread), Microseconds{op.start_ns},
                Microseconds{op.end_ns - op.start_ns}, number + 1, sequence_,
                op.module_path.valid()
                    ? texts_[trace_.module_paths.get<&ModulePath::path>(op.module_path)]
                    : std::string_view("\"\""));
        }
    }

    void write_calls() {
        for (std::size_t i = 0; i < trace_.apis.size(); ++i) {
            const Api call = trace_.apis[Id<Api>(i)];
            if (call.correlation >= 0) call_of_.emplace(call.correlation, i);
            list_.add(R"({{"ph": "X", "cat": "cuda_runtime", "name": {}, "pid": {}, "tid": {}, )"
                      R"("ts": {}, "dur": {}, "args": {{"External id": {}, "correlation": {}}}}})",
                      texts_[call.name], kHostProcess, track_of(call.thread),
                      Microseconds{call.start_ns}, Microseconds{call.end_ns - call.start_ns},
                      call.op.value + 1, call.correlation);
        }
    }

    /// An arrow from the call that launched the work, or from its op.
    void add_arrow(int64_t correlation, Id<Op> op, const Stream& stream, int64_t start_ns) {
        const auto call = call_of_.find(correlation);
        Id<Thread> thread;
        int64_t from_ns = 0;
        if (correlation >= 0 && call != call_of_.end()) {
            const Api row = trace_.apis[Id<Api>(call->second)];
            thread = row.thread;
            from_ns = row.start_ns;
        } else if (op.valid()) {
            thread = trace_.ops.get<&Op::thread>(op);
            from_ns = trace_.ops.get<&Op::start_ns>(op);
        } else {
            return;
        }
        ++num_arrows_;
        list_.add(R"({{"ph": "s", "cat": "ac2g", "name": "ac2g", "id": {}, "pid": {}, "tid": {}, )"
                  R"("ts": {}}})",
                  arrow_id(correlation), kHostProcess, track_of(thread), Microseconds{from_ns});
        list_.add(R"({{"ph": "f", "bp": "e", "cat": "ac2g", "name": "ac2g", "id": {}, "pid": {}, )"
                  R"("tid": {}, "ts": {}}})",
                  arrow_id(correlation), process_of(stream.device), stream.handle,
                  Microseconds{start_ns});
    }

    int64_t arrow_id(int64_t correlation) const {
        return correlation >= 0 ? correlation : (int64_t{1} << 40) + num_arrows_;
    }

    Stream stream_of(Id<Stream> stream) const {
        return stream.valid() ? trace_.streams[stream] : Stream{};
    }

    void write_kernels() {
        for (std::size_t i = 0; i < trace_.kernels.size(); ++i) {
            const Kernel kernel = trace_.kernels[Id<Kernel>(i)];
            const Stream stream = stream_of(kernel.stream);
            const int64_t device = process_of(stream.device);
            list_.add(
                R"({{"ph": "X", "cat": "kernel", "name": {}, "pid": {}, "tid": {}, "ts": {}, )"
                R"("dur": {}, "args": {{"External id": {}, "device": {}, "stream": {}, )"
                R"("correlation": {}, "registers per thread": {}, "shared memory": {}{}, )"
                R"("grid": [{}, {}, {}], "block": [{}, {}, {}]}}}})",
                texts_[kernel.name], device, stream.handle, Microseconds{kernel.start_ns},
                Microseconds{kernel.end_ns - kernel.start_ns}, kernel.op.value + 1, device,
                stream.handle, kernel.correlation, kernel.registers_per_thread,
                kernel.shared_memory_bytes, collectives_.arguments_of(Id<Kernel>(i)), kernel.grid_x,
                kernel.grid_y, kernel.grid_z, kernel.block_x, kernel.block_y, kernel.block_z);
            add_arrow(kernel.correlation, kernel.op, stream, kernel.start_ns);
        }
    }

    void write_copies() {
        for (const Memcpy copy : trace_.memcpys.rows()) {
            const Stream stream = stream_of(copy.stream);
            const int64_t device = process_of(stream.device);
            const std::string_view kind = trace_.text(copy.kind);
            list_.add(R"({{"ph": "X", "cat": "{}", "name": {}, "pid": {}, "tid": {}, "ts": {}, )"
                      R"("dur": {}, "args": {{"External id": {}, "device": {}, "stream": {}, )"
                      R"("correlation": {}, "bytes": {}}}}})",
                      kind == "memset" ? "gpu_memset" : "gpu_memcpy", copy_name(kind), device,
                      stream.handle, Microseconds{copy.start_ns},
                      Microseconds{copy.end_ns - copy.start_ns}, copy.op.value + 1, device,
                      stream.handle, copy.correlation, copy.size_bytes);
            add_arrow(copy.correlation, copy.op, stream, copy.start_ns);
        }
    }

    /// Kineto's names, by which its readers know the direction.
    static std::string copy_name(std::string_view kind) {
        constexpr std::array<std::array<std::string_view, 2>, 4> kNames{
            {{"host_to_device", "\"Memcpy HtoD\""},
             {"device_to_host", "\"Memcpy DtoH\""},
             {"device_to_device", "\"Memcpy DtoD (Device -> Device)\""},
             {"memset", "\"Memset (Device)\""}}};
        for (const auto& [known, name] : kNames) {
            if (kind == known) return std::string(name);
        }
        return json_text(kind);
    }

    struct Sums {
        int64_t allocated = 0;
        int64_t reserved = 0;
        std::array<int64_t, kCategoryNames.size()> by_category{};
    };

    void write_memory(Id<Device> device, std::span<const MemoryAction> actions) {
        Sums sums;
        int64_t last_ns = INT64_MIN;  // readers order by time
        for (const MemoryAction& action : actions) {
            last_ns = std::max(last_ns, action.time_ns);
            if (action.kind == MemoryAction::kSegment) {
                write_segment(trace_.allocator_events[Id<AllocatorEvent>(action.row)], sums,
                              last_ns);
            } else {
                write_block(action, device, sums, last_ns);
            }
        }
    }

    void write_segment(const AllocatorEvent& event, Sums& sums, int64_t time_ns) {
        const int64_t process = process_of(event.device);
        const bool on_host = is_host(trace_, event.device);
        switch (event.action) {
            case AllocatorAction::kSegmentAlloc:
            case AllocatorAction::kSegmentMap:
                sums.reserved += event.size_bytes;
                break;
            case AllocatorAction::kSegmentFree:
            case AllocatorAction::kSegmentUnmap:
                sums.reserved -= event.size_bytes;
                break;
            case AllocatorAction::kOom:
                list_.add(R"({{"ph": "i", "s": "t", "cat": "cpu_instant_event", )"
                          R"("name": "[OutOfMemory]", "pid": {}, "tid": {}, "ts": {}, )"
                          R"("args": {{"Total Reserved": {}, "Total Allocated": {}, "Bytes": {}, )"
                          R"("Device Id": {}, "Device Type": {}}}}})",
                          kHostProcess, kFirstThread, Microseconds{time_ns}, sums.reserved,
                          sums.allocated, event.size_bytes, on_host ? -1 : process,
                          on_host ? 0 : 1);
                return;
            default:
                return;
        }
        list_.add(
            R"({{"ph": "C", "name": "reserved", "pid": {}, "ts": {}, "args": {{"bytes": {}}}}})",
            process, Microseconds{time_ns}, sums.reserved);
    }

    void write_block(const MemoryAction& action, Id<Device> device, Sums& sums, int64_t time_ns) {
        const Id<Allocation> row(action.row);
        const Allocation block = trace_.allocations[row];
        const bool is_free = action.kind == MemoryAction::kFree;
        const bool on_host = is_host(trace_, device);
        const int64_t bytes = is_free ? -block.block_bytes : block.block_bytes;
        const auto category = category_of_block(trace_, row);
        int64_t& of_category = sums.by_category[static_cast<std::size_t>(category)];
        sums.allocated += bytes;
        of_category += bytes;
        const Id<Op> op = is_free ? block.freeing_op : block.op;
        const int64_t track = op.valid() ? track_of(trace_.ops.get<&Op::thread>(op)) : kNoOpTrack;
        more_.clear();
        if (block.address > 0) more_ = fmt::format(R"("Addr": {}, )", block.address);
        if (!is_free && block.stack.valid()) more_ += call_stacks_.argument(block.stack);
        list_.add(
            R"({{"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": {}, )"
            R"("tid": {}, "ts": {}, "args": {{"Total Reserved": {}, "Total Allocated": {}, )"
            R"("Bytes": {}, {}"Device Id": {}, "Device Type": {}, "Ev Idx": {}}}}})",
            kHostProcess, track, Microseconds{time_ns}, sums.reserved, sums.allocated, bytes, more_,
            on_host ? -1 : process_of(device), on_host ? 0 : 1, action.event);
        list_.add(R"({{"ph": "C", "name": "allocated {}", "pid": {}, "ts": {}, )"
                  R"("args": {{"bytes": {}}}}})",
                  name_of(category), process_of(device), Microseconds{time_ns}, of_category);
    }

    const Trace& trace_;
    OutputFile& file_;
    JsonList list_;
    JsonTexts texts_;
    ChromeCollectives collectives_;
    CallStacks call_stacks_;
    std::vector<int64_t> device_numbers_;
    std::vector<std::vector<int64_t>> open_until_ns_;   // of each track with annotations
    std::unordered_map<int64_t, std::size_t> call_of_;  // by correlation id
    int64_t num_arrows_ = 0;
    std::string sequence_, more_;
};

}  // namespace

models::Result<void> write_chrome_trace(const Trace& trace, const std::filesystem::path& path) {
    auto file = OutputFile::create(path);
    if (!file) return tl::unexpected(file.error());
    ChromeWriter(trace, *file).write();
    return file->finish();
}

}  // namespace profiler
