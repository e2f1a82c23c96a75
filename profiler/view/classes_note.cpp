#include "profiler/view/classes_note.h"

#include "profiler/analysis/run_text.h"

namespace profiler {

std::string_view classes_note(const Trace& trace) {
    return has_inferred_categories(trace) ? kClassesInferred : std::string_view();
}

}  // namespace profiler
