#include "cli/failure.hpp"

#include <exception>
#include <new>

namespace simsync {

Failure current_failure() {
  const auto error = [](const std::exception& e) { return std::string("error: ") + e.what(); };
  try {
    throw;
  } catch (const WorkerError& e) {
    return {e.what(), e.code()};
  } catch (const InputError& e) {
    return {e.what(), ExitCode::Input};
  } catch (const PlanError& e) {
    return {error(e), ExitCode::Input};
  } catch (const CapabilityError& e) {
    return {error(e), ExitCode::Capability};
  } catch (const RunError& e) {
    return {error(e), ExitCode::Finding};
  } catch (const std::bad_alloc&) {
    return {"error: not enough memory for this request", ExitCode::Capability};
  } catch (const std::exception& e) {
    return {"internal " + error(e), ExitCode::Internal};
  }
}

}  // namespace simsync
