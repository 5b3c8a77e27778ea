// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "common/owner_records.h"
#include "profiler/heap/cpp_objects.h"
#include "profiler/heap/object_graph.h"
#include "profiler/heap/python_objects.h"
#include "profiler/heap/python_runtime.h"
#include "profiler/heap/python_sizes.h"
#include "profiler/heap/python_types.h"

namespace tidemark::heap {

// An array of numpy, by itself.
struct NativeArray {
  std::uint64_t address = 0;
  std::uint64_t data = 0;
  HeldObjects held;  // the bytes are those of its data
};

// The objects of Python in a process, and those of C++ that they lead to.
class ProcessObjects : public ObjectSource {
 public:
  ProcessObjects(MemoryImage& image, PythonRuntime runtime);
  ProcessObjects(const ProcessObjects&) = delete;
  ProcessObjects& operator=(const ProcessObjects&) = delete;

  std::vector<Root> roots();
  const PythonRuntime& runtime() const { return runtime_; }
  PythonTypes& types() { return types_; }
  CppObjects& cpp() { return cpp_; }
  // Of an array of numpy: its dtype and shape.
  HeldObjects array(std::uint64_t array) {
    HeldObjects held;
    held.dtype = objects_.arrays().dtype(array);
    held.shape = objects_.arrays().shape(array);
    return held;
  }
  // numpy.ndarray; 0: numpy is not loaded, or freed objects cannot be told from others.
  std::uint64_t type_of_arrays();
  // Without bytes, where it has no data of its own, or there is no array.
  NativeArray native_array(std::uint64_t address);
  // How many references an object says that it has; 0: it is kept for ever, or does not tell.
  std::uint64_t reference_count(std::uint64_t object);

  PythonTypes::Index type_of(std::uint64_t address, ReferenceKind kind) override;
  const TypeInfo& type(PythonTypes::Index index) const override { return types_[index]; }
  void references(std::uint64_t address, PythonTypes::Index type, VisitReferences visit) override;
  std::uint64_t bytes(std::uint64_t address, PythonTypes::Index type) override;
  std::string text(std::uint64_t address) override;
  std::string name(std::uint64_t address, PythonTypes::Index type) override;
  std::string variable_name(std::uint64_t function, PythonTypes::Index type, bool is_closure,
                            std::uint64_t index) override;

 private:
  PythonTypes::Index python_type_of(std::uint64_t address);
  PythonTypes::Index type_held_by_cpp(std::uint64_t address);
  PythonTypes::Index cpp_type_of(std::uint64_t address);
  std::uint64_t storage_bytes(std::uint64_t storage);

  MemoryImage& image_;
  PythonRuntime runtime_;
  PythonTypes types_;
  PythonObjects objects_;
  PythonSizes sizes_;
  CppObjects cpp_;
  std::vector<PythonTypes::Index> cpp_types_;  // by the number of the class
};

}  // namespace tidemark::heap
