//! Jobs on real PostgreSQL: from enqueue to the recorded end, with the races forced.

#[cfg(test)]
mod support;

#[cfg(test)]
mod admin;
#[cfg(test)]
mod claims;
#[cfg(test)]
mod copy;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod drain;
#[cfg(test)]
mod enqueue;
#[cfg(test)]
mod failover_faults;
#[cfg(test)]
mod leases;
#[cfg(test)]
mod lifecycle;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod logs;
#[cfg(test)]
mod notify_off;
#[cfg(test)]
mod plans;
#[cfg(test)]
mod settle;
#[cfg(test)]
mod unique;
#[cfg(test)]
mod verification;
#[cfg(test)]
mod worker;
