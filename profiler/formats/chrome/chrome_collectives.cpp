#include "profiler/formats/chrome/chrome_collectives.h"

#include "profiler/formats/kineto/scalar_type_names.h"
#include "profiler/formats/parts/json_text.h"
#include "profiler/trace/element_bytes.h"

#include <fmt/format.h>

namespace profiler {

ChromeCollectives::ChromeCollectives(const Trace& trace) : trace_(trace) {
    for (std::size_t i = 0; i < trace.collectives.size(); ++i) {
        const Id<Collective> row(i);
        by_op_.emplace(trace.collectives.get<&Collective::op>(row).value, row);
        const Id<Kernel> kernel = trace.collectives.get<&Collective::kernel>(row);
        if (kernel.valid()) by_kernel_.emplace(kernel.value, row);
    }
}

std::string ChromeCollectives::find(const Rows& rows, int32_t row) const {
    const auto found = rows.find(row);
    if (found == rows.end()) return {};
    const Collective collective = trace_.collectives[found->second];
    // A type whose size is not known counts as bytes.
    const bool is_known = element_bytes(collective.dtype) > 0;
    const DType dtype = is_known ? collective.dtype : DType::kUInt8;
    std::string text = fmt::format(
        R"(, "Collective name": "{}", "dtype": "{}", "In msg nelems": {}, )"
        R"("Out msg nelems": {})",
        name_of(collective.kind), kScalarTypeNames[static_cast<std::size_t>(dtype)],
        collective.in_bytes / element_bytes(dtype), collective.out_bytes / element_bytes(dtype));
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

}  // namespace profiler
