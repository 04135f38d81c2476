//! Whatever makes work visible wakes a fetch that waits. Each case was up to 29 s late with a provider that is woken by
//! inserts alone; here each is found in a fraction of a second, although the fetch would wait for a minute.

mod fault_harness;
mod gaps;
mod nodes;
