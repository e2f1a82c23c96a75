#include "profiler/capture/values/value_reads.h"

#include "profiler/capture/call_stacks.h"
#include "profiler/capture/torch_adapter/torch_stacks.h"
#include "profiler/capture/values/rank_messages.h"
#include "profiler/capture/values/tensor_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

namespace profiler {
namespace {

/// More bytes than a list of lengths has: a tensor that moves to the host.
constexpr std::size_t kMostBytesOfNumbers = std::size_t{64} << 10;

struct OpOnThread {
    const OpTraits* op = nullptr;
    at::ScalarType dtype = at::ScalarType::Undefined;  // of its first tensor
};
thread_local std::vector<OpOnThread> ops_on_thread;

at::ScalarType dtype_of_first(std::span<const c10::IValue> inputs) {
    for (const c10::IValue& input : inputs) {
        if (input.isTensor() && input.toTensor().defined()) return input.toTensor().scalar_type();
    }
    return at::ScalarType::Undefined;
}

/// Of a read whose op is not known, by what its bytes usually are.
ValueReadKind usual_kind(std::size_t size) {
    if (size > sizeof(int64_t)) return ValueReadKind::kCopy;
    return size == sizeof(bool)      ? ValueReadKind::kBranch
           : size == sizeof(int64_t) ? ValueReadKind::kInteger
                                     : ValueReadKind::kNumber;
}

ValueReadKind kind_of_read(std::size_t size) {
    if (ops_on_thread.empty()) return usual_kind(size);
    const auto sizes_itself = [](const OpOnThread& running) {
        return running.op->sizes_its_result;
    };
    if (std::ranges::any_of(ops_on_thread, sizes_itself)) return ValueReadKind::kSize;
    const at::ScalarType dtype = ops_on_thread.back().dtype;
    if (size > kMostBytesOfNumbers || dtype == at::ScalarType::Undefined) {
        return ValueReadKind::kCopy;
    }
    if (dtype == at::kBool) return ValueReadKind::kBranch;
    if (at::isIntegralType(dtype, /*includeBool=*/false)) return ValueReadKind::kInteger;
    return size <= sizeof(double) ? ValueReadKind::kNumber : ValueReadKind::kCopy;
}

/// The lines of this thread, the innermost first. A thread of backward has none.
std::vector<PythonLine> lines_here() {
    const PythonStacks text = text_of({gather_python_stack()});
    std::vector<PythonLine> lines;
    for (const uint64_t place : text.stacks.front()) {
        lines.push_back(text.lines[static_cast<std::size_t>(place)]);
    }
    return lines;
}

/// A checkpoint has the bytes of tensors, and nothing in the program depends on them.
bool saves_a_file(const std::vector<PythonLine>& lines) {
    return std::ranges::any_of(lines, [](const PythonLine& line) {
        return line.function.find("save") != std::string::npos &&
               line.file.ends_with("torch/serialization.py");
    });
}

constexpr int64_t kMostRounds = 2000;

class ValueReads {
public:
    static ValueReads& instance() {
        static auto* const reads = new ValueReads;
        return *reads;
    }

    void set_folders(std::string hidden, std::string torch) {
        hidden_ = std::move(hidden);
        torch_ = std::move(torch);
    }

    bool add(ValueReadKind kind, std::string_view answer, const ExpertChoice& choice) {
        const std::vector<PythonLine> lines = lines_here();
        const auto own = std::ranges::find_if_not(lines, [&](const PythonLine& line) {
            return line.file.starts_with(torch_) || line.file.starts_with("<");
        });
        if (own != lines.end() && own->file.starts_with(hidden_)) return true;
        if (is_value_read(kind) && saves_a_file(lines)) kind = ValueReadKind::kCopy;
        const std::string op = ops_on_thread.empty() ? "" : ops_on_thread.front().op->name;
        const std::lock_guard lock(mutex_);
        const std::string text = text_of_lines(lines);
        Read& read = reads_[{text, op, kind, std::string(answer)}];
        if (!op.empty()) take_unnamed(text, answer, read);
        ++read.count;
        if (choice.num_tokens > read.choice.num_tokens) read.choice = choice;
        if (read.lines.empty()) read.lines = lines;
        if (++read.rounds < kMostRounds || own == lines.end()) return true;
        if (!is_value_read(kind)) return false;
        if (!decides(kind)) return true;
        read.rounds = 0;
        throw std::runtime_error(
            fmt::format("Temposcope ends a loop: {}:{} has read a value {} times that the "
                        "simulated GPU does not compute, so the loop may never end.",
                        own->file, own->line, kMostRounds));
    }

    bool has_routing() {
        const std::lock_guard lock(mutex_);
        return std::ranges::any_of(reads_, [](const auto& entry) {
            return std::get<ValueReadKind>(entry.first) == ValueReadKind::kRouting;
        });
    }

    void begin_rounds() {
        const std::lock_guard lock(mutex_);
        for (auto& [key, read] : reads_) read.rounds = 0;
    }

    void write(StackRows& stacks, Trace& trace) {
        const std::lock_guard lock(mutex_);
        for (auto& [key, read] : reads_) {
            if (!read.row.valid()) read.row = add_row(key, read, stacks, trace);
            Table<ValueRead>& table = trace.value_reads;
            table.set<&ValueRead::count>(read.row, read.count);
            table.set<&ValueRead::num_tokens>(read.row, read.choice.num_tokens);
            table.set<&ValueRead::num_experts>(read.row, read.choice.num_experts);
            table.set<&ValueRead::experts_per_token>(read.row, read.choice.experts_per_token);
        }
    }

private:
    /// Lines, op, kind, answer.
    using Key = std::tuple<std::string, std::string, ValueReadKind, std::string>;
    struct Read {
        std::vector<PythonLine> lines;  // the innermost first
        int64_t count = 0;
        int64_t rounds = 0;   // since the last step
        ExpertChoice choice;  // the one of the most tokens
        Id<ValueRead> row;
    };

    /// The first read of all did not know its op: it is one of the same lines.
    void take_unnamed(const std::string& text, std::string_view answer, Read& read) {
        const auto is_unnamed = [&](const auto& entry) {
            const auto& [lines, op, kind, given] = entry.first;
            return op.empty() && lines == text && given == answer && !entry.second.row.valid();
        };
        const auto unnamed = std::ranges::find_if(reads_, is_unnamed);
        if (unnamed == reads_.end()) return;
        read.count += unnamed->second.count;
        if (read.lines.empty()) read.lines = std::move(unnamed->second.lines);
        reads_.erase(unnamed);
    }

    static std::string text_of_lines(const std::vector<PythonLine>& lines) {
        std::string text;
        for (const PythonLine& line : lines) {
            text += fmt::format("{}:{}\n", line.file, line.line);
        }
        return text;
    }

    Id<ValueRead> add_row(const Key& key, const Read& read, StackRows& stacks, Trace& trace) const {
        Id<Stack> stack;
        for (auto line = read.lines.rbegin(); line != read.lines.rend(); ++line) {
            if (line->file.starts_with(hidden_)) continue;
            stack = stacks.add(
                stack,
                {.function = line->function, .file = line->file, .line = line->line, .code = {}});
        }
        const auto& [lines, op, kind, answer] = key;
        return trace.value_reads.append({.stack = stack,
                                         .op = trace.strings.intern(op),
                                         .kind = kind,
                                         .answer = trace.strings.intern(answer)});
    }

    std::mutex mutex_;
    std::string hidden_, torch_;  // folders
    std::map<Key, Read> reads_;
};

/// Null: none runs on this thread.
const char* innermost_op() {
    return ops_on_thread.empty() ? nullptr : ops_on_thread.back().op->name.c_str();
}

std::atomic<void (*)()> on_first_read = nullptr;

bool on_unknown_read(const void* address, std::size_t size) {
    if (keep_promise(address, size)) return true;
    if (void (*const follow)() = on_first_read.exchange(nullptr)) follow();
    ValueReads::instance().add(kind_of_read(size), "zeros", {});
    return false;
}

}  // namespace

void count_value_reads(std::string hidden, std::string torch) {
    ValueReads::instance().set_folders(std::move(hidden), std::move(torch));
    device_values()->set_on_unknown_read(&on_unknown_read);
    device_values()->set_op_name(&innermost_op);
}

void call_on_first_read(void (*follow)()) { on_first_read = follow; }

void enter_op(const OpTraits& op, std::span<const c10::IValue> inputs) {
    ops_on_thread.push_back({&op, dtype_of_first(inputs)});
}

void leave_op() {
    if (!ops_on_thread.empty()) ops_on_thread.pop_back();
}

bool count_assumption(ValueReadKind kind, std::string_view answer, const ExpertChoice& choice) {
    return ValueReads::instance().add(kind, answer, choice);
}

bool has_assumed_routing() { return ValueReads::instance().has_routing(); }

void begin_rounds() { ValueReads::instance().begin_rounds(); }

void write_value_reads(StackRows& stacks, Trace& trace) {
    ValueReads::instance().write(stacks, trace);
}

}  // namespace profiler
