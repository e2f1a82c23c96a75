#include "profiler/trace/contents_text.h"

#include "models/config/names.h"
#include "profiler/trace/trace_notes.h"

#include <fmt/format.h>

namespace profiler {
namespace {

constexpr std::string_view kSeparator = ": ";
constexpr std::string_view kSaved = ", saved ";

/// Reads "[1024, 256] float32" behind the name.
void parse_saved(std::string_view text, BlockContents& contents) {
    const std::size_t shape_end = text.find("] ");
    if (shape_end == std::string_view::npos) return;
    const auto dtype = models::find_name<DType>(kDTypeNames, text.substr(shape_end + 2));
    contents.is_saved = true;
    contents.shape = text.substr(0, shape_end + 1);
    contents.dtype = dtype.value_or(DType::kOther);
}

/// What the marks of a stack tell, which are its innermost frames, the newest first. Of several
/// tensors of one category, the first names the block.
std::optional<BlockContents> contents_of(const Trace& trace, Id<Stack> stack) {
    std::optional<BlockContents> found;
    while (stack.valid()) {
        const Stack row = trace.stacks[stack];
        const Frame frame = trace.frames[row.frame];
        if (trace.text(frame.file) != kUserMetadataFile) break;
        const auto contents = parse_contents(trace.text(frame.function));
        if (contents && (!found || found->category == contents->category)) found = contents;
        stack = row.parent;
    }
    return found;
}

void add_tensor(Trace& trace, Id<Storage> storage, const BlockContents& contents) {
    if (contents.name.empty() && !contents.is_saved) return;
    const std::string name(contents.name), shape(contents.shape);  // the table may move its texts
    const auto tensor = trace.tensors.append({.storage = storage,
                                              .name = trace.strings.intern(name),
                                              .shape = trace.strings.intern(shape),
                                              .dtype = contents.dtype});
    if (!contents.is_saved) return;
    const Id<Allocation> row = trace.storages.get<&Storage::allocation>(storage);
    trace.saves.append(
        {.storage = storage,
         .tensor = tensor,
         .saved_event = trace.allocations.get<&Allocation::alloc_event>(row),
         .released_event = trace.allocations.get<&Allocation::free_requested_event>(row)});
}

/// Beside the note that classes are inferred, which then holds for the other blocks; in its place
/// if the file tells all.
void note_told(Trace& trace, int64_t num_told) {
    const NewDiagnostic note{.code = kToldCategories,
                             .count = num_told,
                             .explanation = "The file tells what these blocks contain."};
    const auto num_others = static_cast<int64_t>(trace.storages.size()) - num_told;
    for (const Id<Diagnostic> id : trace.diagnostics.ids()) {
        const StringId code = trace.diagnostics.get<&Diagnostic::code>(id);
        if (trace.text(code) != kInferredCategories) continue;
        trace.diagnostics.set<&Diagnostic::count>(id, num_others > 0 ? num_others : num_told);
        if (num_others > 0) continue;
        trace.diagnostics.set<&Diagnostic::code>(id, trace.strings.intern(note.code));
        trace.diagnostics.set<&Diagnostic::explanation>(id, trace.strings.intern(note.explanation));
        return;
    }
    add_diagnostic(trace, note);
}

}  // namespace

std::string to_text(Category category, std::string_view name) {
    if (name.empty()) return std::string(name_of(category));
    return fmt::format("{}{}{}", name_of(category), kSeparator, name);
}

std::optional<BlockContents> parse_contents(std::string_view text) {
    const std::size_t end = text.find(kSeparator);
    const auto category = models::find_name<Category>(kCategoryNames, text.substr(0, end));
    if (!category) return std::nullopt;
    BlockContents contents{.category = *category};
    if (end == std::string_view::npos) return contents;
    contents.name = text.substr(end + kSeparator.size());
    const std::size_t saved = contents.name.rfind(kSaved);
    if (saved == std::string_view::npos) return contents;
    parse_saved(contents.name.substr(saved + kSaved.size()), contents);
    if (contents.is_saved) contents.name = contents.name.substr(0, saved);
    return contents;
}

void take_contents(Trace& trace) {
    int64_t num_told = 0;
    for (const Id<Storage> id : trace.storages.ids()) {
        const Id<Allocation> allocation = trace.storages.get<&Storage::allocation>(id);
        if (!allocation.valid()) continue;
        const Id<Stack> stack = trace.allocations.get<&Allocation::stack>(allocation);
        const auto contents = contents_of(trace, stack);
        if (!contents) continue;
        trace.storages.set<&Storage::category>(id, contents->category);
        add_tensor(trace, id, *contents);
        ++num_told;
    }
    if (num_told > 0) note_told(trace, num_told);
}

}  // namespace profiler
