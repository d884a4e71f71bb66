// Python's view of the native part. Everything that may take long releases the GIL, so that the
// worker's other thread notices at once when the parent is gone.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <stdexcept>

#include "buffer.hpp"
#include "compare.hpp"
#include "faults.hpp"
#include "kernel.hpp"

namespace py = pybind11;
using dojo::Buffer;
using dojo::Kernel;
using Doubles = py::array_t<double, py::array::c_style>;

namespace {

std::vector<void*> addresses(const std::vector<Buffer*>& buffers) {
  std::vector<void*> result;
  for (const Buffer* buffer : buffers) result.push_back(buffer->data());
  return result;
}

std::int64_t elements(const Buffer& buffer, const std::string& dtype, std::int64_t columns) {
  const std::int64_t count = static_cast<std::int64_t>(buffer.bytes()) / dojo::width(dtype);
  if (columns <= 0 || count % columns != 0) throw std::invalid_argument("columns do not divide the array");
  return count;
}

void expect(const Doubles& array, std::int64_t size, const char* what) {
  if (array.size() != size) throw std::invalid_argument(std::string(what) + " has another size than the array");
}

py::list time_kernel(const Kernel& kernel, const std::vector<std::vector<Buffer*>>& sets, Buffer* workspace,
                     int samples, int repeats, double cutoff_ns, int patience, double budget_ns,
                     std::size_t first) {
  if (sets.empty() || repeats < 1) throw std::invalid_argument("one set of arrays and one repeat at least");
  std::vector<std::vector<void*>> arrays;
  for (const auto& set : sets) arrays.push_back(addresses(set));
  std::vector<dojo::Sample> taken;
  {
    py::gil_scoped_release released;
    taken = kernel.time(arrays, workspace == nullptr ? nullptr : workspace->data(), samples, repeats, cutoff_ns,
                        patience, budget_ns, first);
  }
  py::list result;
  for (const auto& sample : taken) {
    result.append(py::make_tuple(sample.nanoseconds, sample.switches, sample.faults));
  }
  return result;
}

py::dict compare_buffer(const Buffer& buffer, const std::string& dtype, const Doubles& reference,
                        const Doubles& tolerance, std::int64_t columns) {
  const std::int64_t count = elements(buffer, dtype, columns);
  expect(reference, count, "the reference");
  expect(tolerance, count / columns, "the tolerance");
  dojo::Verdict verdict;
  {
    py::gil_scoped_release released;
    verdict = dojo::compare(buffer.data(), dtype, reference.data(), tolerance.data(), count, columns);
  }
  py::dict result;
  result["wrong"] = verdict.wrong;
  result["unwritten"] = verdict.unwritten;
  result["first"] = verdict.first;
  result["got"] = verdict.got;
  result["wanted"] = verdict.wanted;
  result["error"] = verdict.error;
  return result;
}

py::tuple row_errors(const Buffer& buffer, const std::string& dtype, const Doubles& reference,
                     std::int64_t columns) {
  const std::int64_t count = elements(buffer, dtype, columns);
  expect(reference, count, "the reference");
  Doubles error(count / columns), scale(count / columns);
  double* error_out = error.mutable_data();
  double* scale_out = scale.mutable_data();
  {
    py::gil_scoped_release released;
    dojo::row_errors(buffer.data(), dtype, reference.data(), count, columns, error_out, scale_out);
  }
  return py::make_tuple(error, scale);
}

}  // namespace

PYBIND11_MODULE(dojo_native, module) {
  module.doc() = "Loads, runs, times and compares generated kernels. For the measuring worker process only.";

  py::class_<Buffer>(module, "Buffer", py::buffer_protocol(),
                     "An array between inaccessible guards, its end (rounded up to 64 bytes) flush against the "
                     "trailing one, canaries in the bytes left over. Supports the buffer protocol (bytes).")
      .def(py::init<std::string, std::size_t, int>(), py::arg("name"), py::arg("bytes"), py::arg("stagger") = 0)
      .def_property_readonly("name", &Buffer::name)
      .def_property_readonly("bytes", &Buffer::bytes)
      .def("protect", &Buffer::protect, py::arg("read_only"), "Make writes fault, or no longer.")
      .def(
          "poison",
          [](Buffer& buffer, const std::string& dtype) {
            const auto pattern = dojo::poison(dtype);
            const int width = dojo::width(dtype);
            py::gil_scoped_release released;
            buffer.fill(pattern, width);
          },
          py::arg("dtype"), "Fill with the value that unwritten elements are known by.")
      .def("damage", &Buffer::damage,
           "Bytes from the array to the nearest overwritten canary: negative before it, positive after it, or 0.")
      .def_buffer([](Buffer& buffer) {
        return py::buffer_info(buffer.data(), 1, py::format_descriptor<std::uint8_t>::format(), 1,
                               {buffer.bytes()}, {1});
      });

  py::class_<Kernel>(module, "Kernel", "A kernel's function in a shared object. Raises RuntimeError if not loadable.")
      .def(py::init<const std::string&, const std::string&>(), py::arg("path"), py::arg("symbol"))
      .def("time", &time_kernel, py::arg("sets"), py::arg("workspace"), py::arg("samples"), py::arg("repeats") = 1,
           py::arg("cutoff_ns") = 0.0, py::arg("patience") = 1, py::arg("budget_ns") = 0.0, py::arg("first") = 0,
           "Up to `samples` samples (nanoseconds a call, involuntary context switches, minor page faults), each of "
           "`repeats` calls that rotate over `sets` of buffers. Ends early when the best of `patience` or more is "
           "above cutoff_ns, or when budget_ns are spent (0: never).");

  module.def("compare", &compare_buffer, py::arg("buffer"), py::arg("dtype"), py::arg("reference"),
             py::arg("tolerance"), py::arg("columns"),
             "Every element against its float64 reference, one absolute tolerance per row of `columns` elements. "
             "Gives wrong, unwritten, first (flat index), got, wanted, error (largest, in units of the tolerance).");
  module.def("row_errors", &row_errors, py::arg("buffer"), py::arg("dtype"), py::arg("reference"),
             py::arg("columns"),
             "Per row: the largest absolute error (inf where non-finite values disagree), and max |reference|.");
  module.def("report_faults", &dojo::report_faults, py::arg("descriptor"),
             "From now on a fault writes one JSON line to the descriptor and ends the process.");
  module.def("calibrate", &dojo::calibrate, py::call_guard<py::gil_scoped_release>(),
             "Milliseconds of a fixed piece of arithmetic: shows the machine's mode.");
}
