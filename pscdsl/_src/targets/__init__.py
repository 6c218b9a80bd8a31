"""The parts of the compiler that depend on the device."""
