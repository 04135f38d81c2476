//! Messages on real PostgreSQL: from push to ack, with the races forced.

#[cfg(test)]
mod support;

#[cfg(test)]
mod absent;
#[cfg(test)]
mod announced;
#[cfg(test)]
mod browse;
#[cfg(test)]
mod dead;
#[cfg(test)]
mod groups;
#[cfg(test)]
mod groups_admin;
#[cfg(test)]
mod held;
#[cfg(test)]
mod many_names;
#[cfg(test)]
mod outbox;
#[cfg(test)]
mod pop;
#[cfg(test)]
mod pop_faults;
#[cfg(test)]
mod pop_kit;
#[cfg(test)]
mod pop_options;
#[cfg(test)]
mod pop_plans;
#[cfg(test)]
mod pop_races;
#[cfg(test)]
mod push;
#[cfg(test)]
mod push_duplicates;
#[cfg(test)]
mod push_faults;
#[cfg(test)]
mod push_order;
#[cfg(test)]
mod push_plans;
#[cfg(test)]
mod queues;
#[cfg(test)]
mod rolling;
#[cfg(test)]
mod seal;
#[cfg(test)]
mod seek;
#[cfg(test)]
mod settle;
#[cfg(test)]
mod settle_by_id;
#[cfg(test)]
mod settle_durability;
#[cfg(test)]
mod settle_faults;
#[cfg(test)]
mod settle_kit;
#[cfg(test)]
mod settle_plans;
#[cfg(test)]
mod transaction;
#[cfg(test)]
mod upkeep;
#[cfg(test)]
mod wakes;
#[cfg(test)]
mod wide_groups;
