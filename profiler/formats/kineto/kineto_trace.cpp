#include "profiler/formats/kineto/kineto_trace.h"

#include "profiler/formats/kineto/kineto_events.h"
#include "profiler/formats/kineto/kineto_memory.h"
#include "profiler/formats/kineto/kineto_ops.h"
#include "profiler/formats/parts/byte_stream.h"
#include "profiler/formats/parts/shift_times.h"
#include "profiler/formats/parts/span_tree.h"
#include "profiler/formats/parts/steps_and_phases.h"
#include "profiler/trace/text.h"
#include "profiler/trace/trace_notes.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

namespace profiler::kineto {
namespace {

constexpr std::string_view kModulePrefix = "nn.Module: ";

/// "modeling_bert.py(12): forward" as a frame; a text of another form is its function.
Frame frame_of(std::string_view name, StringTable& strings) {
    const auto close = name.find("): ");
    const auto open = close == std::string_view::npos ? close : name.rfind('(', close);
    Frame frame{.function = strings.intern(name), .file = strings.intern("")};
    if (open == std::string_view::npos) return frame;
    int64_t line = 0;
    const auto read = std::from_chars(name.data() + open + 1, name.data() + close, line);
    if (read.ec != std::errc() || read.ptr != name.data() + close) return frame;
    const std::string function(name.substr(close + 3)), file(name.substr(0, open));
    return {.function = strings.intern(function), .file = strings.intern(file), .line = line};
}

/// Frames and stacks, each once.
class StackTable {
public:
    explicit StackTable(Trace& trace) : trace_(trace) {}

    Id<Stack> push(Id<Stack> parent, StringId name) {
        const auto [known, is_new] = stacks_.try_emplace({parent.value, name.value});
        if (is_new) {
            known->second = trace_.stacks.append({.parent = parent, .frame = frame(name)});
        }
        return known->second;
    }

private:
    Id<Frame> frame(StringId name) {
        const auto [known, is_new] = frames_.try_emplace(name.value);
        if (is_new) {
            const std::string text(trace_.text(name));
            known->second = trace_.frames.append(frame_of(text, trace_.strings));
        }
        return known->second;
    }
    Trace& trace_;
    std::map<std::pair<int32_t, int32_t>, Id<Stack>> stacks_;
    std::map<int32_t, Id<Frame>> frames_;
};

/// The class and the number of "BertLayer_3".
struct Instance {
    std::string_view class_name;
    int64_t number = 0;
};

Instance instance_of(std::string_view name) {
    const auto underscore = name.rfind('_');
    if (underscore == std::string_view::npos) return {name};
    int64_t number = 0;
    const char* const end = name.data() + name.size();
    const auto read = std::from_chars(name.data() + underscore + 1, end, number);
    if (read.ec != std::errc() || read.ptr != end || number < 0) return {name};
    return {name.substr(0, underscore), number};
}

bool is_layer(std::string_view class_name) {
    return class_name.ends_with("Layer") || class_name.ends_with("Block");
}

/// Module paths, each once, by the modules of which they consist.
class ModuleTable {
public:
    explicit ModuleTable(Trace& trace) : trace_(trace) {}

    Id<ModulePath> child(Id<ModulePath> parent, StringId name) {
        const auto [known, is_new] = paths_.try_emplace({parent.value, name.value});
        if (is_new) known->second = add(parent, name);
        return known->second;
    }

private:
    /// A path holds its parent's path, so its length has a limit.
    static constexpr std::size_t kMostPathBytes = 4096;
    static constexpr int kMostParts = 64;

    Id<ModulePath> add(Id<ModulePath> parent, StringId name) {
        const std::string text(trace_.text(name).substr(kModulePrefix.size()));
        if (text.find('.') != std::string::npos) return add_path(text);
        const Instance instance = instance_of(text);
        std::string path(parent.valid()
                             ? trace_.text(trace_.module_paths.get<&ModulePath::path>(parent))
                             : std::string_view());
        if (path.size() > kMostPathBytes) return parent;
        if (!path.empty()) path += '.';
        path += instance.class_name;
        int64_t layer = parent.valid() ? trace_.module_paths.get<&ModulePath::layer>(parent) : -1;
        if (layer < 0 && is_layer(instance.class_name)) {
            layer = instance.number;
            path += fmt::format(".{}", layer);
        } else {
            const int64_t earlier = siblings_[{parent.value, std::string(instance.class_name)}]++;
            if (earlier > 0) path += fmt::format("_{}", earlier);
        }
        return trace_.module_paths.append(
            {.path = trace_.strings.intern(path), .parent = parent, .layer = layer});
    }

    /// "encoder.layer.3.attention" of a file that Temposcope wrote: a whole path, in layer 3, with
    /// the modules around it.
    Id<ModulePath> add_path(std::string_view path) {
        ModulePath module;
        std::size_t first = 0;
        for (int depth = 0; depth < kMostParts && first <= path.size(); ++depth) {
            const std::size_t end = std::min(path.find('.', first), path.size());
            int64_t number = -1;
            const auto read = std::from_chars(path.data() + first, path.data() + end, number);
            const bool is_number = read.ec == std::errc() && read.ptr == path.data() + end;
            if (module.layer < 0 && is_number) module.layer = number;
            module.path = trace_.strings.intern(path.substr(0, end));
            const auto [known, is_new] = whole_paths_.try_emplace(module.path.value);
            if (is_new) known->second = trace_.module_paths.append(module);
            module.parent = known->second;
            if (end > kMostPathBytes) break;
            first = end + 1;
        }
        return module.parent;
    }

    Trace& trace_;
    std::map<std::pair<int32_t, int32_t>, Id<ModulePath>> paths_;
    std::map<int32_t, Id<ModulePath>> whole_paths_;  // by the row of their text
    std::map<std::pair<int32_t, std::string>, int64_t> siblings_;
};

/// The Python functions of one thread, each with its stack and its module.
class PythonThread {
public:
    PythonThread(const KinetoEvents& events, std::vector<SpanTree::Node> nodes, StackTable& stacks,
                 ModuleTable& modules, const Trace& trace)
        : tree_(std::move(nodes)) {
        stacks_.resize(tree_.nodes().size());
        modules_.resize(tree_.nodes().size());
        std::vector<std::size_t> depths(tree_.nodes().size());
        for (std::size_t i = 0; i < tree_.nodes().size(); ++i) {
            const SpanTree::Node& node = tree_.nodes()[i];
            const StringId name = events.spans[node.item].name;
            const auto parent = static_cast<std::size_t>(std::max(node.parent, 0));
            const bool has_parent = node.parent >= 0;
            const Id<Stack> outer = has_parent ? stacks_[parent] : Id<Stack>();
            depths[i] = has_parent ? depths[parent] + 1 : 0;
            modules_[i] = has_parent ? modules_[parent] : Id<ModulePath>();
            stacks_[i] = depths[i] < kMostStackFrames ? stacks.push(outer, name) : outer;
            if (trace.text(name).starts_with(kModulePrefix)) {
                // A path holds its parent's path, so its depth has a limit, too.
                if (depths[i] < kMostStackFrames) modules_[i] = modules.child(modules_[i], name);
            } else {
                has_functions_ = true;
            }
        }
    }
    bool empty() const { return tree_.nodes().empty(); }
    bool has_functions() const { return has_functions_; }
    /// Modules alone are no call stack.
    Id<Stack> stack_at(int64_t time_ns) const {
        return has_functions_ ? at(stacks_, time_ns) : Id<Stack>();
    }
    Id<ModulePath> module_at(int64_t time_ns) const { return at(modules_, time_ns); }

private:
    template <typename T>
    T at(const std::vector<T>& values, int64_t time_ns) const {
        const int32_t node = tree_.innermost(time_ns);
        return node < 0 ? T() : values[static_cast<std::size_t>(node)];
    }
    SpanTree tree_;
    bool has_functions_ = false;
    std::vector<Id<Stack>> stacks_;
    std::vector<Id<ModulePath>> modules_;
};

/// The Python functions of each thread of the file. Since 2025 they may be on a thread "0" of their
/// own: if there is one such thread, its functions are those of the main thread.
std::vector<std::vector<SpanTree::Node>> functions_by_thread(const KinetoEvents& events,
                                                             int64_t start_ns, const OpRows& ops) {
    std::vector<std::vector<SpanTree::Node>> nodes(events.threads.size());
    for (std::size_t i = 0; i < events.spans.size(); ++i) {
        const HostSpan& span = events.spans[i];
        if (span.kind != SpanKind::kPython) continue;
        nodes[static_cast<std::size_t>(span.thread)].push_back(
            {span.start_ns - start_ns, span.end_ns - start_ns, static_cast<uint32_t>(i), -1});
    }
    std::vector<std::size_t> apart;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const bool has_ops = !ops.tree(static_cast<int32_t>(i)).nodes().empty();
        if (!nodes[i].empty() && !has_ops) apart.push_back(i);
    }
    const auto main = static_cast<std::size_t>(std::max(ops.main_thread(), 0));
    if (apart.size() == 1 && ops.main_thread() >= 0 && nodes[main].empty()) {
        std::swap(nodes[main], nodes[apart[0]]);
    }
    return nodes;
}

/// The stack of "a.py(12): f;b.py(3): g", the innermost frame first.
Id<Stack> stack_of_text(std::string_view text, StackTable& stacks, StringTable& strings) {
    std::vector<std::string> frames;
    while (!text.empty() && frames.size() < kMostStackFrames) {
        const auto end = std::min(text.find(';'), text.size());
        if (end > 0) frames.emplace_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    Id<Stack> stack;
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
        stack = stacks.push(stack, strings.intern(*frame));
    }
    return stack;
}

/// The stacks that stand in the file, as texts or frame by frame, each made once.
class FileStacks {
public:
    FileStacks(const KinetoEvents& events, StackTable& stacks, Trace& trace)
        : stacks_(stacks), trace_(trace) {
        for (const StackFrameEvent& frame : events.stack_frames) {
            const auto parent = by_number_.find(frame.parent);
            const Chain outer = parent == by_number_.end() ? Chain{} : parent->second;
            if (frame.id < 0) continue;
            if (outer.depth >= kMostStackFrames) {  // without the innermost frames
                by_number_.try_emplace(frame.id, outer);
                continue;
            }
            by_number_.try_emplace(frame.id,
                                   Chain{stacks_.push(outer.stack, frame.name), outer.depth + 1});
        }
    }

    Id<Stack> operator[](const StackOfEvent& stack) {
        const auto found = by_number_.find(stack.id);
        if (found != by_number_.end()) return found->second.stack;
        return stack.text.valid() ? of_text(stack.text) : Id<Stack>();
    }

private:
    struct Chain {
        Id<Stack> stack;
        std::size_t depth = 0;
    };

    Id<Stack> of_text(StringId id) {
        const auto [stack, is_new] = by_text_.try_emplace(id.value);
        const std::string text(trace_.text(id));
        if (is_new) stack->second = stack_of_text(text, stacks_, trace_.strings);
        return stack->second;
    }

    StackTable& stacks_;
    Trace& trace_;
    std::unordered_map<int64_t, Chain> by_number_;
    std::map<int32_t, Id<Stack>> by_text_;
};

void add_stacks_of_ops(const KinetoEvents& events, int64_t start_ns, const OpRows& ops,
                       FileStacks& stacks, Trace& trace) {
    std::vector<Id<Stack>> stack_of_op(trace.ops.size());
    for (const HostSpan& span : events.spans) {
        if (span.kind != SpanKind::kOp || !span.call_stack.valid()) continue;
        const Id<Op> op = ops.innermost(span.thread, span.start_ns - start_ns);
        if (!op.valid()) continue;
        stack_of_op[op.index()] = stacks[{.text = span.call_stack}];
    }
    const auto parents = trace.ops.column<&Op::parent>();
    for (std::size_t i = 0; i < parents.size(); ++i) {  // parents come before their children
        const bool inherits = !stack_of_op[i].valid() && parents[i].valid();
        if (inherits) stack_of_op[i] = stack_of_op[parents[i].index()];
    }
    for (const Id<Allocation> id : trace.allocations.ids()) {
        const Id<Op> op = trace.allocations.get<&Allocation::op>(id);
        if (!op.valid()) continue;
        trace.allocations.set<&Allocation::stack>(id, stack_of_op[op.index()]);
    }
}

using PythonThreads = std::map<int32_t, PythonThread>;  // by row of `thread`

PythonThreads python_threads(const KinetoEvents& events, int64_t start_ns, const OpRows& ops,
                             StackTable& stacks, Trace& trace) {
    ModuleTable modules(trace);
    auto nodes = functions_by_thread(events, start_ns, ops);
    PythonThreads threads;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const auto& spans = ops.tree(static_cast<int32_t>(i)).nodes();
        if (nodes[i].empty() || spans.empty()) continue;
        const Id<Op> op = ops.innermost(static_cast<int32_t>(i), spans.front().start_ns);
        threads.emplace(trace.ops.get<&Op::thread>(op).value,
                        PythonThread(events, std::move(nodes[i]), stacks, modules, trace));
    }
    return threads;
}

void add_modules(const PythonThreads& threads, Trace& trace) {
    for (const Id<Op> id : trace.ops.ids()) {
        const Op op = trace.ops[id];
        const auto thread = threads.find(op.thread.value);
        if (op.forward.valid() || thread == threads.end()) continue;
        trace.ops.set<&Op::module_path>(id, thread->second.module_at(op.start_ns));
    }
    for (std::size_t i = 0; i < trace.ops.size(); ++i) {
        const Id<Op> forward = trace.ops.get<&Op::forward>(Id<Op>(i));
        if (!forward.valid()) continue;
        trace.ops.set<&Op::module_path>(Id<Op>(i), trace.ops.get<&Op::module_path>(forward));
    }
}

void add_stacks_of_functions(const PythonThreads& threads, Trace& trace) {
    for (const Id<Allocation> id : trace.allocations.ids()) {
        const Id<Op> op = trace.allocations.get<&Allocation::op>(id);
        if (!op.valid()) continue;
        const auto thread = threads.find(trace.ops.get<&Op::thread>(op).value);
        if (thread == threads.end()) continue;
        const int64_t time_ns = trace.allocations.get<&Allocation::alloc_ns>(id);
        const Id<Stack> stack = thread->second.stack_at(time_ns);
        if (stack.valid()) trace.allocations.set<&Allocation::stack>(id, stack);
    }
}

/// What the profiler's Python tracer (with_stack, with_modules) knows: the call stack of each
/// allocation, and the module of each op, as rows of `frame`, `stack` and `scope`.
///
///     nn.Module: BertModel_0 > nn.Module: BertLayer_3 > nn.Module: Linear_21
///     is the path BertModel.BertLayer.3.Linear
///
/// A class whose name ends in Layer or Block is numbered by its instances. Others are numbered
/// within their parent, from the second one on. Ops of backward belong to the module of their
/// forward op. Files of 2021 have a text with the stack of each op instead, and files that
/// Temposcope wrote have the stack of each allocation, `of_allocations`.
void add_python(const KinetoEvents& events, int64_t start_ns, OpRows& ops,
                std::span<const std::pair<Id<Allocation>, StackOfEvent>> of_allocations,
                Trace& trace) {
    StackTable stacks(trace);
    FileStacks of_file(events, stacks, trace);
    add_stacks_of_ops(events, start_ns, ops, of_file, trace);
    const PythonThreads threads = python_threads(events, start_ns, ops, stacks, trace);
    if (!threads.empty()) {
        add_modules(threads, trace);
        add_stacks_of_functions(threads, trace);
    }
    const bool has_functions = std::ranges::any_of(
        threads, [](const auto& thread) { return thread.second.has_functions(); });
    add_diagnostic(trace, {.code = kLinesOfFunctions,
                           .count = has_functions ? 1 : 0,
                           .explanation = "The lines in call stacks are those at which functions "
                                          "begin: the profiler writes no others."});
    for (const auto& [allocation, stack] : of_allocations) {
        trace.allocations.set<&Allocation::stack>(allocation, of_file[stack]);
    }
}

}  // namespace
}  // namespace profiler::kineto

namespace profiler {
namespace {

using kineto::KinetoEvents;
using models::Result;

/// Of every event but Python functions, which begin long before.
TimeExtent times_of(const KinetoEvents& events) {
    TimeExtent range;
    for (const auto& span : events.spans) {
        if (span.kind == kineto::SpanKind::kPython) continue;
        range.add(span.start_ns);
        range.add(span.end_ns);
    }
    for (const auto& work : events.work) {
        range.add(work.start_ns);
        range.add(work.end_ns);
    }
    for (const auto& change : events.memory) range.add(change.time_ns);
    return range;
}

/// A value beside the events. Its texts live as long as the object.
class SideValue {
public:
    SideValue(const KinetoEvents& events, std::string_view key) {
        const auto found = events.values.find(key);
        if (found == events.values.end()) return;
        simdjson::dom::element element;
        if (parser_.parse(found->second).get(element) == simdjson::SUCCESS) element_ = element;
    }
    const std::optional<simdjson::dom::element>& get() const { return element_; }
    /// The number `key` of an object, also when it stands in quotes.
    std::optional<int64_t> number(std::string_view key) const {
        simdjson::dom::element member;
        if (!element_ || (*element_)[key].get(member) != simdjson::SUCCESS) return std::nullopt;
        return to_number(member);
    }
    std::optional<int64_t> number() const { return element_ ? to_number(*element_) : std::nullopt; }

private:
    static std::optional<int64_t> to_number(const simdjson::dom::element& element) {
        int64_t number = 0;
        if (element.get(number) == simdjson::SUCCESS) return number;
        std::string_view text;
        if (element.get(text) != simdjson::SUCCESS) return std::nullopt;
        const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
        if (read.ec != std::errc()) return std::nullopt;
        return number;
    }
    simdjson::dom::parser parser_;
    std::optional<simdjson::dom::element> element_;
};

/// Names and sizes of the devices: deviceProperties.
void add_device_properties(const KinetoEvents& events, Trace& trace) {
    const SideValue properties(events, "deviceProperties");
    simdjson::dom::array devices;
    if (!properties.get() || properties.get()->get(devices) != simdjson::SUCCESS) return;
    for (const simdjson::dom::element device : devices) {
        int64_t number = 0, total_bytes = 0;
        if (device["id"].get(number) != simdjson::SUCCESS) continue;
        const std::string name = fmt::format("cuda:{}", number);
        for (std::size_t i = 0; i < trace.devices.size(); ++i) {
            if (trace.text(trace.devices.get<&Device::name>(Id<Device>(i))) != name) continue;
            const bool has_size = device["totalGlobalMem"].get(total_bytes) == simdjson::SUCCESS &&
                                  total_bytes > 0 && total_bytes < (int64_t{1} << 50);
            if (has_size) trace.devices.set<&Device::total_bytes>(Id<Device>(i), total_bytes);
            std::string_view model;
            const Id<Run> run(0);
            if (trace.runs.get<&Run::device_name>(run).valid()) continue;
            if (device["name"].get(model) != simdjson::SUCCESS || !is_utf8(model)) continue;
            trace.runs.set<&Run::device_name>(run, trace.strings.intern(model));
        }
    }
}

/// The versions that the file names, as a JSON object.
std::string software_of(const KinetoEvents& events) {
    std::string json;
    for (const std::string_view key :
         {"cuda_runtime_version", "cuda_driver_version", "hip_runtime_version",
          "hip_driver_version", "cupti_version"}) {
        const auto version = SideValue(events, key).number();
        if (version) json += fmt::format("{}\"{}\":{}", json.empty() ? "" : ",", key, *version);
    }
    return "{" + json + "}";
}

/// Wall clock at `first_ns`. Since 2024 times count from baseTimeNanoseconds, before from 1970.
int64_t unix_start_of(const KinetoEvents& events, int64_t first_ns) {
    const int64_t base_ns = SideValue(events, "baseTimeNanoseconds").number().value_or(0);
    const bool fits = base_ns >= 0 && base_ns < (int64_t{1} << 61) && first_ns >= 0;
    return fits ? base_ns + first_ns : 0;
}

void add_run(const KinetoEvents& events, int64_t first_ns, Trace& trace) {
    const SideValue distributed(events, "distributedInfo");
    trace.runs.append({.source = Source::kImported,
                       .time_basis = TimeBasis::kMeasured,
                       .state = RunState::kComplete,
                       .software = trace.strings.intern(software_of(events)),
                       .rank = distributed.number("rank").value_or(0),
                       .world_size = distributed.number("world_size").value_or(1),
                       .start_unix_ns = unix_start_of(events, first_ns)});
}

void add_notes(const KinetoEvents& events, Trace& trace) {
    add_diagnostic(trace, {.code = "skipped_events",
                           .count = events.unknown_events,
                           .explanation = "Events of kinds that Temposcope does not know, or "
                                          "without possible values, are left out."});
    add_diagnostic(trace, {.code = "ended_early",
                           .severity = Severity::kWarning,
                           .count = events.ended_early ? 1 : 0,
                           .explanation = "The list of events has no end: the profiler may have "
                                          "been killed, and later events are missing."});
}

}  // namespace

bool looks_like_profiler_trace(std::string_view first_bytes) {
    const std::string unpacked = unpacked_beginning(first_bytes);
    const std::string_view text = without_byte_order_mark(unpacked);
    const auto skip_space = [&](std::size_t at) {
        return std::min(text.find_first_not_of(" \t\r\n", at), text.size());
    };
    const std::size_t first = skip_space(0);
    if (first == text.size()) return false;
    const std::size_t second = skip_space(first + 1);
    if (second == text.size()) return false;
    return text[first] == '{' ? text[second] == '"' : text[first] == '[' && text[second] == '{';
}

Result<Trace> read_profiler_trace(const std::filesystem::path& path, const ReadOptions& options) {
    Trace trace;
    auto events = kineto::read_events(path, options, trace.strings);
    if (!events) return tl::unexpected(events.error());
    const auto [first_ns, last_ns] = times_of(*events);
    if (events->empty() || first_ns > last_ns) {
        return models::fail(
            "{} holds no ops, kernels or memory events of the PyTorch profiler; export it again "
            "with export_chrome_trace.",
            path.string());
    }
    if (last_ns > first_ns + kMostNanosecondsApart) {
        return models::fail(
            "{} has events {} days apart, so a time in it is wrong; export it again.",
            path.string(),
            static_cast<int64_t>((static_cast<double>(last_ns) - static_cast<double>(first_ns)) /
                                 86'400e9));
    }
    add_run(*events, first_ns, trace);
    kineto::OpRows ops(*events, first_ns, trace);
    ops.add();
    kineto::MemoryRows memory(*events, first_ns, ops, trace);
    memory.add();
    add_steps(trace, [&](int64_t time_ns) { return memory.event_at(time_ns); });
    kineto::add_python(*events, first_ns, ops, memory.call_stacks(), trace);
    infer_categories(trace);
    add_device_properties(*events, trace);
    add_notes(*events, trace);
    note_allocations_only(trace);
    note_other_devices(trace);
    if (options.progress && !options.progress(1)) {
        return models::fail("Reading {} was cancelled.", path.string());
    }
    return trace;
}

}  // namespace profiler
