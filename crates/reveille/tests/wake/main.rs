//! The wake engine on real PostgreSQL: several nodes, one plain table, and every way to lose a
//! wake-up.

#[cfg(test)]
mod support;

#[cfg(test)]
mod close_faults;
#[cfg(test)]
mod dues;
#[cfg(test)]
mod hints;
#[cfg(test)]
mod idle;
#[cfg(test)]
mod link_faults;
#[cfg(test)]
mod node_rows;
#[cfg(test)]
mod pooler_faults;
#[cfg(test)]
mod standby_faults;
#[cfg(test)]
mod survey_faults;
