#include "app/workspace/search_requests.h"

#include "app/workspace/view_requests.h"

#include <algorithm>

namespace app {
namespace {

bool are_the_same(const std::vector<std::weak_ptr<const Document>>& cached,
                  const std::vector<DocumentPtr>& wanted) {
    return std::equal(
        cached.begin(), cached.end(), wanted.begin(), wanted.end(),
        [](const auto& one, const DocumentPtr& other) { return one.lock() == other; });
}

}  // namespace

std::optional<Wanted<SearchRequest>> wanted_search(const SlotInputs& inputs) {
    const Selection& selection = inputs.selection;
    if (!inputs.search.is_open || !selection.a) return std::nullopt;
    SearchRequest request{{selection.a}, inputs.search.text};
    if (selection.b) request.documents.push_back(selection.b);
    return Wanted<SearchRequest>{.request = std::move(request),
                                 .documents = {selection.a, selection.b}};
}

models::Result<profiler::SearchView> Searcher::operator()(const SearchRequest& request) const {
    if (!cache_->index || !are_the_same(cache_->documents, request.documents)) {
        std::vector<profiler::SearchSource> sources;
        for (const DocumentPtr& document : request.documents) {
            sources.push_back({document->trace.get(), &document->storage_names});
        }
        cache_->index =
            std::make_shared<const profiler::SearchIndex>(profiler::build_search_index(sources));
        cache_->documents.assign(request.documents.begin(), request.documents.end());
    }
    return profiler::search(cache_->index, request.text);
}

}  // namespace app
