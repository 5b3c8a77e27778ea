// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/cpp_objects.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <string_view>

#include <fmt/format.h>

namespace tidemark::heap {
namespace {

constexpr std::uint64_t kLowestAddress = 4096;
constexpr std::uint64_t kMostObjectBytes = 4096;  // of what is read of one
constexpr std::uint64_t kMostChunkBytes = 4U << 20U;
constexpr std::uint64_t kMostBufferBytes = 4U << 20U;
constexpr std::uint64_t kMostStorageBytes = std::uint64_t{1} << 42U;
constexpr std::uint64_t kMostElements = std::uint64_t{1} << 42U;
constexpr std::uint64_t kMostDimensions = 64;
// As many sizes are in the tensor itself; more are elsewhere.
constexpr std::uint64_t kSizesInside = 5;
constexpr std::uint64_t kBetweenQuestions = 16U << 20U;
constexpr std::uint64_t kWordsOfPage = MemoryImage::kPageBytes / 8;

// From where the sizes of a tensor are. After it follow what a subclass adds.
constexpr std::uint32_t kStorageOffset = 88;
constexpr std::uint32_t kElements = 96;
constexpr std::uint32_t kDtype = 104;
constexpr std::uint32_t kTensorDevice = 106;
constexpr std::uint32_t kEndOfTensor = 112;
// From where the data of a storage are.
constexpr std::uint32_t kFree = 8;
constexpr std::uint32_t kContext = 16;
constexpr std::uint32_t kStorageDevice = 24;
constexpr std::uint32_t kStorageBytes = 32;
// The gradient of a tensor; the operation that has made it follows.
constexpr std::uint64_t kGradient = 40;

constexpr int kMostAttempts = 8;
constexpr std::uint64_t kNearBytes = 8U << 20U;
constexpr std::size_t kMostSamples = 256;

constexpr std::string_view kDtypes[] = {"uint8",           "int8",
                                        "int16",           "int32",
                                        "int64",           "float16",
                                        "float32",         "float64",
                                        "complex32",       "complex64",
                                        "complex128",      "bool",
                                        "qint8",           "quint8",
                                        "qint32",          "bfloat16",
                                        "quint4x2",        "quint2x4",
                                        "bits1x8",         "bits2x4",
                                        "bits4x2",         "bits8",
                                        "bits16",          "float8_e5m2",
                                        "float8_e4m3fn",   "float8_e5m2fnuz",
                                        "float8_e4m3fnuz", "uint16",
                                        "uint32",          "uint64"};
constexpr std::string_view kDevices[] = {"cpu", "cuda", "mkldnn",       "opengl", "opencl", "ideep",
                                         "hip", "fpga", "maia",         "xla",    "vulkan", "metal",
                                         "xpu", "mps",  "meta",         "hpu",    "ve",     "lazy",
                                         "ipu", "mtia", "privateuseone"};

std::string dtype_name(std::uint16_t dtype) {
  return dtype < std::size(kDtypes) ? std::string(kDtypes[dtype]) : fmt::format("dtype {}", dtype);
}

// Of its kind, and which one of several.
std::string device_name(std::int8_t kind, std::int8_t index) {
  if (kind < 0 || static_cast<std::size_t>(kind) >= std::size(kDevices)) {
    return fmt::format("device {}", kind);
  }
  const std::string_view name = kDevices[kind];
  return index < 0 || kind == 0 ? std::string(name) : fmt::format("{}:{}", name, index);
}

bool can_be_object(std::uint64_t address) { return address >= kLowestAddress && address % 8 == 0; }

// Whole pages that are data of large tensors: no object is there.
class DataRanges {
 public:
  void add(std::uint64_t data, std::uint64_t bytes) {
    constexpr std::uint64_t kLeastBytes = 64U << 10U;
    constexpr std::uint64_t kPage = MemoryImage::kPageBytes;
    if (bytes >= kLeastBytes) {
      std::uint64_t& end = ends_[(data + kPage - 1) / kPage * kPage];
      end = std::max(end, (data + bytes) / kPage * kPage);
    }
  }
  // The first part of a range that is none of them; empty, at its end: all of it is.
  AddressRange first_gap(AddressRange range) const {
    auto next = ends_.upper_bound(range.begin);
    if (next != ends_.begin()) {
      range.begin = std::min(range.end, std::max(range.begin, std::prev(next)->second));
    }
    while (next != ends_.end() && next->first <= range.begin) {
      range.begin = std::min(range.end, std::max(range.begin, next->second));
      ++next;
    }
    return {range.begin, next == ends_.end() ? range.end : std::min(range.end, next->first)};
  }

 private:
  std::map<std::uint64_t, std::uint64_t> ends_;  // by begin
};

// The candidate that is right for most of the samples, and for more than half of them.
template <typename IsRight>
std::uint32_t most_often(std::uint32_t first, std::uint32_t last,
                         std::span<const std::uint64_t> samples, IsRight is_right) {
  std::uint32_t best = 0xffffffff;
  auto most = static_cast<std::ptrdiff_t>(samples.size() / 2);
  for (std::uint32_t offset = first; offset <= last; offset += 8) {
    const auto votes = std::count_if(samples.begin(), samples.end(), [&](std::uint64_t sample) {
      return is_right(sample + offset);
    });
    if (votes > most) {
      most = votes;
      best = offset;
    }
  }
  return best;
}

}  // namespace

// What an object refers to, found by looking at all of its words: objects of torch, buffers of
// vectors with such in them, and what may be of Python.
class CppObjects::Parts {
 public:
  Parts(CppObjects& objects, const CppClass& of) : objects_(objects), of_(of) {}

  void add_all(std::uint64_t object, std::uint64_t begin, std::uint64_t end) {
    std::array<std::uint64_t, kMostObjectBytes / 8> words;
    end = std::min(end, kMostObjectBytes);
    if (begin >= end ||
        !objects_.image_.read_array(object + begin,
                                    std::span<std::uint64_t>(words).first((end - begin) / 8))) {
      return;
    }
    const std::size_t count = (end - begin) / 8;
    for (std::size_t i = 0; i < count; ++i) {
      if (add(words[i], begin + 8 * i)) {
        continue;
      }
      if (i + 2 < count && is_buffer(words[i], words[i + 1], words[i + 2])) {
        add_buffer(words[i], words[i + 1], begin + 8 * i);
        i += 2;
      }
    }
  }

  bool add(std::uint64_t target, std::uint64_t offset) {
    if (!can_be_object(target)) {
      return false;
    }
    const CppClass* const found = objects_.classes_.of(target);
    if (found == nullptr) {
      if (of_.may_lead_to_python) {
        reference(target, "");
      }
      return false;
    }
    // To the node of a leaf its gradients have a weak reference.
    const bool is_weak = of_.role == CppRole::kGradients && found->is_accumulator;
    if (found->role != CppRole::kNone && !found->is_undefined_tensor && !is_weak) {
      reference(target, name_of(found->role, offset));
    }
    return true;
  }

  void reference(std::uint64_t target, const char* name) {
    objects_.references_.push_back({target, 0, name, ReferenceKind::kCpp});
  }

 private:
  // Of a vector: begin, end, and end of what is reserved.
  static bool is_buffer(std::uint64_t begin, std::uint64_t end, std::uint64_t reserved) {
    return can_be_object(begin) && end > begin && end % 8 == 0 && reserved >= end &&
           reserved - begin <= kMostBufferBytes;
  }

  void add_buffer(std::uint64_t begin, std::uint64_t end, std::uint64_t offset) {
    std::array<std::uint64_t, kWordsOfPage> words;
    while (begin < end) {
      const std::span<std::uint64_t> some = std::span<std::uint64_t>(words).first(
          std::min<std::size_t>((end - begin) / 8, words.size()));
      if (some.empty() || !objects_.image_.read_array(begin, some)) {
        return;
      }
      for (const std::uint64_t word : some) {
        add(word, offset);
      }
      begin += some.size_bytes();
    }
  }

  // As Python calls it, where Python has a name for it.
  const char* name_of(CppRole target, std::uint64_t offset) const {
    switch (of_.role) {
      case CppRole::kGradients:
        if (target == CppRole::kTensor) {
          return offset <= kGradient ? "grad" : "_base";
        }
        return target == CppRole::kNode ? "grad_fn" : "";
      case CppRole::kNode:
        if (target == CppRole::kTensor) {
          return of_.is_accumulator ? "variable" : "saved";
        }
        return target == CppRole::kNode ? "next" : "";
      case CppRole::kTensor:
        return target == CppRole::kTensor ? "part" : "";
      default:
        return "";
    }
  }

  CppObjects& objects_;
  const CppClass& of_;
};

void CppObjects::references(std::uint64_t object, const CppClass& of, VisitReferences visit) {
  references_.clear();
  Parts parts(*this, of);
  if (of.role == CppRole::kStorage) {
    for (const std::uint64_t lender : lenders(object)) {
      parts.reference(lender, "");
    }
  } else if (of.role != CppRole::kTensor) {
    parts.add_all(object, 8, bytes_to_read(object, of));
  } else {
    learn_near(object);
    if (layout_.storage != Layout::kNone && layout_.sizes != Layout::kNone) {
      if (const std::uint64_t storage = image_.word(object + layout_.storage);
          can_be_object(storage)) {
        parts.reference(storage, "storage");
      }
      if (const std::uint64_t gradients = gradients_of(object); gradients != 0) {
        parts.reference(gradients, "");
      }
      // An object of Python that only this keeps alive is marked.
      for (std::uint64_t at = layout_.storage + 16; at < layout_.sizes; at += 8) {
        if (const std::uint64_t word = image_.word(object + at); (word & 7U) == 1) {
          parts.reference(word - 1, "");
        }
      }
      // Later versions keep it alive without a mark, and say less beside it.
      if (layout_.sizes - layout_.storage == 40) {
        const std::uint64_t shell = image_.word(object + layout_.sizes - 8);
        parts.reference(can_be_object(shell) ? shell : 0, "");
      }
      parts.add_all(object, layout_.sizes + kEndOfTensor, bytes_to_read(object, of));
    }
  }
  visit(references_);
}

// In front of what glibc has allocated stands how much it is.
std::uint64_t CppObjects::chunk_bytes(std::uint64_t address) {
  const std::uint64_t bytes = image_.word(address - 8) & ~std::uint64_t{7};
  return bytes >= 32 && bytes % 16 == 0 && bytes <= kMostChunkBytes ? bytes - 8 : 0;
}

std::uint64_t CppObjects::bytes(std::uint64_t object, const CppClass& of) {
  if (const std::uint64_t bytes = chunk_bytes(object); bytes != 0) {
    return bytes;
  }
  // Of std::make_shared: behind the counts.
  const CppClass* const counts = classes_.of(object - 16);
  if (counts != nullptr && counts->mangled.starts_with("St23_Sp_counted_ptr_inplace")) {
    return chunk_bytes(object - 16);
  }
  return bytes_to_read(object, of);
}

std::uint64_t CppObjects::bytes_to_read(std::uint64_t object, const CppClass& of) {
  if (const std::uint64_t bytes = chunk_bytes(object); bytes != 0) {
    return bytes;
  }
  const CppClass* const counts = classes_.of(object - 16);
  const bool has_counts =
      counts != nullptr && counts->mangled.starts_with("St23_Sp_counted_ptr_inplace");
  if (const std::uint64_t bytes = has_counts ? chunk_bytes(object - 16) : 0; bytes > 16) {
    return bytes - 16;
  }
  // Another allocator: about as large as such objects are.
  switch (of.role) {
    case CppRole::kNode:
      return 512;
    case CppRole::kTensor:
      return 192;
    case CppRole::kGradients:
      return 160;
    default:
      return 64;
  }
}

template <typename Visit>
void CppObjects::for_each_object(AddressRange range, Visit visit) {
  std::array<std::uint64_t, kWordsOfPage> words;
  for (std::uint64_t page = range.begin; page < range.end; page += MemoryImage::kPageBytes) {
    if (!image_.read_array(page, std::span<std::uint64_t>(words))) {
      continue;
    }
    for (std::size_t i = 0; i < words.size(); ++i) {
      const CppClass* const found = classes_.of_table(words[i]);
      if (found != nullptr && found->role != CppRole::kNone && !found->is_undefined_tensor &&
          !visit(page + 8 * i, *found)) {
        return;
      }
    }
  }
}

// Of a build with a lock for all threads: the type stands behind the number of references.
void CppObjects::find_instances(AddressRange range, std::uint64_t type,
                                std::vector<std::uint64_t>& found) {
  constexpr std::size_t kMostInstances = 1U << 22U;
  std::array<std::uint64_t, kWordsOfPage> words;
  for (std::uint64_t page = range.begin; page < range.end; page += MemoryImage::kPageBytes) {
    if (!image_.read_array(page, std::span<std::uint64_t>(words))) {
      continue;
    }
    for (std::size_t i = 1; i < words.size(); i += 2) {
      if (words[i] == type && found.size() < kMostInstances) {
        found.push_back(page + 8 * (i - 1));
      }
    }
  }
}

void CppObjects::learn_near(std::uint64_t object) {
  const bool is_known = layout_.is_whole() && layout_.flags != Layout::kNone;
  const bool is_tried = learned_near_ != 0 && object - learned_near_ + kNearBytes < 2 * kNearBytes;
  const Mapping* const mapping =
      is_known || is_tried || attempts_ >= kMostAttempts ? nullptr : image_.mapping_at(object);
  if (mapping == nullptr) {
    return;
  }
  ++attempts_;
  learned_near_ = object;
  const std::uint64_t page = object / MemoryImage::kPageBytes * MemoryImage::kPageBytes;
  Samples samples;
  for_each_object({std::max(mapping->range.begin, page - std::min(page, kNearBytes)),
                   std::min(mapping->range.end, page + kNearBytes)},
                  [&](std::uint64_t at, const CppClass& of) {
                    auto* const same = of.role == CppRole::kTensor      ? &samples.tensors
                                       : of.role == CppRole::kStorage   ? &samples.storages
                                       : of.role == CppRole::kGradients ? &samples.gradients
                                                                        : nullptr;
                    if (same != nullptr && same->size() < kMostSamples) {
                      same->push_back(at);
                    }
                    return samples.tensors.size() < kMostSamples;
                  });
  learn(samples);
}

void CppObjects::learn(const Samples& samples) {
  // Sparse ones have no storage.
  const auto has_storage = [&](std::uint64_t at) {
    const CppClass* const of = classes_.of(image_.word(at));
    return of != nullptr && of->role == CppRole::kStorage;
  };
  std::vector<std::uint64_t> dense;
  for (const std::uint64_t tensor : samples.tensors) {
    for (std::uint32_t offset = 8; offset <= 64; offset += 8) {
      if (has_storage(tensor + offset)) {
        dense.push_back(tensor);
        break;
      }
    }
  }
  Layout layout;
  layout.storage = most_often(8, 64, dense, has_storage);
  layout.sizes = most_often(40, 96, dense, [&](std::uint64_t at) { return is_shape(at); });
  std::vector<std::uint64_t> full;
  for (const std::uint64_t storage : samples.storages) {
    if (is_data(storage + 16) || is_data(storage + 24)) {
      full.push_back(storage);
    }
  }
  layout.data = most_often(8, 32, full, [&](std::uint64_t at) { return is_data(at); });
  if (!layout_.is_whole()) {
    layout.flags = layout_.flags;
    layout_ = layout;
  }
  if (layout_.flags == Layout::kNone) {
    layout_.flags = find_flags(samples.gradients);
  }
}

// The number of elements is the product of the sizes.
bool CppObjects::is_shape(std::uint64_t sizes) {
  const std::uint64_t dimensions = image_.word(sizes);
  if (dimensions > kMostDimensions ||
      image_.load<std::uint16_t>(sizes + kDtype) >= kMostDimensions) {
    return false;
  }
  const std::uint64_t at = dimensions <= kSizesInside ? sizes + 8 : image_.word(sizes + 8);
  std::uint64_t product = 1;
  for (std::uint64_t i = 0; i < dimensions; ++i) {
    const std::uint64_t size = image_.word(at + 8 * i);
    if (size > kMostElements || (product *= size) > kMostElements) {
      return false;
    }
  }
  return product == image_.word(sizes + kElements);
}

// It is freed by a function of a library, and what that is given is the data.
bool CppObjects::is_data(std::uint64_t data) {
  const std::uint64_t address = image_.word(data);
  const auto device = image_.load<std::uint8_t>(data + kStorageDevice);
  // What frees the memory is told where it is, or where somebody is that has lent it.
  const std::uint64_t context = image_.word(data + kContext);
  const bool is_lent = can_be_object(context) && image_.mapping_at(context) != nullptr;
  return address >= kLowestAddress && (context == address || is_lent) &&
         classes_.is_in_file(image_.word(data + kFree)) && device < std::size(kDevices) &&
         image_.word(data + kStorageBytes) < kMostStorageBytes;
}

// Whether it requires a gradient, whether that is retained, and whether it is a view, which its
// class says as well: three bytes, or a byte, a number or -1, and a byte.
bool CppObjects::are_flags(std::uint64_t flags, bool is_view) {
  constexpr std::int64_t kMostOutputs = 1U << 20U;
  const std::uint64_t word = image_.word(flags);
  const std::uint64_t view = is_view ? 1 : 0;
  const auto byte = [](std::uint64_t of, unsigned index) { return of >> 8 * index & 0xffU; };
  if (byte(word, 0) > 1) {
    return false;
  }
  const auto retains = image_.load<std::int64_t>(flags + 8);
  const bool has_number = retains >= -1 && retains < kMostOutputs &&
                          byte(image_.word(flags + 16), 0) == view &&
                          image_.word(flags + 16) >> 32U < kMostOutputs;
  return has_number || (byte(word, 1) <= 1 && byte(word, 2) == view && word >> 32U < kMostOutputs);
}

// Most objects have no flag set: what is 0 everywhere proves nothing.
std::uint32_t CppObjects::find_flags(std::span<const std::uint64_t> gradients) {
  std::uint32_t best = Layout::kNone;
  std::size_t most = 0;
  for (std::uint32_t offset = 104; offset <= 160; offset += 8) {
    std::size_t votes = 0;
    std::size_t against = 0;
    for (const std::uint64_t object : gradients) {
      const CppClass* const of = classes_.of(object);
      const bool is_right = of != nullptr && are_flags(object + offset, of->is_view);
      against += is_right ? 0 : 1;
      votes += is_right && image_.load<std::uint8_t>(object + offset) == 1 ? 1U : 0U;
    }
    if (votes > most && against <= gradients.size() / 20) {
      most = votes;
      best = offset;
    }
  }
  return best;
}

std::uint64_t CppObjects::gradients_of(std::uint64_t tensor) {
  const std::uint64_t gradients = image_.word(tensor + layout_.storage + 8);
  const CppClass* const of = classes_.of(gradients);
  return of != nullptr && of->role == CppRole::kGradients ? gradients : 0;
}

std::optional<TensorFacts> CppObjects::tensor(std::uint64_t tensor) {
  learn_near(tensor);
  if (layout_.sizes == Layout::kNone || layout_.storage == Layout::kNone) {
    return std::nullopt;
  }
  const std::uint64_t sizes = tensor + layout_.sizes;
  if (!is_shape(sizes)) {
    return std::nullopt;
  }
  const std::uint64_t dimensions = image_.word(sizes);
  TensorFacts facts;
  const std::uint64_t at = dimensions <= kSizesInside ? sizes + 8 : image_.word(sizes + 8);
  for (std::uint64_t i = 0; i < dimensions; ++i) {
    facts.shape.push_back(image_.load<std::int64_t>(at + 8 * i));
  }
  facts.dtype = dtype_name(image_.load<std::uint16_t>(sizes + kDtype));
  facts.offset = image_.word(sizes + kStorageOffset);
  facts.elements = image_.word(sizes + kElements);
  const std::uint64_t storage = image_.word(tensor + layout_.storage);
  const CppClass* const of_storage = classes_.of(storage);
  facts.storage = of_storage != nullptr && of_storage->role == CppRole::kStorage ? storage : 0;
  facts.device = device_of(sizes + kTensorDevice, facts.storage);
  if (const std::uint64_t gradients = gradients_of(tensor); gradients != 0) {
    const CppClass* const operation = classes_.of(image_.word(gradients + kGradient + 8));
    facts.is_graph = operation != nullptr && operation->role == CppRole::kNode;
    facts.is_view = classes_.of(gradients)->is_view;
    const bool is_leaf_with_gradient =
        layout_.flags != Layout::kNone && image_.load<std::uint8_t>(gradients + layout_.flags) == 1;
    facts.requires_grad = facts.is_graph || is_leaf_with_gradient;
  }
  return facts;
}

// In a tensor it may be missing: whether it is there stands behind it, or in front of it.
std::string CppObjects::device_of(std::uint64_t optional, std::uint64_t storage) {
  if (storage != 0 && layout_.data != Layout::kNone) {
    const std::uint64_t at = storage + layout_.data + kStorageDevice;
    return device_name(image_.load<std::int8_t>(at), image_.load<std::int8_t>(at + 1));
  }
  std::array<std::int8_t, 3> bytes = {};
  image_.read_array(optional, std::span<std::int8_t>(bytes));
  return bytes[2] == 1 ? device_name(bytes[0], bytes[1]) : device_name(bytes[1], bytes[2]);
}

std::optional<StorageFacts> CppObjects::storage(std::uint64_t storage) {
  learn_near(storage);
  if (layout_.data == Layout::kNone) {
    return std::nullopt;
  }
  const std::uint64_t at = storage + layout_.data;
  StorageFacts facts;
  facts.data = image_.word(at);
  facts.bytes = image_.word(at + kStorageBytes);
  // A word that looks like the begin of a storage may lie anywhere, and what follows be anything.
  const bool is_freed_by_code = classes_.is_in_file(image_.word(at + kFree));
  if (facts.bytes >= kMostStorageBytes || (facts.data != 0 && !is_freed_by_code)) {
    return std::nullopt;
  }
  const auto kind = image_.load<std::int8_t>(at + kStorageDevice);
  facts.device = device_name(kind, image_.load<std::int8_t>(at + kStorageDevice + 1));
  if (kind != 0 || facts.data == 0) {
    return facts;
  }
  // Of a file that is mapped the kernel has the memory.
  const Mapping* const mapping = image_.mapping_at(facts.data);
  facts.is_host = mapping == nullptr || !classes_.is_in_file(facts.data);
  const Mapping* const free = image_.mapping_at(image_.word(at + kFree));
  facts.is_pinned = free != nullptr && free->name.find("cuda") != std::string::npos;
  return facts;
}

std::vector<std::uint64_t> CppObjects::lenders(std::uint64_t storage) {
  constexpr std::size_t kMostWords = 6;  // of a function that is called to free it, with its data
  std::vector<std::uint64_t> lenders;
  if (layout_.data == Layout::kNone) {
    return lenders;
  }
  const std::uint64_t context = image_.word(storage + layout_.data + kContext);
  if (!can_be_object(context) || context == image_.word(storage + layout_.data)) {
    return lenders;
  }
  lenders.push_back(context);
  const std::size_t count = std::min<std::size_t>(kMostWords, chunk_bytes(context) / 8);
  for (std::size_t i = 0; i < count; ++i) {
    if (const std::uint64_t word = image_.word(context + 8 * i); can_be_object(word)) {
      lenders.push_back(word);
    }
  }
  return lenders;
}

CppObjects::Found CppObjects::scan(std::span<const std::uint64_t> known,
                                   const std::function<bool()>& is_over,
                                   const ScanOptions& options) {
  std::vector<AddressRange> ranges;
  for (const Mapping& mapping : image_.mappings()) {
    const bool is_own =
        mapping.name.empty() || mapping.name == "[heap]" || mapping.name.starts_with("[anon:");
    if (mapping.is_writable && !mapping.is_shared && is_own) {
      ranges.push_back(mapping.range);
    }
  }
  // Large data have a mapping of their own, and what is known of them then need not be read.
  std::stable_sort(ranges.begin(), ranges.end(), [](const AddressRange& a, const AddressRange& b) {
    return a.end - a.begin < b.end - b.begin;
  });
  Found found;
  Samples samples;
  DataRanges data;
  const auto skip_data_of = [&](std::span<const std::uint64_t> storages) {
    for (const std::uint64_t storage : storages) {
      if (const auto facts = this->storage(storage); facts && facts->is_host) {
        const Mapping* const mapping = image_.mapping_at(facts->data);
        data.add(facts->data,
                 mapping == nullptr ? 0 : std::min(facts->bytes, mapping->range.end - facts->data));
      }
    }
  };
  skip_data_of(known);
  for (const AddressRange& range : options.data) {
    data.add(range.begin, range.end - range.begin);
  }
  const auto add = [&](std::uint64_t object, const CppClass& of) {
    if (of.role == CppRole::kTensor) {
      found.tensors.push_back(object);
    } else if (of.role == CppRole::kStorage) {
      found.storages.push_back(object);
    } else if (of.role == CppRole::kGradients && samples.gradients.size() < kMostSamples) {
      samples.gradients.push_back(object);
    }
    return true;
  };
  for (const AddressRange& range : ranges) {
    const std::size_t before = found.storages.size();
    for (AddressRange rest = range; rest.begin < rest.end && !found.is_partial;) {
      found.is_partial = is_over();
      AddressRange part = data.first_gap(rest);
      part.end = std::min(part.end, part.begin + kBetweenQuestions);
      if (has_torch()) {
        for_each_object(part, add);
      }
      if (options.type != 0) {
        find_instances(part, options.type, found.instances);
      }
      rest.begin = part.end;
    }
    skip_data_of(std::span(found.storages).subspan(before));
  }
  const auto some = [](const std::vector<std::uint64_t>& all) {
    return std::vector(
        all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), kMostSamples)));
  };
  samples.tensors = some(found.tensors);
  samples.storages = some(found.storages);
  learn(samples);
  return found;
}

}  // namespace tidemark::heap
